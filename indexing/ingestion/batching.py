"""Groups the changes of a source into batches, so that embedder, index and ledger are called rarely."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from connectors.connector import Change, Checkpoint, Deletion, Unchanged, Unreadable
from connectors.document import Document
from indexing.ingestion.prefetch import Idle, count_characters

DocumentChange: TypeAlias = Document | Deletion | Unchanged | Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """A batch ends with whichever limit is reached first; one document may exceed the characters."""

    documents: int = 256
    first: int = 8
    """Documents of the first batch. Each following batch has twice as many, up to `documents`, so that
    embedding starts early while the source is still being read."""
    characters: int = 300_000
    changes: int = 1000
    seconds: float = 5.0
    """Since the first change of the batch was read."""


@dataclass(frozen=True, slots=True)
class Batch:
    changes: tuple[DocumentChange, ...]
    """At most one per document. Empty while the source is being waited for."""
    checkpoint: Checkpoint | None
    """All changes before it are in this batch or in earlier ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedBatch:
    """A saved batch, held by one worker under a lease."""

    number: int
    """Grows with every batch; the lowest generation of the document versions that the batch writes."""
    fence: int
    """Grows with every claim of the batch: the fencing token of the lease."""
    source: str
    changes: tuple[DocumentChange, ...]
    is_current: Callable[[], bool]
    """Whether no other worker has claimed the batch since."""


def document_id(change: DocumentChange) -> str:
    return change.id if isinstance(change, Document) else change.document_id


def describe_last_change(changes: Sequence[DocumentChange]) -> str | None:
    match changes:
        case (*_, Document(title=title)):
            return title
        case (*_, Unreadable(item=item)):
            return item
        case (*_, last):
            return document_id(last)
        case _:
            return None


def group_changes(stream: Iterable[Change | Idle], size: BatchSize) -> Iterator[Batch]:
    """Group the changes into batches, in their order."""
    pending = _Pending(size)
    for change in stream:
        match change:
            case Idle():
                yield pending.take_batch()
            case Checkpoint():
                pending.checkpoint = change
            case _:
                if document_id(change) in pending.changes:
                    yield pending.take_batch()
                pending.add(change)
        if pending.is_full():
            yield pending.take_batch()
    if pending.changes or pending.checkpoint:
        yield pending.take_batch()


class Sized(Protocol):
    @property
    def characters(self) -> int: ...


S = TypeVar("S", bound=Sized)


def group_by_characters(items: Iterable[S], characters: int) -> Iterator[list[S]]:
    """Group the items into lists that end with the item that reaches so many characters."""
    page: list[S] = []
    total = 0
    for item in items:
        page.append(item)
        total += item.characters
        if total >= characters:
            yield page
            page, total = [], 0
    if page:
        yield page


class _Pending:
    """The batch that is being filled."""

    def __init__(self, size: BatchSize) -> None:
        self._size = size
        self._max_documents = min(size.first, size.documents)
        self._reset()

    def _reset(self) -> None:
        self.changes: dict[str, DocumentChange] = {}
        self.checkpoint: Checkpoint | None = None
        self._documents = 0
        self._characters = 0
        self._started = time.monotonic()

    def add(self, change: DocumentChange) -> None:
        if not self.changes:
            self._started = time.monotonic()
        self.changes[document_id(change)] = change
        self._documents += isinstance(change, Document)
        self._characters += count_characters(change)

    def is_full(self) -> bool:
        return bool(self.changes) and (
            self._documents >= self._max_documents
            or self._characters >= self._size.characters
            or len(self.changes) >= self._size.changes
            or time.monotonic() - self._started >= self._size.seconds
        )

    def take_batch(self) -> Batch:
        batch = Batch(tuple(self.changes.values()), self.checkpoint)
        if self._documents >= self._max_documents:
            self._max_documents = min(2 * self._max_documents, self._size.documents)
        self._reset()
        return batch
