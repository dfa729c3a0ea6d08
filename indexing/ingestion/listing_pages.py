"""Groups a listing into pages, each with the checkpoint from which the listing resumes after it."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from connectors.connector import Checkpoint, DocumentListing, ListingItem
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

_SECONDS = 5.0
"""A page with a checkpoint is not held back for longer, so that a killed process loses little of a slow listing."""


@dataclass(frozen=True, slots=True)
class ListingPage:
    documents: tuple[DocumentListing, ...]
    reached: Checkpoint | None
    """Everything before it is in this page or in earlier ones; None if the page has none."""


def group_listing(
    listing: Iterable[ListingItem], size: int = 500, seconds: float = _SECONDS
) -> Iterator[ListingPage]:
    """Group a listing into pages of at most `size` documents, in their order.

    An error of the source is raised after a page of what came before it: a source that answers few requests at a
    time gets further with every try.
    """
    pending = _PendingPage(size, seconds)
    try:
        for item in listing:
            pending.add(item)
            if pending.is_full():
                yield pending.take()
    except (TemporarilyUnavailableError, ActionRequiredError):
        if pending:
            yield pending.take()
        raise
    if pending:
        yield pending.take()


class _PendingPage:
    """The page that is being filled."""

    def __init__(self, size: int, seconds: float) -> None:
        self._size = size
        self._seconds = seconds
        self._documents: list[DocumentListing] = []
        self._reached: Checkpoint | None = None
        self._began = time.monotonic()

    def __bool__(self) -> bool:
        return bool(self._documents) or self._reached is not None

    def add(self, item: ListingItem) -> None:
        match item:
            case DocumentListing():
                self._documents.append(item)
            case Checkpoint():
                self._reached = item

    def is_full(self) -> bool:
        is_old = time.monotonic() - self._began >= self._seconds
        return len(self._documents) >= self._size or (self._reached is not None and is_old)

    def take(self) -> ListingPage:
        page = ListingPage(tuple(self._documents), self._reached)
        self._documents, self._reached, self._began = [], None, time.monotonic()
        return page
