"""The schedule: which runs a source is to have by itself, how often, and what was asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TypeAlias

from sqlalchemy import Connection, func, select, update
from sqlalchemy.exc import NoResultFound

from backend.store import runs
from backend.store.database import Database, exclusive, upsert
from backend.store.runs import Run
from backend.store.tables import batches, failures, of_source, schedule, sources
from connectors.errors import NotFoundError

Starts: TypeAlias = dict[str, datetime | None]

CONTENT_KINDS = ("first", "incremental", "sync")
"""Kinds of run that take over what changed; on the schedule all of them are `incremental`."""
LISTING_KINDS = ("permissions", "prune")
"""Kinds that compare with all that a source lists."""
_RESUMABLE = (*CONTENT_KINDS, *LISTING_KINDS, "retry")
DEFAULT_INTERVALS: Mapping[str, timedelta] = MappingProxyType(
    {
        "incremental": timedelta(minutes=15),
        "permissions": timedelta(minutes=15),
        "prune": timedelta(hours=6),
    }
)
"""How long after one run of a kind the next one begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A run that is to begin, or, where it has a number, to go on."""

    source: str
    kind: str
    since: datetime
    run: int | None = None
    accepted: int | None = None
    seen: int = 0
    """The latest run of the source, if there is one: where there is a later one, this is not due any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    every: timedelta | None = None
    last_at: datetime | None = None
    asked_at: datetime | None = None
    accepted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """All that the schedule of one source depends on."""

    name: str
    made_at: datetime
    paused: bool
    lines: Mapping[str, _Entry]
    latest: Run | None
    retry_at: datetime | None
    open_batches: int

    def line(self, kind: str) -> _Entry:
        return self.lines.get(kind, _Entry())


def request_run(database: Database, source: str, kind: str, accepted: int | None = None) -> None:
    """Have a run of this kind begin as soon as can be.

    Raises:
        NotFoundError: there is no such source.
    """
    _set(database, source, kind, {"asked_at": datetime.now(UTC), "accepted": accepted})


def set_interval(database: Database, source: str, kind: str, every: timedelta | None) -> None:
    """How often; zero is never by itself, `None` as usual. As `ask`."""
    seconds = None if every is None else int(every.total_seconds())
    _set(database, source, kind, {"every": seconds})


def record_end(database: Database, source: str, kinds: Sequence[str], began: datetime) -> None:
    """A run that did these has ended: the next of them is counted from now."""
    now = datetime.now(UTC)
    with database.writing() as connection:
        exclusive(connection)
        source_id = _source_id(connection, source)
        for kind in kinds:
            _upsert(connection, source_id, kind, {"last_at": now})
            answered = update(schedule).where(
                schedule.c.source_id == source_id,
                schedule.c.kind == kind,
                schedule.c.asked_at <= began,
            )
            connection.execute(answered.values(asked_at=None, accepted=None))


def list_due(
    database: Database, now: datetime, is_gone: Callable[[Run], bool], source: str | None = None
) -> list[Due]:
    """What is to begin or to go on now, longest due first; at most one of each source, or of one.

    A run whose process `is_gone` is taken over.
    """
    found = [
        replace(each, seen=state.latest.id if state.latest else 0)
        for state in _states(database, source)
        if (each := _due(state, now, is_gone))
    ]
    return sorted(found, key=lambda each: each.since)


def next_starts(database: Database, source: str) -> Starts:
    """When the next run of each kind begins; `None`: not by itself. Nothing begins while it is paused."""
    return read_plans(database, source)[source].starts


@dataclass(frozen=True, slots=True)
class Schedule:
    starts: Starts
    every: Mapping[str, timedelta]
    """From the end of a run of a kind to the next one; zero is never by itself."""


def read_plans(database: Database, source: str | None = None) -> dict[str, Schedule]:
    """By source, of all or of one."""
    return {
        state.name: Schedule(
            {kind: None if state.paused else at for kind, at in _starts(state).items()},
            {kind: _every(state, kind) for kind in DEFAULT_INTERVALS},
        )
        for state in _states(database, source)
    }


def schedule_kind(kind: str) -> str:
    """What a kind of run is called on the schedule."""
    return "incremental" if kind in CONTENT_KINDS else kind


def is_being_removed(database: Database, source: str) -> bool:
    """Whether the source is to be removed."""
    asked = (
        select(schedule.c.asked_at)
        .join(sources)
        .where(sources.c.name == source, schedule.c.kind == "removal")
    )
    with database.reading() as connection:
        return connection.scalar(asked) is not None


def last_end(database: Database, source: str, kind: str) -> datetime | None:
    """When the last run that did this ended."""
    query = (
        select(schedule.c.last_at)
        .join(sources)
        .where(sources.c.name == source, schedule.c.kind == kind)
    )
    with database.reading() as connection:
        return connection.scalar(query)


def _due(state: _State, now: datetime, is_gone: Callable[[Run], bool]) -> Due | None:
    latest, removal = state.latest, state.line("removal").asked_at
    if latest is not None and latest.state == "running" and not is_gone(latest):
        return None
    if removal is not None:
        if latest is not None and latest.kind == "removal" and latest.state == "waiting":
            return _due_again(latest, now)
        return Due(source=state.name, kind="removal", since=removal)
    if state.paused:
        return None
    asked = any(line.asked_at for line in state.lines.values())
    if latest is not None and not asked:
        if latest.state == "waiting":
            return _due_again(latest, now)
        if latest.state in {"running", "interrupted"} and latest.kind in _RESUMABLE:
            return _due_restart(latest)
    return _earliest_due(state, now)


def _due_again(run: Run, now: datetime) -> Due | None:
    """The same run goes on."""
    if run.next_try is not None and run.next_try > now:
        return None
    since = run.next_try or run.renewed_at
    return Due(source=run.source, kind=run.kind, since=since, run=run.id, accepted=run.accepted)


def _due_restart(run: Run) -> Due:
    """One that its process left in the middle is begun again at once."""
    kind = "incremental" if run.kind == "sync" else run.kind
    return Due(source=run.source, kind=kind, since=run.renewed_at, accepted=run.accepted)


def _earliest_due(state: _State, now: datetime) -> Due | None:
    starts = {kind: at for kind, at in _starts(state).items() if at is not None and at <= now}
    if not starts:
        return None
    kind = min(starts, key=lambda each: starts[each])
    accepted = state.line(kind).accepted
    if state.open_batches and kind in LISTING_KINDS:
        # A listing is compared with all that was read: that is indexed first.
        return Due(source=state.name, kind="incremental", since=starts[kind])
    if kind == "incremental" and state.line(kind).last_at is None:
        return Due(source=state.name, kind="first", since=starts[kind])
    return Due(source=state.name, kind=kind, since=starts[kind], accepted=accepted)


def _starts(state: _State) -> dict[str, datetime | None]:
    starts = {kind: _start(state, kind) for kind in DEFAULT_INTERVALS}
    asked = state.line("retry").asked_at
    return starts | {"retry": asked or state.retry_at}


def _every(state: _State, kind: str) -> timedelta:
    every = state.line(kind).every
    return DEFAULT_INTERVALS[kind] if every is None else every


def _start(state: _State, kind: str) -> datetime | None:
    line, every = state.line(kind), _every(state, kind)
    if line.asked_at is not None:
        return line.asked_at
    if not every:
        return None
    if line.last_at is not None:
        return line.last_at + every
    # Before the first reading there is nothing to compare with a listing.
    read = state.line("incremental").last_at
    if kind == "incremental":
        return state.made_at
    return None if read is None else read + every


def _states(database: Database, name: str | None = None) -> list[_State]:
    """Of all sources, or of the one that is named."""
    query = select(sources.c.id, sources.c.name, sources.c.created_at, sources.c.paused_at)
    query = query.where(*of_source(name))
    latest = runs.latest(database, name)
    retries = select(failures.c.source_id, func.min(failures.c.next_try)).group_by(
        failures.c.source_id
    )
    waiting = select(batches.c.source_id, func.count()).group_by(batches.c.source_id)
    with database.reading() as connection:
        found = connection.execute(query).all()
        lines = _entries(connection)
        retry_at: dict[int, datetime | None] = dict(connection.execute(retries).all())
        open_batches: dict[int, int] = dict(connection.execute(waiting).all())
    return [
        _State(
            name=row.name,
            made_at=row.created_at,
            paused=row.paused_at is not None,
            lines=lines.get(row.id, {}),
            latest=latest.get(row.name),
            retry_at=retry_at.get(row.id),
            open_batches=open_batches.get(row.id, 0),
        )
        for row in found
    ]


def _entries(connection: Connection) -> dict[int, dict[str, _Entry]]:
    found: dict[int, dict[str, _Entry]] = {}
    for row in connection.execute(select(schedule)):
        found.setdefault(row.source_id, {})[row.kind] = _Entry(
            every=None if row.every is None else timedelta(seconds=row.every),
            last_at=row.last_at,
            asked_at=row.asked_at,
            accepted=row.accepted,
        )
    return found


def _set(database: Database, source: str, kind: str, values: Mapping[str, object]) -> None:
    with database.writing() as connection:
        exclusive(connection)
        _upsert(connection, _source_id(connection, source), kind, values)


def _upsert(
    connection: Connection, source_id: int, kind: str, values: Mapping[str, object]
) -> None:
    upsert(connection, schedule, [{"source_id": source_id, "kind": kind} | dict(values)])


def _source_id(connection: Connection, source: str) -> int:
    query = select(sources.c.id).where(sources.c.name == source)
    try:
        return int(connection.execute(query).scalar_one())
    except NoResultFound as error:
        raise NotFoundError(f"There is no source named {source!r}.") from error
