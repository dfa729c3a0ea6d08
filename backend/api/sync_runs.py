"""Syncs started over HTTP: one run of a source at a time, with any number of followers.

A run that another process of the server has started is followed like one of this process.

A run continues when its last follower disconnects; only the end of the server stops it, between two
steps, and the next sync continues from its checkpoint.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from typing import TypeAlias

from backend.api.followed_run import find_run_of, follow_run
from backend.api.server_sent_events import BROKEN, Event, Events
from backend.schemas.run import ProgressEvent, SyncReport
from backend.sources.status_text import describe_progress
from backend.store.sync.runs import Process, Run
from backend.store.sync.sources import Source
from backend.sync.due_work import SyncParts
from backend.sync.foreground_run import sync
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.ingestion.pipeline import EmptyListing
from indexing.ingestion.progress import Progress, Report
from indexing.runtime.deadline import Deadline

PACE = 0.1
"""Seconds between two progress events: a follower gets the latest, not each."""
LOG = logging.getLogger("quarry.syncs")
STOPPED = "It was stopped before it was done; the next sync goes on from there."

Steps: TypeAlias = Callable[[], Generator[Progress | Report, None, None]]


class SyncRun:
    """One run, in a thread of its own. Followers are woken, and read what is the latest."""

    def __init__(self, source: str, steps: Steps) -> None:
        self.source = source
        self.began = datetime.now(UTC)
        self._steps = steps
        self._lock = threading.Lock()
        self._latest: Progress | None = None
        self._end: Event | None = None
        self._wakers: list[Callable[[], object]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"sync {source}", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return self._end is not None

    def stop(self) -> None:
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Wait for its end, but no longer than so many seconds."""
        self._thread.join(seconds)

    async def follow(self) -> Events:
        """Yield the latest progress, at most every tenth of a second, and the end."""
        sent: Progress | None = None
        with self._subscribed() as awake:
            while True:
                await awake.wait()
                awake.clear()
                latest, end = self._latest, self._end
                if latest is not None and latest is not sent:
                    sent = latest
                    yield Event("progress", _to_event(latest))
                if end is not None:
                    yield end
                    return
                await asyncio.sleep(PACE)

    @contextmanager
    def _subscribed(self) -> Iterator[asyncio.Event]:
        loop, awake = asyncio.get_running_loop(), asyncio.Event()
        awake.set()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: the server has ended
                loop.call_soon_threadsafe(awake.set)

        with self._lock:
            self._wakers.append(wake)
        try:
            yield awake
        finally:
            with self._lock:
                self._wakers.remove(wake)

    def _work(self) -> None:
        end = BROKEN
        try:
            report = self._run_steps()
            error = None if report else STOPPED
            end = Event("done", SyncReport.from_report(self.source, report or Report(), error))
        except (ActionRequiredError, TemporarilyUnavailableError) as failure:
            end = Event("done", SyncReport.from_report(self.source, Report(), str(failure)))
        except Exception:
            # An error in the program. The thread ends here: it is logged, and the followers get an event.
            LOG.exception("The sync of %s failed.", self.source)
        finally:
            self._end = end
            self._wake()

    def _run_steps(self) -> Report | None:
        """Return the report; None if the run was stopped before."""
        with closing(self._steps()) as steps:
            for step in steps:
                if isinstance(step, Report):
                    return step
                self._latest = step
                self._wake()
                if self._stopping.is_set():
                    break
        return None

    def _wake(self) -> None:
        with self._lock:
            wakers = list(self._wakers)
        for wake in wakers:
            wake()


def _to_event(progress: Progress) -> ProgressEvent:
    event = ProgressEvent.model_validate(progress)
    return event.model_copy(update={"text": describe_progress(progress)})


OtherServers: TypeAlias = Callable[[], Collection[Process]]
"""The other processes that serve requests of the same server."""


def no_other_servers() -> Collection[Process]:
    return ()


class SyncRunRegistry:
    """The runs of this process, and those of others that are followed."""

    def __init__(
        self, find_parts: Callable[[], SyncParts], other_servers: OtherServers = no_other_servers
    ) -> None:
        self.other_servers = other_servers
        self._find_parts = find_parts
        self._lock = threading.Lock()
        self._runs: dict[str, SyncRun] = {}

    def running(self, source: str) -> SyncRun | None:
        run = self._runs.get(source)
        return None if run is None or run.is_over else run

    def begin(self, source: Source, when_empty: EmptyListing) -> SyncRun:
        """Return the run in progress, or start one."""
        return self._start(source.name, lambda: self._steps(source, when_empty))

    def follow(self, run: Run) -> SyncRun:
        """Return the run in progress in this process, or follow this one of another, which may be over by now."""
        return self._start(run.source, lambda: follow_run(self._find_parts().database, run.id))

    def _start(self, source: str, steps: Steps) -> SyncRun:
        with self._lock:
            run = self.running(source)
            if run is None:
                run = self._runs[source] = SyncRun(source, steps)
        return run

    def _steps(
        self, source: Source, when_empty: EmptyListing
    ) -> Generator[Progress | Report, None, None]:
        """Sync the source, or follow the process that does."""
        parts = self._find_parts()
        try:
            yield from _sync(parts, source, when_empty)
        except TemporarilyUnavailableError:
            # Perhaps another process began before this one.
            run = find_run_of(parts.database, source.name, self.other_servers())
            if run is None:
                raise
            yield from follow_run(parts.database, run.id)

    def stop(self, seconds: float) -> None:
        """Stop all runs after their current step; wait at most `seconds`."""
        runs = [run for run in self._runs.values() if not run.is_over]
        for run in runs:
            run.stop()
        deadline = Deadline.after(seconds)
        for run in runs:
            run.join(deadline.remaining())

    def unfinished(self) -> list[str]:
        """Return the sources whose runs are in progress."""
        return [run.source for run in self._runs.values() if not run.is_over]


def _sync(
    parts: SyncParts, source: Source, when_empty: EmptyListing
) -> Generator[Progress | Report, None, None]:
    connector, pipeline = parts.connector(source), parts.pipeline(source)
    yield from sync(parts.database, source, connector, pipeline, when_empty)
