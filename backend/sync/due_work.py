"""The work that is due, of all sources. The database says what that is: any number of workers, in any
number of processes, may ask for it at once, and a worker that is lost loses nothing.

`fetch_due` reads sources, `index_due` indexes what was read, `light_due` compares with listings and removes.
Each takes one thing that is due, does it to its end, and tells whether there was any.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Protocol

from backend.store import batches, failures, runs, schedule, sources
from backend.store.database import Database
from backend.store.runs import Ended
from backend.store.schedule import LISTING, Due
from backend.store.sources import Source
from backend.sync.foreground_run import decision_of, removing
from backend.sync.metrics import UNMEASURED, Measure, Measured
from backend.sync.process_identity import is_gone, this_process
from backend.sync.progress_writer import Telling
from backend.sync.run_lease import Bound, Heartbeat, Pulse, is_mistake, surely, told
from backend.sync.run_steps import Room, taken
from connectors.connector import Change, Connector, Listed
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.ingestion.batch_worker import BatchWorker
from indexing.ingestion.deletion_guard import DeletionNeedsApprovalError
from indexing.ingestion.pipeline import Pipeline
from indexing.ingestion.progress import ProgressMeter, RunCounters

FETCHES = frozenset({"first", "incremental", "retry"})
LIGHT = frozenset({*LISTING, "removal"})
MOST_RETRIED = 1_000
"""Failed documents that one run tries again."""
_LATER = timedelta(minutes=5)
"""Before what a person must mend is tried again by itself."""
_STOPPED = "It was stopped; the next run goes on from there."


class Home(Protocol):
    """What the engine works with; made anew where the index was switched to another index version."""

    @property
    def database(self) -> Database: ...

    def connector(self, source: Source) -> Connector: ...

    def pipeline(self, source: Source) -> Pipeline: ...

    def batch_worker(self) -> BatchWorker: ...


@dataclass(frozen=True, slots=True)
class _Work:
    """A run of this process, and what it works with."""

    due: Due
    connector: Connector
    room: Room
    telling: Telling
    tally: RunCounters


@dataclass(frozen=True, slots=True)
class Engine:
    home: Callable[[], Home]
    stopping: threading.Event = field(default_factory=threading.Event)
    """Once it is set, everything ends within seconds, to be gone on with later."""
    pulse: Pulse = field(default_factory=Pulse)
    bound: Bound = field(default_factory=Bound)
    measure: Measure = UNMEASURED
    more: Callable[[], object] = lambda: None
    """Told where more is due than the one that asked can do."""

    def fetch_due(self, source: str | None = None) -> bool:
        """Read one source, or this one if it is due, until what it told is indexed. Raises Stopped."""
        return self._first_due(FETCHES, source)

    def light_due(self, source: str | None = None) -> bool:
        """Compare one source, or this one, with its listing, or remove it. Raises Stopped."""
        return self._first_due(LIGHT, source)

    def index_due(self, *, along: bool = False) -> bool:
        """Index what was read, of all sources in turn, until there is no more.

        Args:
            along: and until no source is being read any more.

        Raises:
            Stopped: what was begun is given back.
        """
        home, tally = self.home(), RunCounters()
        database, measured = home.database, Measured(self.measure, tally)

        def is_over() -> bool:
            return not (along and runs.any_in(database, "indexing"))

        with Heartbeat(database, stopping=self.stopping, bound=self.bound) as heartbeat:
            coming = taken(database, heartbeat, self.pulse, is_over)
            steps = home.batch_worker().run(coming, ProgressMeter("", "indexing"), tally)
            try:
                with closing(steps):
                    for step in steps:
                        heartbeat.moved(f"{step.item!r} was indexed" if step.item else None)
                        heartbeat.check()
                        measured.tell()
                        self.pulse.notify()
            except (TemporarilyUnavailableError, ActionRequiredError) as error:
                after = (
                    error.retry_after if isinstance(error, TemporarilyUnavailableError) else _LATER
                )
                next_try = datetime.now(UTC) + after
                batches.postpone(database, heartbeat.held(), next_try, str(error))
        self.pulse.notify()
        return any(tally.counts.values()) or tally.unreadable_count > 0

    def _first_due(self, kinds: frozenset[str], source: str | None) -> bool:
        home = self.home()
        found = schedule.due(home.database, datetime.now(UTC), is_gone, source)
        wanted = [due for due in found if due.kind in kinds]
        if len(wanted) > 1:
            self.more()
        return any(self._ran(home, due) for due in wanted)

    def _ran(self, home: Home, due: Due) -> bool:
        """Whether the run was this worker's to do."""
        try:
            run = _begun(home.database, due)
        except TemporarilyUnavailableError:
            return False
        with (
            _Ending(home.database, due, run),
            Heartbeat(home.database, run, self.stopping, bound=self.bound) as heartbeat,
        ):
            source, tally = sources.find(home.database, due.source), RunCounters()
            pipeline = home.pipeline(source)
            room = Room(home.database, run, pipeline, heartbeat, self.pulse, self.measure)
            telling = Telling(home.database, run, tally)
            room.until(room.is_still, "another worker, to end what it is at")
            if due.kind == "removal":
                heartbeat.moved("its documents were removed")
                _all(removing(room, telling, tally), heartbeat)
                sources.remove(home.database, due.source)
            else:
                _do(_Work(due, home.connector(source), room, telling, tally))
        return True


def _do(work: _Work) -> None:
    if work.due.kind in LISTING:
        _listed(work)
    else:
        _read(work)


def _read(work: _Work) -> None:
    """What changed, or what has failed, until all of it is indexed."""
    room = work.room
    room.heartbeat.moved("the index was compared with the ledger")
    _all(work.telling.steps(room.pipeline.repair(work.tally)), room.heartbeat)
    runs.enter(room.database, room.run, "indexing")
    # What an earlier run has read comes first: the ledger is asked what is known.
    room.until(room.is_indexed, "the index, to take in what was read before")
    room.heartbeat.moved("the source was read, from where it was left")
    room.fetch(_changes(work))
    room.until(room.is_indexed, "the index, to take in what was read")


def _changes(work: _Work) -> Iterable[Change]:
    room = work.room
    name = room.pipeline.source
    if work.due.kind == "retry":
        return work.connector.again(
            failures.due(room.database, name, datetime.now(UTC), MOST_RETRIED)
        )
    since = sources.find(room.database, name).checkpoint
    return work.connector.changes(since, room.pipeline.ledger.versions)


def _listed(work: _Work) -> None:
    room, accepted = work.room, work.due.accepted or 0
    work.telling.begin("listing")
    room.heartbeat.moved("the source listed what it has")
    listing = _kept_up(work.connector.listing(), room.heartbeat)
    if work.due.kind == "prune":
        steps = room.pipeline.reconcile(listing, room.run, work.tally, accepted=accepted)
    else:
        steps = room.pipeline.sync_access(listing, room.run, work.tally, accepted)
    _all(work.telling.steps(steps), room.heartbeat)


def _kept_up(listing: Iterable[Listed], heartbeat: Heartbeat) -> Iterator[Listed]:
    """The same, as long as the run is this worker's: nothing is written of what comes late."""
    for listed in listing:
        heartbeat.check()
        heartbeat.moved()
        yield listed


def _all(steps: Generator[object, None, None], heartbeat: Heartbeat) -> None:
    """To its end; where that does not come, it has ended with its threads before the run is closed."""
    with closing(steps):
        for _ in steps:
            heartbeat.moved()
            heartbeat.check()


def _begun(database: Database, due: Due) -> int:
    """Raises TemporarilyUnavailableError: another worker was quicker."""
    holder = this_process()
    if due.run is not None:
        runs.go_on(database, due.run, holder)
        return due.run
    return runs.begin(database, due.source, due.kind, holder, is_gone, due.accepted, due.seen)


class _Ending:
    """Closes a run as it came out. A failure of the source's is the run's; a mistake is told, and raised.

    It is noted first: a worker that looked between the two would find the same due again.
    """

    def __init__(self, database: Database, due: Due, run: int) -> None:
        self._database = database
        self._due = due
        self._run = run
        self._began = datetime.now(UTC)

    def __enter__(self) -> None:
        """Nothing is to be done until it ends."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Whether the error, if there is one, is of those that are the run's."""
        del kind, trace
        surely(partial(self._close_ours, error))
        return isinstance(
            error, TemporarilyUnavailableError | ActionRequiredError | DeletionNeedsApprovalError
        )

    def _close_ours(self, error: BaseException | None) -> None:
        # A run that is another's by now, or has been ended, stays as it is.
        with suppress(Ended):
            self._close(error)

    def _close(self, error: BaseException | None) -> None:
        database, run = self._database, self._run
        match error:
            case None:
                self._note()
                runs.close(database, run, "done")
            case Ended():
                runs.close(database, run, "interrupted", _STOPPED)
            case DeletionNeedsApprovalError():
                self._note()
                runs.ask(database, run, str(error), decision_of(error))
            case TemporarilyUnavailableError():
                runs.wait(database, run, str(error), datetime.now(UTC) + error.retry_after)
            case ActionRequiredError():
                self._note()
                runs.close(database, run, "failed", str(error))
            case _ if is_mistake(error):
                runs.set_back(database, run, "failed", told(error))
            case _:
                runs.close(database, run, "interrupted", _STOPPED)

    def _note(self) -> None:
        due = self._due
        if due.kind != "removal":
            kind = schedule.named(due.kind)
            kinds = LISTING if kind == "prune" else (kind,)
            schedule.note(self._database, due.source, kinds, self._began)
