"""A worker says that it lives, every few seconds, in a thread of its own; and learns that it is to stop."""

import threading
from datetime import UTC, datetime, timedelta
from types import TracebackType

from backend.store import batches, runs
from backend.store.batches import LEASE
from backend.store.database import Database
from backend.store.runs import Ended
from connectors.errors import AskTheOwner, RetryLater
from indexing.batches import Held

BEAT = 2.0
"""Seconds between two signs of life; within so many a worker learns that its run was cancelled."""


class Stopped(Exception):
    """The process is to end; what it works on is gone on with by the next."""


class Pulse:
    """Wakes those who wait in this process for something that changed in the database."""

    def __init__(self) -> None:
        self._changed = threading.Condition()

    def notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Until something changed here, but no longer: others change it too."""
        with self._changed:
            self._changed.wait(seconds)


class Heartbeat:
    """Keeps up the lease of one run, where there is one, and of the batches that are taken meanwhile."""

    def __init__(
        self,
        database: Database,
        run: int | None = None,
        stopping: threading.Event | None = None,
        lease: timedelta = LEASE,
    ) -> None:
        self._database = database
        self._run = run
        self._lease = lease
        self._stopping = stopping or threading.Event()
        self._lock = threading.Lock()
        self._held: set[tuple[int, int]] = set()
        self._ended: Ended | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """What is held still is given back."""
        del kind, error, trace
        self._over.set()
        self._thread.join()
        if self._held:
            batches.release(self._database, self._held)

    def check(self) -> None:
        """Raises Ended, Stopped: the work is to end here."""
        if self._ended is not None:
            raise self._ended
        if self._stopping.is_set():
            raise Stopped

    def take(self, held: Held) -> None:
        with self._lock:
            self._held.add((held.number, held.fence))

    def held(self) -> set[tuple[int, int]]:
        """Numbers and fences of the batches that were taken and are, as far as is known, not finished."""
        with self._lock:
            return set(self._held)

    def _go_on(self) -> None:
        while not self._over.is_set() and self._ended is None:
            # What keeps the database from answering ends; a lease lasts longer than that may take.
            try:
                self._beat()
            except Ended as error:
                self._ended = error
            except (RetryLater, AskTheOwner):
                pass
            self._over.wait(BEAT)

    def _beat(self) -> None:
        held = self.held()
        if held:
            still = batches.renew(self._database, held, self._lease)
            with self._lock:
                self._held -= held - still
        if self._run is not None:
            runs.beat(self._database, self._run, datetime.now(UTC) + self._lease)
