"""Names on the cluster: bounded, of plain letters, and never the same for two things."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing.opensearch.naming import chunk_id, document_key, index_name, write_alias
from tests.support.chunks import IDENTITY

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50)


@given(st.lists(IDS, unique=True, max_size=20))
def test_documents_have_keys_of_their_own(ids: list[str]) -> None:
    keys = [document_key(each) for each in ids]
    assert len(set(keys)) == len(ids)
    assert all(re.fullmatch(r"[\w-]{43}", key, re.ASCII) for key in keys)


def test_a_key_of_the_longest_id_is_as_long_as_any() -> None:
    assert len(document_key("規程/" * 10_000)) == 43


def test_what_looks_alike_is_not_the_same() -> None:
    ids = ["Ü", "U\u0308", "ü", "u", "U", " U", "U ", "U\n"]
    assert len({document_key(each) for each in ids}) == len(ids)


@given(
    st.sets(
        st.tuples(IDS, st.text("0123456789abcdef", max_size=12), st.integers(0, 10**6)), max_size=20
    )
)
def test_chunks_have_ids_of_their_own(chunks: set[tuple[str, str, int]]) -> None:
    ids = {chunk_id(document_key(name), version, place) for name, version, place in chunks}
    assert len(ids) == len(chunks)
    assert all(len(each) <= 80 for each in ids)


@pytest.mark.parametrize(
    ("model", "slug"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers-all-minilm-l6-v2"),
        (
            "intfloat/multilingual-e5-large-instruct/of a long path",
            "ltilingual-e5-large-instruct-of-a-long-path",
        ),
        ("C:\\models\\日本語", "c-models"),
        ("日本語", "model"),
    ],
)
def test_an_index_is_called_after_its_model(model: str, slug: str) -> None:
    name = index_name("quarry", replace(IDENTITY, model=model))
    assert re.fullmatch(rf"quarry-{slug[-40:].strip('-')}-[0-9a-f]{{8}}", name)


def test_embedders_that_differ_have_indexes_of_their_own() -> None:
    embedders = [
        IDENTITY,
        replace(IDENTITY, version="2"),
        replace(IDENTITY, dimension=65),
        replace(IDENTITY, model="Test"),
    ]
    names = {index_name("quarry", each) for each in embedders}
    assert len(names) == len({*names, *map(write_alias, names)}) / 2 == len(embedders)
    assert index_name("quarry", replace(IDENTITY, precision="bf16")) in names
