"""Lets work that may wait do so while more urgent work is under way.

All threads of a process share the interpreter's lock: each one that is busy makes every other wait again and again.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SPACING = 0.02
"""Seconds between two who go on: all that waited would else go on at once, and the next urgent work come behind them."""


class PriorityGate:
    """Held by urgent work. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent = 0
        self._is_free = threading.Event()
        self._is_free.set()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Do urgent work during the block."""
        with self._lock:
            self._urgent += 1
            self._is_free.clear()
        try:
            yield
        finally:
            with self._lock:
                self._urgent -= 1
                if not self._urgent:
                    self._is_free.set()

    @property
    def is_free(self) -> bool:
        """Whether no urgent work is under way."""
        return self._is_free.is_set()

    def wait_until_free(self, seconds: float) -> None:
        """Wait until no urgent work is under way, but no longer than this."""
        self._is_free.wait(seconds)


class WaitingLine:
    """A line in front of a gate, of work of one kind. Safe to use from several threads."""

    def __init__(self, gate: PriorityGate) -> None:
        self._gate = gate
        self._first_in_line = threading.Lock()
        self._next_at = 0.0

    def wait(self, seconds: float) -> None:
        """Wait until no urgent work is under way; where there always is some, one of those who wait goes on every so many seconds."""
        if self._gate.is_free and not self._first_in_line.locked():
            return
        with self._first_in_line:
            time.sleep(max(0.0, self._next_at - time.monotonic()))
            self._gate.wait_until_free(seconds)
            self._next_at = time.monotonic() + SPACING
