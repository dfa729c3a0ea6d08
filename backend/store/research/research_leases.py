"""Which process works on which research run. A process claims a run by a lease, and renews it whenever it stores what the run did.

Each claim has a number of its own, the fence: nothing is accepted of a process whose run was claimed by another one.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    func,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from backend.store.chat.turn_news import send_news
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.research.research_runs import (
    ResearchRun,
    ResearchState,
    to_research_run,
)
from backend.store.schema.research_tables import research_events, research_runs
from backend.store.sync import runs
from backend.store.sync.runs import Process

LEASE = timedelta(seconds=60)
"""Longer than a statement waits for a lock, and than a database is usually away."""
_CLAIM_LOCK = 7_361_502_116
_OPEN = ("waiting", "running", "stopping")
_GOES_ON_LATER = frozenset({"waiting", "clarifying", "planned"})
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

IsDead: TypeAlias = Callable[[Process], bool]
"""Whether a process of this machine has ended."""


@dataclass(frozen=True, slots=True)
class ResearchClaim:
    run_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class ClaimedResearch:
    claim: ResearchClaim
    run: ResearchRun
    record: str
    """JSON."""
    is_taken_over: bool
    """Whether another process had to end while it worked on it."""


class ResearchSignal(Enum):
    """How a run stands, as its process learns with all that it stores."""

    RUNNING = auto()
    STOPPING = auto()
    """It is asked to write what there is."""
    LOST = auto()
    """It was deleted, or another process has claimed it."""


@dataclass(frozen=True, slots=True)
class EventPortion:
    """Events that are stored together."""

    first: int
    last: int
    payload: str
    """JSON: number, name, data and documents of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a run has come to."""

    record: str
    """JSON."""
    tasks: int
    tasks_done: int
    has_report: bool
    state: ResearchState | None = None
    """In which the process leaves it; None where it goes on."""
    problem: str | None = None
    """Why there is no report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchProgress:
    """What a run did since it was stored last; without anything, its lease alone is renewed."""

    portion: EventPortion | None = None
    document_ids: Sequence[str] | None = None
    """All that events name, where there are more."""
    checkpoint: Checkpoint | None = None

    @property
    def has_news(self) -> bool:
        return self.portion is not None or self.checkpoint is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLimits:
    at_once: int
    """Runs that all processes work on together."""
    is_dead: IsDead


@dataclass(frozen=True, slots=True)
class _OpenRun:
    id: str
    person_id: int | None
    is_stopping: bool
    is_held: bool
    """Whether a live process works on it."""
    queued_at: datetime


@dataclass(frozen=True, slots=True)
class _Queue:
    """All open runs, and when each person's were claimed last."""

    runs: Sequence[_OpenRun]
    last_claimed: Mapping[int | None, datetime]

    def count_held(self) -> Counter[int | None]:
        return Counter(one.person_id for one in self.runs if one.is_held)

    def order(self) -> list[_OpenRun]:
        """Return those that nobody works on, in the order in which they are claimed: those that are to stop first, then one of each person
        in turn."""
        free = [one for one in self.runs if not one.is_held]
        ordered = sorted((one for one in free if one.is_stopping), key=_by_age)
        waiting = sorted((one for one in free if not one.is_stopping), key=_by_age)
        held, last = self.count_held(), dict(self.last_claimed)
        turn = max(last.values(), default=_LONG_AGO)
        while waiting:
            turn += timedelta(microseconds=1)
            following = min(
                waiting,
                key=lambda one: (held[one.person_id], last.get(one.person_id, _LONG_AGO)),
            )
            waiting.remove(following)
            ordered.append(following)
            held[following.person_id] += 1
            last[following.person_id] = turn
        return ordered


def _by_age(one: _OpenRun) -> tuple[datetime, str]:
    return one.queued_at, one.id


def claim_next(
    database: Database, holder: Process, limits: ClaimLimits, now: datetime
) -> ClaimedResearch | None:
    """Claim the run whose turn it is, that of a process that has died included; None where there is none, or enough are worked on."""
    with database.reading() as connection:
        # Who looks in vain, as idle processes do all the time, keeps no writer waiting.
        if not _read_queue(connection, limits.is_dead, now).order():
            return None
    with database.writing() as connection:
        _lock_claims(connection)
        queue = _read_queue(connection, limits.is_dead, now)
        held = queue.count_held()
        for one in queue.order():
            if one.is_stopping or _has_room(held, one.person_id, limits.at_once):
                return _claim(connection, one.id, holder, now)
    return None


def _has_room(held: Counter[int | None], person_id: int | None, at_once: int) -> bool:
    """Return whether a person may have one more run. Nobody's take all places, which others would wait for too long."""
    return held.total() < at_once and held[person_id] < max(1, at_once - 1)


def claim(
    database: Database, run_id: str, holder: Process, is_dead: IsDead, now: datetime
) -> ClaimedResearch | None:
    """Claim this run, whosever turn it is; None where it is not open, or a live process works on it."""
    with database.writing() as connection:
        _lock_claims(connection)
        queue = _read_queue(connection, is_dead, now)
        if any(one.id == run_id and not one.is_held for one in queue.runs):
            return _claim(connection, run_id, holder, now)
    return None


def _lock_claims(connection: Connection) -> None:
    """Let one process at a time claim, on PostgreSQL; SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _CLAIM_LOCK})


def _read_queue(connection: Connection, is_dead: IsDead, now: datetime) -> _Queue:
    open_runs = select(
        research_runs.c.id,
        research_runs.c.person_id,
        research_runs.c.state,
        research_runs.c.host,
        research_runs.c.process,
        research_runs.c.process_started,
        research_runs.c.lease_until,
        research_runs.c.queued_at,
        research_runs.c.created_at,
    ).where(research_runs.c.state.in_(_OPEN))
    latest = select(research_runs.c.person_id, func.max(research_runs.c.claimed_at).label("at"))
    latest = latest.where(research_runs.c.claimed_at.is_not(None))
    found = connection.execute(open_runs).all()
    claimed = connection.execute(latest.group_by(research_runs.c.person_id)).all()
    return _Queue(
        [_to_open_run(row, is_dead, now) for row in found],
        {row.person_id: row.at for row in claimed},
    )


def _to_open_run(row: Any, is_dead: IsDead, now: datetime) -> _OpenRun:
    is_held = row.host is not None and row.lease_until > now and not is_dead(runs.read_holder(row))
    return _OpenRun(
        row.id, row.person_id, row.state == "stopping", is_held, row.queued_at or row.created_at
    )


def _claim(
    connection: Connection, run_id: str, holder: Process, now: datetime
) -> ClaimedResearch | None:
    this = and_(research_runs.c.id == run_id, research_runs.c.state.in_(_OPEN))
    before = select(research_runs, research_runs.c.project_id.label("shared_project_id"))
    row = connection.execute(before.where(this).with_for_update()).one_or_none()
    if row is None:
        return None  # its owner has stopped or removed it meanwhile
    state = "stopping" if row.state == "stopping" else "running"
    claimed = {
        **runs.holder_columns(holder),
        "state": state,
        "fence": row.fence + 1,
        "lease_until": now + LEASE,
        "claimed_at": now,
        "queued_at": None,
    }
    connection.execute(update(research_runs).where(this).values(claimed))
    run = to_research_run(row)
    return ClaimedResearch(
        ResearchClaim(run_id, row.fence + 1), run, row.record, is_taken_over=row.host is not None
    )


def _make_upsert(made: postgresql.Insert | sqlite.Insert) -> postgresql.Insert | sqlite.Insert:
    """Let an insert replace a portion: one whose commit was not confirmed is stored once more, and may have grown."""
    grown = {"last": made.excluded["last"], "payload": made.excluded["payload"]}
    return made.on_conflict_do_update(index_elements=["run_id", "first"], set_=grown)


_STORE_EVENTS = {
    "postgresql": _make_upsert(postgresql.insert(research_events)),
    "sqlite": _make_upsert(sqlite.insert(research_events)),
}


def store(
    database: Database, claim: ResearchClaim, progress: ResearchProgress, now: datetime
) -> ResearchSignal:
    """Store what a run did, in one transaction, which renews its lease. Of a claim that is lost, nothing is stored."""
    values = {"lease_until": now + LEASE, **_list_values(progress, now)}
    stood = select(research_runs.c.state).where(_holds(claim)).with_for_update()
    with database.writing() as connection:
        state = connection.scalar(stood)
        if state is None:
            return ResearchSignal.LOST
        if state == "stopping" and values.get("state") in _GOES_ON_LATER:
            # Another claim ends it.
            values |= {"state": "stopping", "queued_at": now}
        connection.execute(update(research_runs).where(_holds(claim)).values(values))
        if progress.portion is not None:
            row = {
                "run_id": claim.run_id,
                "first": progress.portion.first,
                "last": progress.portion.last,
                "payload": progress.portion.payload,
            }
            connection.execute(_STORE_EVENTS[connection.dialect.name], [row])
        if progress.has_news:
            send_news(connection, [claim.run_id])
    return ResearchSignal.STOPPING if state == "stopping" else ResearchSignal.RUNNING


def _holds(claim: ResearchClaim) -> ColumnElement[bool]:
    return and_(
        research_runs.c.id == claim.run_id,
        research_runs.c.fence == claim.fence,
        research_runs.c.host.is_not(None),
    )


def _list_values(progress: ResearchProgress, now: datetime) -> dict[str, object]:
    values: dict[str, object] = {}
    if progress.portion is not None:
        values |= {"last_event": progress.portion.last, "updated_at": now}
    if progress.document_ids is not None:
        values["document_ids"] = list(progress.document_ids)
    if progress.checkpoint is not None:
        values |= _list_checkpoint(progress.checkpoint, now)
    return values


def _list_checkpoint(checkpoint: Checkpoint, now: datetime) -> dict[str, object]:
    values: dict[str, object] = {
        "record": checkpoint.record,
        "tasks": checkpoint.tasks,
        "tasks_done": checkpoint.tasks_done,
        "has_report": checkpoint.has_report,
        "updated_at": now,
    }
    match checkpoint.state:
        case None:
            return values
        case "waiting":
            left: dict[str, object] = {"queued_at": now}
        case "clarifying" | "planned":
            left = {}
        case _:
            left = {"ended_at": now, "problem": checkpoint.problem}
    nobody = {"host": None, "process": None, "process_started": None, "lease_until": None}
    return {**values, **left, **nobody, "state": checkpoint.state}


def find_place(database: Database, run_id: str, is_dead: IsDead, now: datetime) -> int | None:
    """Return the place of a run among those that wait for a process, from 1; None where it does not wait."""
    with database.reading() as connection:
        waiting = _read_queue(connection, is_dead, now).order()
    places = {one.id: place for place, one in enumerate(waiting, start=1)}
    return places.get(run_id)


def is_awaited(
    database: Database, owner: ConversationOwner, limits: ClaimLimits, now: datetime
) -> bool:
    """Return whether somebody else waits while all places are taken, who has fewer runs under way."""
    with database.reading() as connection:
        queue = _read_queue(connection, limits.is_dead, now)
    held = queue.count_held()
    if held.total() < limits.at_once:
        return False
    own = held[owner.person_id]
    return any(held[one.person_id] < own for one in queue.order())
