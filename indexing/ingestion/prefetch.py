"""Reads a source in a thread of its own, while earlier changes are saved and indexed."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition
from typing import TypeAlias

from connectors.connector import Change
from connectors.document import Document

MAX_CHANGES = 1000
MAX_CHARACTERS = 2_000_000
IDLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Idle:
    """The source has yielded nothing for a while."""


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
