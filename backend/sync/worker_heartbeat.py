"""The heartbeat of a worker process, in a thread of its own."""

import threading
from collections.abc import Callable
from contextlib import suppress

from backend.store.database import Database
from backend.store.sync import workers
from backend.sync.run_lease import this_process
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

BEAT_SECONDS = 15.0
"""Seconds between two heartbeats."""
SERVE = "serve"
"""The queue name of the threads of `quarry serve`, which work on all queues."""


class WorkerHeartbeat:
    """Registers the process from `start` until `stopping` is set, and unregisters it at the end.

    Args:
        database: called each time; it may raise TemporarilyUnavailableError or ActionRequiredError.
    """

    def __init__(
        self, database: Callable[[], Database], queue: str, stopping: threading.Event
    ) -> None:
        self._database = database
        self._queue = queue
        self._stopping = stopping
        self._thread = threading.Thread(target=self._go_on, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for its end, but no longer than so many seconds."""
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _go_on(self) -> None:
        while not self._stopping.is_set():
            with suppress(TemporarilyUnavailableError, ActionRequiredError):
                workers.register(self._database(), this_process(), self._queue)
            self._stopping.wait(BEAT_SECONDS)
        with suppress(TemporarilyUnavailableError, ActionRequiredError):
            workers.unregister(self._database(), this_process())
