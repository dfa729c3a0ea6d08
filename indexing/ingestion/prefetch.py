"""A source is read in a thread of its own, while what it yielded before is embedded."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition
from typing import TypeAlias

from connectors.connector import Change
from connectors.document import Document

CHANGES_AHEAD = 1000
CHARACTERS_AHEAD = 2_000_000
PATIENCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Idle:
    """The source has yielded nothing for a while."""


@dataclass(frozen=True, slots=True)
class _End:
    """The source will yield nothing more."""


_Item: TypeAlias = Change | Idle | _End


def characters(change: Change) -> int:
    """What a change weighs in memory."""
    if isinstance(change, Document):
        return len(change.title) + sum(len(section.text) for section in change.sections)
    return 0


def read_ahead(
    changes: Iterable[Change], patience: float = PATIENCE_SECONDS
) -> Generator[Change | Idle, None, None]:
    """The same changes in the same order, and `Idle` after each `patience` seconds without one.

    At most a thousand changes or two million characters wait to be taken, or one change that is
    longer. An error of the source comes after the changes that came before it. Closing it waits
    until the source has yielded once more or ended.
    """
    shelf = _Shelf()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="reader") as pool:
        reading = pool.submit(_read, iter(changes), shelf)
        try:
            while not isinstance(item := shelf.take(patience), _End):
                yield item
            reading.result()
        finally:
            shelf.close()


def _read(changes: Iterator[Change], shelf: "_Shelf") -> None:
    try:
        for change in changes:
            if not shelf.put(change):
                break
        if isinstance(changes, Generator):
            changes.close()
    finally:
        shelf.end()


class _Shelf:
    """Holds what was read and not yet taken; bounded by weight."""

    def __init__(self) -> None:
        self._changes: deque[Change] = deque()
        self._weight = 0
        self._ended = False
        self._closed = False
        self._moved = Condition()

    def put(self, change: Change) -> bool:
        """Wait for room, and say whether anybody still wants it."""
        with self._moved:
            self._moved.wait_for(lambda: self._closed or self._has_room())
            self._changes.append(change)
            self._weight += characters(change)
            self._moved.notify_all()
            return not self._closed

    def take(self, patience: float) -> _Item:
        with self._moved:
            self._moved.wait_for(lambda: self._changes or self._ended, timeout=patience)
            if not self._changes:
                return _End() if self._ended else Idle()
            change = self._changes.popleft()
            self._weight -= characters(change)
            self._moved.notify_all()
            return change

    def end(self) -> None:
        with self._moved:
            self._ended = True
            self._moved.notify_all()

    def close(self) -> None:
        with self._moved:
            self._closed = True
            self._moved.notify_all()

    def _has_room(self) -> bool:
        return len(self._changes) < CHANGES_AHEAD and self._weight < CHARACTERS_AHEAD
