"""Changes gathered over documents, so that embedder, index and ledger are each called rarely."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from connectors.connector import Change, Checkpoint, Deletion, Unchanged, Unreadable
from connectors.document import Document
from indexing.ingestion.prefetch import Idle, characters

DocumentChange: TypeAlias = Document | Deletion | Unchanged | Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """A batch ends with whichever is reached first; one document may exceed the characters."""

    documents: int = 256
    first: int = 8
    """Documents of the first batch; of each that follows twice as many, up to `documents`. So the first can
    be embedded while the source is read on."""
    characters: int = 300_000
    changes: int = 1000
    seconds: float = 5.0
    """Since its first change was taken."""


@dataclass(frozen=True, slots=True)
class Batch:
    changes: tuple[DocumentChange, ...]
    """No two of the same document. None at all means that the source is being waited for."""
    checkpoint: Checkpoint | None
    """All changes before it are in this batch or in earlier ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A batch that was saved, and that one worker holds for a while."""

    number: int
    """Grows with every batch; what is written of it is no older than this generation."""
    fence: int
    """Grows with every worker that takes it."""
    source: str
    changes: tuple[DocumentChange, ...]
    is_still: Callable[[], bool]
    """Whether no other worker has taken it."""


def document_id(change: DocumentChange) -> str:
    return change.id if isinstance(change, Document) else change.document_id


def item_of(changes: Sequence[DocumentChange]) -> str | None:
    """The name of the last of them, for people."""
    match changes:
        case (*_, Document(title=title)):
            return title
        case (*_, Unreadable(item=item)):
            return item
        case (*_, last):
            return document_id(last)
        case _:
            return None


def batches(stream: Iterable[Change | Idle], size: BatchSize) -> Iterator[Batch]:
    """The changes in their order, in batches."""
    pending = _Pending(size)
    for change in stream:
        match change:
            case Idle():
                yield pending.taken()
            case Checkpoint():
                pending.checkpoint = change
            case _:
                if document_id(change) in pending.changes:
                    yield pending.taken()
                pending.add(change)
        if pending.is_full():
            yield pending.taken()
    if pending.changes or pending.checkpoint:
        yield pending.taken()


class Weighty(Protocol):
    @property
    def characters(self) -> int: ...


W = TypeVar("W", bound=Weighty)


def weighed(items: Iterable[W], characters: int) -> Iterator[list[W]]:
    """The items in lists that end with the one that reaches so many characters."""
    page: list[W] = []
    weight = 0
    for item in items:
        page.append(item)
        weight += item.characters
        if weight >= characters:
            yield page
            page, weight = [], 0
    if page:
        yield page


class _Pending:
    def __init__(self, size: BatchSize) -> None:
        self._size = size
        self._most = min(size.first, size.documents)
        self._begin()

    def _begin(self) -> None:
        self.changes: dict[str, DocumentChange] = {}
        self.checkpoint: Checkpoint | None = None
        self._documents = 0
        self._characters = 0
        self._began = time.monotonic()

    def add(self, change: DocumentChange) -> None:
        if not self.changes:
            self._began = time.monotonic()
        self.changes[document_id(change)] = change
        self._documents += isinstance(change, Document)
        self._characters += characters(change)

    def is_full(self) -> bool:
        return bool(self.changes) and (
            self._documents >= self._most
            or self._characters >= self._size.characters
            or len(self.changes) >= self._size.changes
            or time.monotonic() - self._began >= self._size.seconds
        )

    def taken(self) -> Batch:
        batch = Batch(tuple(self.changes.values()), self.checkpoint)
        if self._documents >= self._most:
            self._most = min(2 * self._most, self._size.documents)
        self._begin()
        return batch
