"""What a worker process needs besides the broker: its configuration, its container and a log."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess

from backend.container import Container
from backend.settings import Settings
from backend.store.database import Database
from backend.sync.wakeup_messages import Queue
from backend.version import describe_version
from backend.worker.logs import configure_logging

CONCURRENCY: Mapping[Queue, int] = {"fetch": 8, "index": 1, "light": 2}
"""Tasks at once. Indexing has one, because the model uses all processors by itself."""

MISCONFIGURED = 78
"""The exit code of a process that starting again does not help (EX_CONFIG)."""

LOG = logging.getLogger("quarry.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """The configuration of a process that works on one queue."""

    queue: Queue
    concurrency: int
    metrics: tuple[str, int] | None = None
    """The address on which it serves metrics."""


class LogOnChange:
    """Logs what prevents work once, and again only when it changes."""

    def __init__(self) -> None:
        self.trouble: str | None = None

    def note(self, error: Exception | None) -> None:
        trouble = None if error is None else str(error)
        if trouble and trouble != self.trouble:
            LOG.warning("%s", trouble)
        if self.trouble and not trouble:
            LOG.info("Work continues.")
        self.trouble = trouble


class ContainerProvider:
    """The container of a worker: a new one after a switch to another index version."""

    def __init__(self, settings: Settings) -> None:
        self._lock = threading.Lock()
        self._container = Container(settings)

    @property
    def database(self) -> Database:
        with self._lock:
            return self._container.database

    def __call__(self) -> Container:
        """Return the home as it is now, its parts opened.

        Raises:
            TemporarilyUnavailableError, ActionRequiredError: a part of it cannot be opened.
        """
        with self._lock:
            container = self._container
            active = container.engine.versions.active()
            if active is not None and active.embedder != container.engine.version.embedder:
                container = container.reopen()
            # Opened here, once, before several threads use them.
            for part in (container.database, container.sources.ledger, container.engine.writer):
                del part
            self._container = container
        return container


def start_logging() -> None:
    configure_logging()
    LOG.info("%s", describe_version())


def watch_parent(end: Callable[[], object]) -> None:
    """Call `end` once the supervisor of this process was killed: nobody else would end it."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(
            target=_end_after, args=(parent, end), name="watch parent", daemon=True
        ).start()


def _end_after(parent: BaseProcess, end: Callable[[], object]) -> None:
    parent.join()
    end()
