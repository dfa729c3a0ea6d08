"""The lease of a run: a heartbeat thread renews it every few seconds, and learns that the run was ended.

A thread cannot be ended from outside. So if it makes no progress for too long, its heartbeat gives back what it
holds, with the reason, for another worker to claim. The fencing numbers of runs and batches make sure that
nothing is accepted of what the hung thread reports later.

A lease that has expired, or whose process has ended, is for another worker to take over.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType

from backend.store.database import Database
from backend.store.documents import batches
from backend.store.documents.batches import LEASE
from backend.store.sync import run_transitions, runs
from backend.store.sync.runs import Process, Run, RunEndedError
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.ingestion.batching import ClaimedBatch
from indexing.runtime.deadline import DeadlineExceededError

SILENCE_LIMIT = timedelta(minutes=10)
"""A process of another machine, which cannot be checked from here, counts as dead after this silence."""

_STARTED = 19

BEAT_SECONDS = 2.0
"""Seconds between two heartbeats; within this time a worker learns that its run was cancelled."""
POLL_SECONDS = 0.05
"""Seconds between two queries of who waits for a change by this process."""
IDLE_POLL_SECONDS = 0.25
"""The same after a while without changes: a query costs the processor some milliseconds."""
STALL_TIME = timedelta(minutes=15)
"""Work without progress for this time is given up. Requests to sources and to the index time out within
minutes, and the slowest models that a processor can run embed two batches in two minutes."""


def this_process() -> Process:
    return identify_process(os.getpid())


def identify_process(number: int) -> Process:
    """Return a process of this machine."""
    return Process(socket.gethostname(), number, _start_time(number))


def is_gone(run: Run) -> bool:
    """Return whether the process that holds the run has ended or lost its lease."""
    now = datetime.now(UTC)
    if run.lease_until is not None and run.lease_until < now:
        return True
    if run.lease_until is None and run.holder.host != socket.gethostname():
        return now - run.renewed_at > SILENCE_LIMIT
    return is_dead(run.holder)


def is_dead(process: Process) -> bool:
    """Return whether a process of this machine has ended; one of another machine never counts as dead."""
    if process.host != socket.gethostname():
        return False
    return not _is_alive(process.number) or _start_time(process.number) != process.started


def is_going_on(run: Run) -> bool:
    """Return whether a live process works on the run."""
    return run.state == "running" and not is_gone(run)


def find_current_run(database: Database, source: str) -> Run | None:
    """Return the run of a source that a live process works on."""
    run = runs.latest(database, source).get(source)
    return run if run and is_going_on(run) else None


def _is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_time(number: int) -> str:
    """Return the start time in clock ticks since boot, from proc(5); empty on other systems.

    Ticks, because they do not change when the clock of the machine is set.
    """
    try:
        status = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The program name in parentheses may contain anything; only numbers follow the last parenthesis.
    return status.rpartition(")")[2].split()[_STARTED]


class StoppedError(Exception):
    """The process is about to end; another one continues its work."""


class ChangeNotifier:
    """Wakes the threads of this process that wait for a change in the database.

    Args:
        look: the seconds after which they query anyway, for changes by other processes.
        ring: called with every change, to wake other processes; it neither waits nor fails.
    """

    def __init__(
        self, look: float = POLL_SECONDS, ring: Callable[[], object] = lambda: None
    ) -> None:
        self._changed = threading.Condition()
        self._changes = 0
        self._look = look
        self._ring = ring

    def notify(self) -> None:
        with self._changed:
            self._changes += 1
            self._changed.notify_all()
        self._ring()

    def wait(self) -> None:
        """Wait for a change, or until the next query is due."""
        with self._changed:
            self._changed.wait(self._look)

    def looks(self) -> "PollTimer":
        return PollTimer(self, self._look)

    @property
    def changes(self) -> int:
        """The number of changes so far."""
        return self._changes

    def wait_beyond(self, changes: int, seconds: float) -> None:
        """Wait until there were more changes, but no longer than so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._changes > changes, seconds)


class PollTimer:
    """The waits of a thread that polls for a condition; a change between two polls ends the next wait at once.

    Without changes the polls become rarer, down to four a second.
    """

    def __init__(self, notifier: ChangeNotifier, first: float) -> None:
        self._notifier = notifier
        self._first = self._seconds = first
        self._seen = notifier.changes

    def wait(self) -> None:
        self._notifier.wait_beyond(self._seen, self._seconds)
        now = self._notifier.changes
        self._seconds = self._first if now > self._seen else self._longer()
        self._seen = now

    def _longer(self) -> float:
        return min(2 * self._seconds, max(self._first, IDLE_POLL_SECONDS))


def _ignore(thread: threading.Thread) -> None:
    del thread


@dataclass(frozen=True, slots=True, kw_only=True)
class StallLimit:
    """How long work may go without progress, and what is called with a thread that stays hung."""

    still: timedelta = STALL_TIME
    stuck: Callable[[threading.Thread], object] = _ignore

    @property
    def grace(self) -> float:
        """Seconds for a thread that was given up to notice it: half a minute by default."""
        return self.still.total_seconds() / 30


class Heartbeat:
    """Renews the leases of a run, if there is one, and of the batches that are claimed meanwhile.

    Args:
        bound: without it, work may go without progress for ever.
    """

    def __init__(
        self,
        database: Database,
        run: int | None = None,
        stopping: threading.Event | None = None,
        lease: timedelta = LEASE,
        bound: StallLimit | None = None,
    ) -> None:
        self._database = database
        self._run = run
        self._lease = lease
        self._bound = bound
        self._stopping = stopping or threading.Event()
        self._lock = threading.Lock()
        self._held: set[tuple[int, int]] = set()
        self._ended: RunEndedError | None = None
        self._over = threading.Event()
        self._owner = threading.current_thread()
        self._progressed_at = time.monotonic()
        self._doing = "the work began"
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
        """Give back the batches that are still held; after a bug, to be claimed later only."""
        del kind, trace
        self._over.set()
        self._thread.join()
        held = self.held()
        if held and error is not None and is_bug(error):
            report_reliably(
                partial(batches.postpone, self._database, held, None, describe_error(error)),
                self._lease,
            )
        elif held:
            report_reliably(partial(batches.release, self._database, held), self._lease)

    def check(self) -> None:
        """Raise RunEndedError or StoppedError where the work must end here."""
        if self._ended is not None:
            raise self._ended
        if self._stopping.is_set():
            raise StoppedError

    def record_progress(self, doing: str | None = None) -> None:
        """Record that the work made progress.

        Args:
            doing: what comes next, to complete the sentence `Nothing moved while …`.
        """
        self._progressed_at = time.monotonic()
        if doing is not None:
            self._doing = doing

    def add(self, held: ClaimedBatch) -> None:
        with self._lock:
            self._held.add((held.number, held.fence))

    def held(self) -> set[tuple[int, int]]:
        """Return number and fence of each batch that was claimed and, as far as known, not finished."""
        with self._lock:
            return set(self._held)

    def _go_on(self) -> None:
        while not self._over.is_set() and self._ended is None:
            # A lease outlasts the usual outage of the database, so that a failed heartbeat is no reason to stop.
            try:
                self._beat()
            except RunEndedError as error:
                self._ended = error
            except (TemporarilyUnavailableError, ActionRequiredError):
                pass
            self._over.wait(self._pause())

    def _pause(self) -> float:
        return (
            BEAT_SECONDS
            if self._bound is None
            else min(BEAT_SECONDS, self._bound.still.total_seconds() / 5)
        )

    def _beat(self) -> None:
        if (
            self._bound
            and time.monotonic() - self._progressed_at > self._bound.still.total_seconds()
        ):
            self._give_up(self._bound)
            return
        held = self.held()
        if held:
            still = batches.renew(self._database, held, self._lease)
            with self._lock:
                self._held -= held - still
        if self._run is not None:
            runs.renew_lease(self._database, self._run, datetime.now(UTC) + self._lease)

    def _give_up(self, bound: StallLimit) -> None:
        """Let other workers continue what the thread does not finish.

        The batches come first: once the run is closed, another run could claim them at once, and hang as well.
        """
        reason = f"Nothing moved for {_minutes(bound.still)} while {self._doing}."
        if held := self.held():
            batches.postpone(self._database, held, None, reason)
            with self._lock:
                self._held -= held
        if self._run is not None:
            run_transitions.requeue(self._database, self._run, "interrupted", reason)
        self._ended = RunEndedError(reason, "interrupted")
        if not self._over.wait(bound.grace):
            bound.stuck(self._owner)


def report_reliably(report: Callable[[], object], lease: timedelta = LEASE) -> None:
    """Record in the database how something ended: now, or as soon as it answers again within the lease.

    After that the lease itself has ended it, and a later report would be refused.
    """
    try:
        report()
    except TemporarilyUnavailableError:
        threading.Thread(
            target=_retry_report, args=(report, lease), name="report", daemon=True
        ).start()


def _retry_report(report: Callable[[], object], lease: timedelta) -> None:
    end = time.monotonic() + lease.total_seconds()
    while time.monotonic() < end:
        time.sleep(BEAT_SECONDS)
        with suppress(TemporarilyUnavailableError):
            report()
            return


def is_bug(error: BaseException) -> bool:
    """Return whether the error is a bug, not an expected error or the end of the process."""
    expected = StoppedError | TemporarilyUnavailableError | ActionRequiredError
    return isinstance(error, Exception) and not isinstance(error, expected)


def describe_error(error: BaseException) -> str:
    """Describe a bug, or a service that is too slow, for the operator."""
    if isinstance(error, DeadlineExceededError):
        return "It timed out: a service, such as the embedding endpoint, is too slow."
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return f"Internal error ({words[:300]}). See the log."


def _minutes(time: timedelta) -> str:
    seconds = time.total_seconds()
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:g} seconds"
