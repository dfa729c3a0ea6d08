"""Many items, some at a time: each portion is asked for, and done with, as one."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """All items in their order, `size` of them in each list; in the last one what is left."""
    remaining = iter(items)
    while portion := list(islice(remaining, size)):
        yield portion
