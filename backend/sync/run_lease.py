"""A worker says that it lives, every few seconds, in a thread of its own; and learns that it is to stop.

A thread cannot be ended from outside. So where nothing moves for too long, it is its heartbeat that gives back
what it holds, says why, and lets another take it up: what the thread says later is nobody's.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType

from backend.store import batches, run_transitions
from backend.store.batches import LEASE
from backend.store.database import Database
from backend.store.runs import RunEndedError
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.ingestion.batching import ClaimedBatch
from indexing.runtime.deadline import DeadlineExceededError

BEAT_SECONDS = 2.0
"""Seconds between two signs of life; within so many a worker learns that its run was cancelled."""
POLL_SECONDS = 0.05
"""Seconds between two looks at the database, where those who change it are in this process."""
IDLE_POLL_SECONDS = 0.25
"""The same, where nothing has changed for a while: a look costs the processor some milliseconds."""
STALL_TIME = timedelta(minutes=15)
"""In which something moves, or the work is given up. A request to a source is given up within minutes, and so
is one to the index; two batches are embedded within two minutes by the models that a processor can run at all."""


class StoppedError(Exception):
    """The process is to end; what it works on is gone on with by the next."""


class ChangeNotifier:
    """Wakes those who wait in this process for something that changed in the database.

    Args:
        look: the seconds after which they look all the same: others change it too.
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
        """Until something changed here, but no longer than until the next look."""
        with self._changed:
            self._changed.wait(self._look)

    def looks(self) -> "PollTimer":
        return PollTimer(self, self._look)

    @property
    def changes(self) -> int:
        """How many there were."""
        return self._changes

    def wait_beyond(self, changes: int, seconds: float) -> None:
        """Until there were more, but no longer than that."""
        with self._changed:
            self._changed.wait_for(lambda: self._changes > changes, seconds)


class PollTimer:
    """The waits of one who looks until something is so: no change here that came after the last look is missed.

    The longer there is none, the rarer they are, down to four a second.
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
    """Is told."""
    del thread


@dataclass(frozen=True, slots=True, kw_only=True)
class StallLimit:
    """How long nothing may move, and who is told of a thread that does not come back even then."""

    still: timedelta = STALL_TIME
    stuck: Callable[[threading.Thread], object] = _ignore

    @property
    def grace(self) -> float:
        """Seconds in which a thread that was given up may come back: half a minute, as a rule."""
        return self.still.total_seconds() / 30


class Heartbeat:
    """Keeps up the lease of one run, where there is one, and of the batches that are taken meanwhile.

    Args:
        bound: without one, nothing need ever move.
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
        """What is held still is given back; after a mistake in the program, for a while."""
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
        """Raises RunEndedError, StoppedError: the work is to end here."""
        if self._ended is not None:
            raise self._ended
        if self._stopping.is_set():
            raise StoppedError

    def record_progress(self, doing: str | None = None) -> None:
        """Something came of the work.

        Args:
            doing: what comes next, as the rest of a sentence: Nothing moved while …
        """
        self._progressed_at = time.monotonic()
        if doing is not None:
            self._doing = doing

    def add(self, held: ClaimedBatch) -> None:
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
            run_transitions.renew_lease(self._database, self._run, datetime.now(UTC) + self._lease)

    def _give_up(self, bound: StallLimit) -> None:
        """Let others take up what the thread does not come to an end with."""
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


def report_reliably(tell: Callable[[], object], lease: timedelta = LEASE) -> None:
    """Tell the database how something ended: now, or as soon as it answers again, and before the lease is over.

    Then it is told by the lease itself, and a word that comes later is nobody's.
    """
    try:
        tell()
    except TemporarilyUnavailableError:
        threading.Thread(
            target=_retry_report, args=(tell, lease), name="telling", daemon=True
        ).start()


def _retry_report(tell: Callable[[], object], lease: timedelta) -> None:
    end = time.monotonic() + lease.total_seconds()
    while time.monotonic() < end:
        time.sleep(BEAT_SECONDS)
        with suppress(TemporarilyUnavailableError):
            tell()
            return


def is_bug(error: BaseException) -> bool:
    """Whether it is one of the program's, and none of the world's or of who stopped it."""
    told_by_design = StoppedError | TemporarilyUnavailableError | ActionRequiredError
    return isinstance(error, Exception) and not isinstance(error, told_by_design)


def describe_error(error: BaseException) -> str:
    """A mistake in the program, or a service that is too slow, for those who run it."""
    if isinstance(error, DeadlineExceededError):
        return (
            "The time for it was up: a service that was asked, such as the embedder, is too slow."
        )
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return f"A mistake in the program ({words[:300]}). The log says more."


def _minutes(time: timedelta) -> str:
    seconds = time.total_seconds()
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:g} seconds"
