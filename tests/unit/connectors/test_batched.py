from collections.abc import Iterator
from itertools import count, islice

from hypothesis import given
from hypothesis import strategies as st

from connectors.batched import batched


def test_items_come_in_lists_of_a_size() -> None:
    assert list(batched("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]


@given(st.lists(st.integers()), st.integers(min_value=1, max_value=9))
def test_nothing_is_lost_and_only_the_last_is_shorter(items: list[int], size: int) -> None:
    found = list(batched(items, size))
    assert [one for batch in found for one in batch] == items
    assert all(len(batch) == size for batch in found[:-1])
    assert all(0 < len(batch) <= size for batch in found)


def test_no_more_is_taken_than_is_given() -> None:
    numbers: Iterator[int] = count()
    assert list(islice(batched(numbers, 3), 2)) == [[0, 1, 2], [3, 4, 5]]
    assert next(numbers) == 6
