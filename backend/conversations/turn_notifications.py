"""Wakes those who follow a turn or a research run, when more of it is stored: by this process, or by another one that says so."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

FollowedId: TypeAlias = int | str
"""Of an answer, or of a research run."""
Wake: TypeAlias = Callable[[], object]
"""Called by the thread that stores turns; it neither waits nor fails."""


def _hear_none() -> bool:
    return False


class TurnNotifications:
    """Those who follow turns and research runs in this process.

    Args:
        hear_others: asks for news of other processes, for a while from then on; returns whether they come already.
    """

    def __init__(self, hear_others: Callable[[], bool] = _hear_none) -> None:
        self.hear_others = hear_others
        self._lock = threading.Lock()
        self._listening: dict[FollowedId, set[Wake]] = {}

    def announce(self, followed_id: FollowedId) -> None:
        with self._lock:
            for wake in self._listening.get(followed_id, ()):
                wake()

    def announce_all(self) -> None:
        """Have all look, since news may have been missed."""
        with self._lock:
            for listening in self._listening.values():
                for wake in listening:
                    wake()

    @contextmanager
    def listen(self, followed_id: FollowedId, wake: Wake) -> Iterator[None]:
        """Call `wake` with all news of it during the block."""
        with self._lock:
            self._listening.setdefault(followed_id, set()).add(wake)
        try:
            yield
        finally:
            with self._lock:
                listening = self._listening[followed_id]
                listening.discard(wake)
                if not listening:
                    del self._listening[followed_id]
