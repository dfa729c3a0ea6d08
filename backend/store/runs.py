"""The runs: what is being done to a source, by which process, and how it ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, and_, func, insert, select, update

from backend.store.database import Database, exclusive
from backend.store.tables import runs, sources
from connectors.errors import RetryLater

RunState: TypeAlias = Literal["running", "done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Process:
    """One process of one machine. Its number may be given again, its start tells them apart."""

    host: str
    number: int
    started: str
    """Opaque; empty where the system does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: int
    source: str
    kind: str
    state: RunState
    stage: str
    item: str | None
    counts: Mapping[str, int]
    error: str | None
    holder: Process
    started_at: datetime
    renewed_at: datetime
    """When its process last said what it was doing."""
    finished_at: datetime | None


def begin(
    database: Database, source: str, kind: str, holder: Process, is_gone: Callable[[Run], bool]
) -> int:
    """Open a run and tell its number. A run whose process `is_gone` ends as interrupted.

    Raises:
        RetryLater: the source has a run already, and its process works on.
    """
    with database.writing() as connection:
        exclusive(connection)
        running = connection.execute(_SELECT.where(_running(source))).one_or_none()
        if running:
            _take_over(connection, _run(running), is_gone)
        return _insert(connection, source, kind, holder)


def renew(
    database: Database, run: int, stage: str, item: str | None, counts: Mapping[str, int]
) -> None:
    """Say what the run is doing.

    Raises:
        RetryLater: it has been taken over by another process.
    """
    values = {"stage": stage, "item": item, "counts": dict(counts), "renewed_at": datetime.now(UTC)}
    with database.writing() as connection:
        changed = connection.execute(
            update(runs).where(runs.c.id == run, runs.c.state == "running").values(values)
        )
        if not changed.rowcount:
            raise RetryLater(
                "Another process has taken over: this one had not been heard of for too long.",
                after=timedelta(minutes=1),
            )


def finish(
    database: Database,
    run: int,
    state: RunState,
    counts: Mapping[str, int],
    error: str | None = None,
) -> None:
    """Close the run. One that has been taken over stays as it was closed."""
    now = datetime.now(UTC)
    values = {
        "state": state,
        "counts": dict(counts),
        "error": error,
        "renewed_at": now,
        "finished_at": now,
    }
    with database.writing() as connection:
        connection.execute(
            update(runs).where(runs.c.id == run, runs.c.state == "running").values(values)
        )


def latest(database: Database) -> dict[str, Run]:
    """The last run of each source that has had one, by the source's name."""
    newest = select(func.max(runs.c.id)).group_by(runs.c.source_id)
    with database.reading() as connection:
        found = [_run(row) for row in connection.execute(_SELECT.where(runs.c.id.in_(newest)))]
    return {run.source: run for run in found}


def history(database: Database, source: str, limit: int = 20) -> list[Run]:
    """The last runs of a source, newest first."""
    query = _SELECT.where(sources.c.name == source).order_by(runs.c.id.desc()).limit(limit)
    with database.reading() as connection:
        return [_run(row) for row in connection.execute(query)]


_SELECT = select(runs, sources.c.name.label("source")).join(sources)


def _take_over(connection: Connection, run: Run, is_gone: Callable[[Run], bool]) -> None:
    if not is_gone(run):
        since = run.started_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        raise RetryLater(
            f"A {run.kind} of {run.source!r} is going on since {since}, in process"
            f" {run.holder.number} on {run.holder.host}. Wait until it is done, or stop it.",
            after=timedelta(minutes=1),
        )
    values = {
        "state": "interrupted",
        "finished_at": datetime.now(UTC),
        "error": "Its process ended before it was done.",
    }
    connection.execute(update(runs).where(runs.c.id == run.id).values(values))


def _insert(connection: Connection, source: str, kind: str, holder: Process) -> int:
    now = datetime.now(UTC)
    source_id = select(sources.c.id).where(sources.c.name == source).scalar_subquery()
    row = {
        "source_id": source_id,
        "kind": kind,
        "state": "running",
        "stage": "starting",
        "counts": {},
        "host": holder.host,
        "process": holder.number,
        "process_started": holder.started,
        "started_at": now,
        "renewed_at": now,
    }
    return int(connection.execute(insert(runs).values(row).returning(runs.c.id)).scalar_one())


def _running(source: str) -> ColumnElement[bool]:
    return and_(sources.c.name == source, runs.c.state == "running")


def _run(row: Row[tuple[object, ...]]) -> Run:
    return Run(
        id=row.id,
        source=row.source,
        kind=row.kind,
        state=row.state,
        stage=row.stage,
        item=row.item,
        counts=row.counts,
        error=row.error,
        holder=Process(row.host, row.process, row.process_started),
        started_at=row.started_at,
        renewed_at=row.renewed_at,
        finished_at=row.finished_at,
    )
