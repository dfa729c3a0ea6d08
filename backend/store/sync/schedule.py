"""The schedule: which runs of a source are due, by their intervals or by request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from sqlalchemy import Connection, func, select, update
from sqlalchemy.exc import NoResultFound

from backend.store.database import Database, exclusive, upsert
from backend.store.schema.tables import batches, failures, schedule, sources
from backend.store.sync import runs
from backend.store.sync.runs import Run
from backend.store.sync.sources import IS_CONNECTED, select_source_id, where_source
from connectors.errors import NotFoundError
from connectors.registry import get_intervals, has_fixed_access

Starts: TypeAlias = dict[str, datetime | None]

CONTENT_KINDS = ("first", "incremental", "sync")
"""Kinds of run that sync content; in the schedule all of them are `incremental`."""
LISTING_KINDS = ("permissions", "prune")
"""Kinds of run that compare the index with the complete listing of a source."""
_RESUMABLE = (*CONTENT_KINDS, *LISTING_KINDS, "retry")
SCHEDULED_KINDS = ("incremental", "permissions", "prune")
"""Kinds of run that begin by themselves."""


def list_scheduled_kinds(source_kind: str) -> tuple[str, ...]:
    """Return the kinds of run that sources of a kind have by themselves.

    A source whose settings say who may read it is not asked for it.
    """
    fixed = has_fixed_access(source_kind)
    return tuple(kind for kind in SCHEDULED_KINDS if not (fixed and kind == "permissions"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A run that is due to start or, with a number, to continue."""

    source: str
    kind: str
    since: datetime
    run: int | None = None
    accepted: int | None = None
    seen: int = 0
    """The latest run of the source, or 0: once there is a later one, this run is not due any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    every: timedelta | None = None
    last_at: datetime | None = None
    asked_at: datetime | None = None
    accepted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """Everything that the schedule of one source depends on."""

    name: str
    kind: str
    created_at: datetime
    paused: bool
    entries: Mapping[str, _Entry]
    latest: Run | None
    retry_at: datetime | None
    open_batches: int

    def entry(self, kind: str) -> _Entry:
        return self.entries.get(kind, _Entry())

    @property
    def scheduled_kinds(self) -> tuple[str, ...]:
        return list_scheduled_kinds(self.kind)


def request_run(database: Database, source: str, kind: str, accepted: int | None = None) -> None:
    """Have a run of this kind start as soon as possible.

    Raises:
        NotFoundError: there is no such source.
    """
    _set(database, source, kind, {"asked_at": datetime.now(UTC), "accepted": accepted})


def find_accepted(database: Database, source: str) -> int:
    """Return how many missing documents a person has agreed to delete in a run that is still to come."""
    mine = schedule.c.source_id == select_source_id(source)
    with database.reading() as connection:
        return connection.scalar(select(func.max(schedule.c.accepted)).where(mine)) or 0


def set_interval(database: Database, source: str, kind: str, every: timedelta | None) -> None:
    """Set the interval; zero is never, None the default. Raises as `request_run`."""
    seconds = None if every is None else int(every.total_seconds())
    _set(database, source, kind, {"every": seconds})


def record_end(database: Database, source: str, kinds: Sequence[str], began: datetime) -> None:
    """Record that a run of these kinds has ended; their intervals and requests start anew.

    A request that was made after the run began stays open.
    """
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
    """Return the runs that are due, longest due first: at most one for each source, or for one source.

    A run whose process `is_gone` is due again.
    """
    found = [
        replace(each, seen=state.latest.id if state.latest else 0)
        for state in _states(database, source)
        if (each := _due(state, now, is_gone))
    ]
    return sorted(found, key=lambda each: each.since)


@dataclass(frozen=True, slots=True)
class Schedule:
    starts: Starts
    every: Mapping[str, timedelta]
    """From the end of a run to the next one of its kind; zero is never."""


def read_plans(database: Database, source: str | None = None) -> dict[str, Schedule]:
    """Return the schedule of all sources, or of one, by name."""
    return {
        state.name: Schedule(
            {kind: None if state.paused else at for kind, at in _starts(state).items()},
            {kind: _every(state, kind) for kind in state.scheduled_kinds},
        )
        for state in _states(database, source)
    }


def schedule_kind(kind: str) -> str:
    """Return the kind under which the schedule has runs of this kind."""
    return "incremental" if kind in CONTENT_KINDS else kind


def is_being_removed(database: Database, source: str) -> bool:
    """Return whether the source is about to be removed."""
    asked = (
        select(schedule.c.asked_at)
        .join(sources)
        .where(sources.c.name == source, schedule.c.kind == "removal")
    )
    with database.reading() as connection:
        return connection.scalar(asked) is not None


def last_end(database: Database, source: str, kind: str) -> datetime | None:
    """Return when the last run of this kind ended."""
    query = (
        select(schedule.c.last_at)
        .join(sources)
        .where(sources.c.name == source, schedule.c.kind == kind)
    )
    with database.reading() as connection:
        return connection.scalar(query)


def list_unread_sources(database: Database) -> list[str]:
    """Return the names of the sources of which no content sync has ended yet, in order."""
    content = (schedule.c.source_id == sources.c.id) & (schedule.c.kind == "incremental")
    query = (
        select(sources.c.name)
        .outerjoin(schedule, content)
        .where(schedule.c.last_at.is_(None), IS_CONNECTED)
        .order_by(sources.c.name)
    )
    with database.reading() as connection:
        return list(connection.scalars(query))


def _due(state: _State, now: datetime, is_gone: Callable[[Run], bool]) -> Due | None:
    latest, removal = state.latest, state.entry("removal").asked_at
    if latest is not None and latest.state == "running" and not is_gone(latest):
        return None
    if removal is not None:
        if latest is not None and latest.kind == "removal" and latest.state == "waiting":
            return _due_again(latest, now)
        return Due(source=state.name, kind="removal", since=removal)
    if state.paused:
        return None
    if latest is not None and not _is_asked_since(state, latest):
        if latest.state == "waiting":
            return _due_again(latest, now)
        if latest.state in {"running", "interrupted"} and latest.kind in _RESUMABLE:
            return _due_restart(latest)
    return _earliest_due(state, now)


def _is_asked_since(state: _State, latest: Run) -> bool:
    """Return whether a person asked for a run after the latest one was last tried, if it waits.

    A request does not let a source be asked again and again that wants to be waited for.
    """
    asked = [entry.asked_at for entry in state.entries.values() if entry.asked_at is not None]
    if latest.state != "waiting":
        return bool(asked)
    return any(at > (latest.stage_at or latest.started_at) for at in asked)


def _due_again(run: Run, now: datetime) -> Due | None:
    """Continue the waiting run, once its next try has come."""
    if run.next_try is not None and run.next_try > now:
        return None
    since = run.next_try or run.renewed_at
    return Due(source=run.source, kind=run.kind, since=since, run=run.id, accepted=run.accepted)


def _due_restart(run: Run) -> Due:
    """Start a run again at once that its process did not finish."""
    kind = "incremental" if run.kind == "sync" else run.kind
    return Due(source=run.source, kind=kind, since=run.renewed_at, accepted=run.accepted)


def _earliest_due(state: _State, now: datetime) -> Due | None:
    starts = {kind: at for kind, at in _starts(state).items() if at is not None and at <= now}
    if not starts:
        return None
    kind = min(starts, key=lambda each: starts[each])
    accepted = state.entry(kind).accepted
    if state.open_batches and kind in LISTING_KINDS and kind in state.scheduled_kinds:
        # A comparison needs an up-to-date index: what was fetched is indexed first.
        return Due(source=state.name, kind="incremental", since=starts[kind])
    if kind == "incremental" and state.entry(kind).last_at is None:
        return Due(source=state.name, kind="first", since=starts[kind])
    return Due(source=state.name, kind=kind, since=starts[kind], accepted=accepted)


def _starts(state: _State) -> dict[str, datetime | None]:
    starts = {kind: _start(state, kind) for kind in state.scheduled_kinds}
    if "permissions" not in starts:
        # Other readers in the settings are applied to the documents that are held.
        starts["permissions"] = state.entry("permissions").asked_at
    asked = state.entry("retry").asked_at
    return starts | {"retry": asked or state.retry_at}


def _every(state: _State, kind: str) -> timedelta:
    every = state.entry(kind).every
    return _default_interval(state.kind, kind) if every is None else every


def _default_interval(source_kind: str, kind: str) -> timedelta:
    intervals = get_intervals(source_kind)
    match kind:
        case "incremental":
            return intervals.content
        case "permissions":
            return intervals.access
        case _:
            return intervals.deletions


def _start(state: _State, kind: str) -> datetime | None:
    entry, every = state.entry(kind), _every(state, kind)
    if entry.asked_at is not None:
        return entry.asked_at
    if not every:
        return None
    if entry.last_at is not None:
        return entry.last_at + every
    # Before the first sync there is nothing to compare with a listing.
    read = state.entry("incremental").last_at
    if kind == "incremental":
        return state.created_at
    return None if read is None else read + every


def _states(database: Database, name: str | None = None) -> list[_State]:
    """Read the state of all sources, or of one."""
    query = select(
        sources.c.id, sources.c.name, sources.c.kind, sources.c.created_at, sources.c.paused_at
    )
    query = query.where(IS_CONNECTED, *where_source(name))
    latest = runs.latest(database, name)
    retries = select(failures.c.source_id, func.min(failures.c.next_try)).group_by(
        failures.c.source_id
    )
    waiting = select(batches.c.source_id, func.count()).group_by(batches.c.source_id)
    with database.reading() as connection:
        found = connection.execute(query).all()
        entries = _entries(connection)
        retry_at: dict[int, datetime | None] = dict(connection.execute(retries).all())
        open_batches: dict[int, int] = dict(connection.execute(waiting).all())
    return [
        _State(
            name=row.name,
            kind=row.kind,
            created_at=row.created_at,
            paused=row.paused_at is not None,
            entries=entries.get(row.id, {}),
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
