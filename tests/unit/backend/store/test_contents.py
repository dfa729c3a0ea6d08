"""What documents say, in files beside the ledger."""

from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.store.contents import Contents, decoded, encoded
from connectors.document import EVERYBODY, Document, Person, Place, Section, Span

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
MAYBE = st.none() | TEXT
PLACES = st.builds(
    Place,
    page=st.none() | st.integers(1, 999),
    heading_path=st.lists(TEXT, max_size=3).map(tuple),
    sheet=MAYBE,
    rows=st.none() | st.tuples(st.integers(1, 99), st.integers(1, 99)),
    span=st.none() | st.tuples(st.integers(0, 9), st.integers(9, 99)).map(lambda p: Span(*p)),
)
SECTIONS = st.builds(
    Section,
    text=TEXT,
    kind=st.sampled_from(["text", "table", "image"]),
    link=MAYBE,
    place=PLACES,
)
MOMENTS = st.none() | st.datetimes(timezones=st.just(UTC) | st.just(timezone(timedelta(hours=9))))
DOCUMENTS = st.builds(
    Document,
    id=TEXT,
    source=TEXT,
    title=TEXT,
    sections=st.lists(SECTIONS, max_size=4).map(tuple),
    link=TEXT,
    media_type=TEXT,
    access=st.just(EVERYBODY),
    version=TEXT,
    metadata=st.dictionaries(TEXT, TEXT | st.lists(TEXT, max_size=3).map(tuple), max_size=3),
    owners=st.lists(st.builds(Person, TEXT, MAYBE), max_size=2).map(tuple),
    created_at=MOMENTS,
    updated_at=MOMENTS,
    parents=st.lists(TEXT, max_size=3).map(tuple),
)


@given(DOCUMENTS)
def test_a_document_comes_back_as_it_went_in(document: Document) -> None:
    assert (
        decoded(
            encoded(document),
            document_id=document.id,
            source=document.source,
            version=document.version,
            access=document.access,
        )
        == document
    )


def test_equal_contents_are_kept_once(tmp_path: Path) -> None:
    contents = Contents(tmp_path)
    assert contents.put(b"leave") == contents.put(b"leave") != contents.put(b"pay")
    assert len(list(tmp_path.rglob("*.*"))) == 2


def test_a_file_is_named_by_its_content_in_one_of_256_folders(tmp_path: Path) -> None:
    key = Contents(tmp_path).put(b"leave" * 1000)
    path = tmp_path / key[:2] / f"{key}.zst"
    assert path.stat().st_size < 200
    assert Contents(tmp_path).get(key) == b"leave" * 1000


@pytest.mark.parametrize("damage", [b"", b"not zstandard at all"])
def test_a_damaged_file_is_as_good_as_missing(tmp_path: Path, damage: bytes) -> None:
    contents = Contents(tmp_path)
    key, other = contents.put(b"leave"), contents.put(b"pay")
    path, other_path = (tmp_path / each[:2] / f"{each}.zst" for each in (key, other))
    path.write_bytes(damage)
    assert contents.get(key) is None
    path.write_bytes(other_path.read_bytes())
    assert contents.get(key) is None


def test_what_was_dropped_is_gone_and_may_be_dropped_again(tmp_path: Path) -> None:
    contents = Contents(tmp_path)
    key = contents.put(b"leave")
    contents.drop(key)
    contents.drop(key)
    assert not contents.has(key)
    assert contents.get(key) is None
