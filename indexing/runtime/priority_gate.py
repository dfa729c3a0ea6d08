"""Lets work that may wait do so while more urgent work is under way.

All threads of a process share the interpreter's lock: each one that is busy makes every other wait again and again.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class PriorityGate:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent = 0
        self._first_in_line = threading.Lock()
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

    def wait(self, seconds: float) -> None:
        """Wait until no urgent work is under way; where there always is some, one of those who wait goes on every so many seconds."""
        if not self._is_free.is_set():
            with self._first_in_line:
                self._is_free.wait(seconds)
