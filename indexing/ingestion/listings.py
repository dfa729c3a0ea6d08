"""The listing of a source: its pages, from which it resumes, and what stops a deletion where it is implausibly short."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from connectors.connector import Checkpoint, DocumentListing, ListingItem
from connectors.errors import ActionRequiredError, ConflictError, TemporarilyUnavailableError
from indexing.text.normalization import pluralize

_PAGE_SECONDS = 5.0
"""A page with a checkpoint is not held back for longer, so that a killed process loses little of a slow listing."""

MAX_MISSING = 50
MAX_MISSING_SHARE = 0.2
"""A person must approve where more documents are missing than this number and this share of the source."""
SMALL_SOURCE_MAX_MISSING = 5
SMALL_SOURCE_MAX_MISSING_SHARE = 0.5
"""The same for a source that is too small to ever miss more than `MAX_MISSING` documents, such as one of thirty."""


@dataclass(frozen=True, slots=True)
class ListingPage:
    documents: tuple[DocumentListing, ...]
    reached: Checkpoint | None
    """Everything before it is in this page or in earlier ones; None if the page has none."""


def group_listing(
    listing: Iterable[ListingItem], size: int = 500, seconds: float = _PAGE_SECONDS
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionGuard:
    source: str
    held: int
    """Documents in the ledger before the listing."""
    listed: int
    missing: int
    """Held documents that the listing does not contain."""

    def check(self, accepted: int) -> None:
        """Refuse the deletion of too many documents.

        Args:
            accepted: how many missing documents a person has approved.

        Raises:
            DeletionNeedsApprovalError: too many documents are missing, and more than were accepted.
        """
        empty = self.missing > 0 and not self.listed
        if (self._is_too_many or empty) and self.missing > accepted:
            raise DeletionNeedsApprovalError(self)

    @property
    def _is_too_many(self) -> bool:
        return any(
            self.missing > number and self.missing > share * self.held
            for number, share in (
                (MAX_MISSING, MAX_MISSING_SHARE),
                (SMALL_SOURCE_MAX_MISSING, SMALL_SOURCE_MAX_MISSING_SHARE),
            )
        )


_NOTHING_DELETED = "Nothing was deleted. A decision is needed."


class DeletionNeedsApprovalError(ConflictError):
    """A listing would delete so many documents that a person must approve first."""

    def __init__(self, guard: DeletionGuard) -> None:
        super().__init__(_empty_message(guard) if not guard.listed else _short_message(guard))
        self.guard = guard


def _empty_message(guard: DeletionGuard) -> str:
    indexed = pluralize(guard.held, "document is", "documents are")
    return f"Source {guard.source!r} lists no documents, but {indexed} in the index. {_NOTHING_DELETED}"


def _short_message(guard: DeletionGuard) -> str:
    return (
        f"Source {guard.source!r} lists {guard.listed:,} documents, and {guard.missing:,} of the"
        f" {guard.held:,} indexed documents are missing from the list. {_NOTHING_DELETED}"
    )
