"""Split an iterable into batches. `itertools.batched` needs Python 3.12."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield all items in order, in lists of `size`; the last list may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
