"""The work that is due, of all sources. The database says what that is: any number of workers, in any
number of processes, may ask for it at once, and a worker that is lost loses nothing.

`fetch_due` reads sources, `index_due` indexes what was read, `light_due` compares with listings and removes.
Each takes one thing that is due, does it to its end, and tells whether there was any.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from backend.store import batches, failures, runs, schedule, sources
from backend.store.database import Database
from backend.store.runs import Ended, RunState
from backend.store.schedule import LISTING, Due
from backend.store.sources import Source
from backend.sync.heartbeat import Heartbeat, Pulse
from backend.sync.process import is_gone, this_process
from backend.sync.runner import decision_of, removing
from backend.sync.taking import Room, taken
from backend.sync.telling import Telling
from connectors.connector import Change, Connector
from connectors.errors import AskTheOwner, RetryLater
from indexing.carrying import Carrying
from indexing.pipeline import Pipeline
from indexing.report import Meter, Tally
from indexing.shrinking import NeedsDecision

FETCHES = frozenset({"first", "incremental", "retry"})
LIGHT = frozenset({*LISTING, "removal"})
MOST_RETRIED = 1_000
"""Failed documents that one run tries again."""
_LATER = timedelta(minutes=5)
"""Before what a person must mend is tried again by itself."""


class Home(Protocol):
    """What the engine works with; made anew where the index was switched to another edition."""

    @property
    def database(self) -> Database: ...

    def connector(self, source: Source) -> Connector: ...

    def pipeline(self, source: Source) -> Pipeline: ...

    def carrying(self) -> Carrying: ...


@dataclass(frozen=True, slots=True)
class _Work:
    """A run of this process, and what it works with."""

    due: Due
    connector: Connector
    room: Room
    telling: Telling
    tally: Tally


@dataclass(frozen=True, slots=True)
class Engine:
    home: Callable[[], Home]
    stopping: threading.Event = field(default_factory=threading.Event)
    """Once it is set, everything ends within seconds, to be gone on with later."""
    pulse: Pulse = field(default_factory=Pulse)

    def fetch_due(self) -> bool:
        """Read one source, until what it told is indexed. Raises Stopped."""
        return self._first_due(FETCHES)

    def light_due(self) -> bool:
        """Compare one source with its listing, or remove one. Raises Stopped."""
        return self._first_due(LIGHT)

    def index_due(self) -> bool:
        """Index what was read, of all sources in turn, until there is no more.

        Raises:
            Stopped: what was begun is given back.
        """
        home, tally = self.home(), Tally()
        with Heartbeat(home.database, stopping=self.stopping) as heartbeat:
            coming = taken(home.database, heartbeat, self.pulse, lambda: True)
            meter = Meter("", "indexing")
            try:
                for _ in home.carrying().carry_out(coming, meter, tally):
                    self.pulse.notify()
            except (RetryLater, AskTheOwner) as error:
                after = error.after if isinstance(error, RetryLater) else _LATER
                next_try = datetime.now(UTC) + after
                batches.postpone(home.database, heartbeat.held(), next_try, str(error))
        self.pulse.notify()
        return any(tally.counts.values()) or tally.unreadable_count > 0

    def _first_due(self, kinds: frozenset[str]) -> bool:
        home = self.home()
        for due in schedule.due(home.database, datetime.now(UTC), is_gone):
            if due.kind in kinds and self._ran(home, due):
                return True
        return False

    def _ran(self, home: Home, due: Due) -> bool:
        """Whether the run was this worker's to do."""
        try:
            run = _begun(home.database, due)
        except RetryLater:
            return False
        with (
            _ending(home.database, due, run),
            Heartbeat(home.database, run, self.stopping) as heartbeat,
        ):
            source, tally = sources.find(home.database, due.source), Tally()
            room = Room(home.database, run, home.pipeline(source), heartbeat, self.pulse)
            telling = Telling(home.database, run, tally)
            room.until(room.is_still, "another worker, to end what it is at")
            if due.kind == "removal":
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
    _all(work.telling.steps(room.pipeline.repair(work.tally)), room.heartbeat)
    runs.enter(room.database, room.run, "indexing")
    # What an earlier run has read comes first: the ledger is asked what is known.
    room.until(room.is_indexed, "the index, to take in what was read before")
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
    listing = work.connector.listing()
    if work.due.kind == "prune":
        steps = room.pipeline.reconcile(listing, room.run, work.tally, accepted=accepted)
    else:
        steps = room.pipeline.permit(listing, room.run, work.tally, accepted)
    _all(work.telling.steps(steps), room.heartbeat)


def _all(steps: Iterable[object], heartbeat: Heartbeat) -> None:
    for _ in steps:
        heartbeat.check()


def _begun(database: Database, due: Due) -> int:
    """Raises RetryLater: another worker was quicker."""
    holder = this_process()
    if due.run is not None:
        runs.go_on(database, due.run, holder)
        return due.run
    return runs.begin(database, due.source, due.kind, holder, is_gone, due.accepted, due.seen)


@contextmanager
def _ending(database: Database, due: Due, run: int) -> Iterator[None]:
    """Close the run as it came out. A failure of the source's is the run's; a mistake is raised.

    It is noted first: a worker that looked between the two would find the same due again.
    """
    began = datetime.now(UTC)
    state: RunState = "interrupted"
    error: str | None = "It was stopped; the next run goes on from there."
    try:
        yield
        state, error = "done", None
        _note(database, due, began)
    except Ended:
        pass
    except NeedsDecision as failure:
        _note(database, due, began)
        runs.ask(database, run, str(failure), decision_of(failure))
    except RetryLater as failure:
        runs.wait(database, run, str(failure), datetime.now(UTC) + failure.after)
    except AskTheOwner as failure:
        state, error = "failed", str(failure)
        _note(database, due, began)
    finally:
        # A run that has ended, waits or asks by now stays as it is.
        runs.close(database, run, state, error)


def _note(database: Database, due: Due, began: datetime) -> None:
    if due.kind != "removal":
        kind = schedule.named(due.kind)
        kinds = LISTING if kind == "prune" else (kind,)
        schedule.note(database, due.source, kinds, began)
