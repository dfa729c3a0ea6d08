"""Reads a source ahead, and groups its changes into batches.

It is read in a thread of its own, while earlier changes are saved and indexed; batches, so that embedder, index
and ledger are called rarely.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Condition
from typing import Protocol, TypeAlias, TypeVar

from connectors.connector import Change, Checkpoint, Deletion, DocumentCount, Unchanged, Unreadable
from connectors.document import Document

DocumentChange: TypeAlias = Document | Deletion | Unchanged | Unreadable

MAX_CHANGES = 1000
MAX_CHARACTERS = 2_000_000
IDLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Idle:
    """The source has yielded nothing for a while."""


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
    document_count: int | None = None
    """How many documents the source has, in the batch in which it says so."""


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
            case DocumentCount(documents=count):
                yield replace(pending.take_batch(), document_count=count)
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


@dataclass(frozen=True, slots=True)
class _End:
    """The source will yield nothing more."""


_Item: TypeAlias = Change | Idle | _End


def count_characters(change: Change) -> int:
    """Return the characters of a change, as an estimate of the memory it takes."""
    if isinstance(change, Document):
        return len(change.title) + sum(len(section.text) for section in change.sections)
    return 0


def read_ahead(
    changes: Iterable[Change], idle_after: float = IDLE_SECONDS
) -> Generator[Change | Idle, None, None]:
    """Yield the same changes in the same order, and `Idle` after each `idle_after` seconds without one.

    At most a thousand changes or two million characters are buffered, or one longer change. An error of the
    source is raised after the changes that came before it. Closing the generator waits until the source has
    yielded once more or ended.
    """
    buffer = _BoundedBuffer()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="reader") as pool:
        reading = pool.submit(_fill, iter(changes), buffer)
        try:
            while not isinstance(item := buffer.take(idle_after), _End):
                yield item
            reading.result()
        finally:
            buffer.close()


def _fill(changes: Iterator[Change], buffer: "_BoundedBuffer") -> None:
    try:
        for change in changes:
            if not buffer.put(change):
                break
        if isinstance(changes, Generator):
            changes.close()
    finally:
        buffer.end()


class _BoundedBuffer:
    """A queue of changes between two threads, bounded by number and by characters."""

    def __init__(self) -> None:
        self._changes: deque[Change] = deque()
        self._characters = 0
        self._ended = False
        self._closed = False
        self._changed = Condition()

    def put(self, change: Change) -> bool:
        """Wait for space, add the change, and return whether more is wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_space())
            self._changes.append(change)
            self._characters += count_characters(change)
            self._changed.notify_all()
            return not self._closed

    def take(self, timeout: float) -> _Item:
        with self._changed:
            self._changed.wait_for(lambda: self._changes or self._ended, timeout=timeout)
            if not self._changes:
                return _End() if self._ended else Idle()
            change = self._changes.popleft()
            self._characters -= count_characters(change)
            self._changed.notify_all()
            return change

    def end(self) -> None:
        """Signal that no change will be added."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self) -> None:
        """Signal that no change will be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_space(self) -> bool:
        return len(self._changes) < MAX_CHANGES and self._characters < MAX_CHARACTERS
