"""Comparing ledger and index as two sorted streams."""

from dataclasses import replace
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.access import EVERYBODY, NOBODY, Access
from indexing.index.protocols import IndexedDocument
from indexing.ingestion.reconciliation import Difference, find_differences

Documents: TypeAlias = dict[str, tuple[int, int, str, Access]]

SIDES = st.dictionaries(
    st.text(max_size=2),
    st.tuples(
        st.integers(1, 3),
        st.integers(0, 2),
        st.sampled_from(["h1", "h2"]),
        st.sampled_from([EVERYBODY, NOBODY]),
    ),
    max_size=12,
)

ONE = IndexedDocument("desk:a", 4, 2, "h", EVERYBODY)


def side(documents: Documents) -> dict[str, IndexedDocument]:
    return {each: IndexedDocument(each, *documents[each]) for each in sorted(documents)}


def is_difference(told: IndexedDocument | None, held: IndexedDocument | None) -> bool:
    if told is None or held is None:
        return told != held and not (told and told.chunks == 0)
    if told.chunks == held.chunks == 0:
        return (told.generation, told.content_hash) != (held.generation, held.content_hash)
    return told != held


@given(told=SIDES, held=SIDES)
def test_differences_are_what_a_comparison_in_memory_finds(
    told: Documents, held: Documents
) -> None:
    left, right = side(told), side(held)
    expected = [
        Difference(each, left.get(each), right.get(each))
        for each in sorted({*left, *right})
        if is_difference(left.get(each), right.get(each))
    ]
    assert list(find_differences(iter(left.values()), iter(right.values()))) == expected


def test_the_next_generation_is_above_both() -> None:
    one = IndexedDocument("desk:a", 4, 1, "h")
    two = IndexedDocument("desk:a", 7, 1, "h")
    assert Difference("desk:a", one, two).next_generation == 8
    assert Difference("desk:a", one, None).next_generation == 5


@pytest.mark.parametrize(
    ("held", "of_access", "of_count"),
    [
        (replace(ONE, access=NOBODY), True, False),
        (replace(ONE, chunks=3), False, True),
        (replace(ONE, access=NOBODY, chunks=3), False, False),
        (replace(ONE, generation=5), False, False),
        (replace(ONE, content_hash="other", access=NOBODY), False, False),
        (ONE, False, False),
        (None, False, False),
    ],
)
def test_a_difference_says_what_it_is_of(
    held: IndexedDocument | None, *, of_access: bool, of_count: bool
) -> None:
    difference = Difference("desk:a", ONE, held)
    assert (difference.is_access_only, difference.is_chunk_count_only) == (of_access, of_count)


def test_a_stream_out_of_order_is_refused_rather_than_believed() -> None:
    a, b = (IndexedDocument(each, 1, 1, "h") for each in "ab")
    with pytest.raises(ValueError, match="not in ascending order"):
        list(find_differences(iter([a, b]), iter([b, a])))
