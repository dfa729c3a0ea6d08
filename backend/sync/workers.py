"""The engine's work in threads of this process, for as long as it runs."""

import logging
import threading
import time
from collections.abc import Callable

from backend.sync.engine import Engine
from backend.sync.heartbeat import Stopped
from connectors.errors import AskTheOwner, RetryLater

PAUSE = 2.0
"""Seconds between two looks for work, where nothing in this process tells of any."""
READERS = 8
"""Sources that are read at once: one that answers slowly is not to keep the others waiting."""

LOG = logging.getLogger("quarry.workers")


class Workers:
    """Threads that do what is due: they read, they index, and they compare with listings.

    Args:
        is_ready: waited for before anything begins.
    """

    def __init__(
        self, engine: Engine, is_ready: Callable[[float], bool], pause: float = PAUSE
    ) -> None:
        self._engine = engine
        self._is_ready = is_ready
        self._pause = pause
        read = ("fetch worker", engine.fetch_due, engine.stopping.wait)
        index = ("index worker", engine.index_due, engine.pulse.wait)
        light = ("light worker", engine.light_due, engine.stopping.wait)
        self._threads = [
            threading.Thread(target=self._work, args=(due, rest), name=name, daemon=True)
            for name, due, rest in (*(read for _ in range(READERS)), index, light)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> bool:
        """End between two steps; whether all had ended within so many seconds."""
        self._engine.stopping.set()
        self._engine.pulse.notify()
        end = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self, due: Callable[[], bool], rest: Callable[[float], object]) -> None:
        stopping = self._engine.stopping
        while not stopping.is_set():
            if not self._is_ready(self._pause):
                continue
            try:
                found = due()
            except Stopped:
                return
            except (AskTheOwner, RetryLater) as error:
                LOG.warning("Nothing could be done: %s", error)
                found = False
            except Exception:
                # A mistake in the program. The work goes on: other sources are not to suffer from it.
                LOG.exception("A worker met a mistake.")
                found = False
            if not found:
                rest(self._pause)
