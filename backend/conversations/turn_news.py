"""Wakes those who follow a turn that this process runs, when more of it is stored."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TurnNews:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listening: dict[int, set[threading.Event]] = {}

    def announce(self, message_id: int) -> None:
        with self._lock:
            for each in self._listening.get(message_id, ()):
                each.set()

    @contextmanager
    def listen(self, message_id: int) -> Iterator[threading.Event]:
        """Yield what is set by the next news of a turn, and is to be cleared by the listener."""
        event = threading.Event()
        with self._lock:
            self._listening.setdefault(message_id, set()).add(event)
        try:
            yield event
        finally:
            with self._lock:
                listening = self._listening[message_id]
                listening.discard(event)
                if not listening:
                    del self._listening[message_id]
