"""Comparing ledger and index as two sorted streams."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing.index import IndexedDocument
from indexing.repair import Difference, differences

SIDES = st.dictionaries(
    st.text(max_size=2),
    st.tuples(st.integers(1, 3), st.integers(0, 2), st.sampled_from(["h1", "h2"])),
    max_size=12,
)


def side(documents: dict[str, tuple[int, int, str]]) -> dict[str, IndexedDocument]:
    return {each: IndexedDocument(each, *documents[each]) for each in sorted(documents)}


@given(told=SIDES, held=SIDES)
def test_differences_are_what_a_comparison_in_memory_finds(
    told: dict[str, tuple[int, int, str]], held: dict[str, tuple[int, int, str]]
) -> None:
    left, right = side(told), side(held)
    expected = [
        Difference(each, left.get(each), right.get(each))
        for each in sorted({*left, *right})
        if left.get(each) != right.get(each) and not (each not in right and left[each].chunks == 0)
    ]
    assert list(differences(iter(left.values()), iter(right.values()))) == expected


def test_the_next_generation_is_above_both() -> None:
    one = IndexedDocument("desk:a", 4, 1, "h")
    two = IndexedDocument("desk:a", 7, 1, "h")
    assert Difference("desk:a", one, two).next_generation == 8
    assert Difference("desk:a", one, None).next_generation == 5


def test_a_stream_out_of_order_is_refused_rather_than_believed() -> None:
    a, b = (IndexedDocument(each, 1, 1, "h") for each in "ab")
    with pytest.raises(ValueError, match="not in order"):
        list(differences(iter([a, b]), iter([b, a])))
