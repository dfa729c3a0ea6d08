"""Wakes those who follow a turn that this process runs, when more of it is stored."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Wake: TypeAlias = Callable[[], object]
"""Called by the thread that stores turns; it neither waits nor fails."""


class TurnNews:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listening: dict[int, set[Wake]] = {}

    def announce(self, message_id: int) -> None:
        with self._lock:
            for wake in self._listening.get(message_id, ()):
                wake()

    @contextmanager
    def listen(self, message_id: int, wake: Wake) -> Iterator[None]:
        """Call `wake` with all news of a turn during the block."""
        with self._lock:
            self._listening.setdefault(message_id, set()).add(wake)
        try:
            yield
        finally:
            with self._lock:
                listening = self._listening[message_id]
                listening.discard(wake)
                if not listening:
                    del self._listening[message_id]
