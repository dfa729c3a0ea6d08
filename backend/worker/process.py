"""What a process that works over a broker needs, whatever the broker: its config, its home, and a log."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from backend.container import Container
from backend.settings import Settings
from backend.store.database import Database
from backend.sync.wakeup_messages import Queue
from backend.version import describe_version
from backend.worker.logs import configure_logging

CONCURRENCY: Mapping[Queue, int] = {"fetch": 8, "index": 1, "light": 2}
"""Sources read at once; one model, which uses the processors by itself; sources compared at once."""

LOG = logging.getLogger("quarry.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """One process that works on one queue."""

    queue: Queue
    concurrency: int
    metrics: tuple[str, int] | None = None
    """The address on which its metrics are told."""


class LogOnChange:
    """What keeps from working is logged once, and again only when it has changed."""

    def __init__(self) -> None:
        self.trouble: str | None = None

    def note(self, error: Exception | None) -> None:
        trouble = None if error is None else str(error)
        if trouble and trouble != self.trouble:
            LOG.warning("%s", trouble)
        if self.trouble and not trouble:
            LOG.info("It goes on.")
        self.trouble = trouble


class ContainerProvider:
    """The Quarry of a worker: a new one, once its index was switched to another index version."""

    def __init__(self, settings: Settings) -> None:
        self._lock = threading.Lock()
        self._container = Container(settings)

    @property
    def database(self) -> Database:
        with self._lock:
            return self._container.database

    def __call__(self) -> Container:
        """Raises TemporarilyUnavailableError, ActionRequiredError: a part of it cannot be had."""
        with self._lock:
            container = self._container
            active = container.engine.versions.active()
            if active is not None and active.embedder != container.engine.version.embedder:
                container = container.reopen()
            # Made once, before several threads ask for them.
            for part in (container.database, container.ledger, container.engine.writer):
                del part
            self._container = container
        return container


def start_logging() -> None:
    configure_logging()
    LOG.info("%s", describe_version())
