"""The state changes of a run, from its beginning to its end, by the process that holds it or by a person.

Each is one transaction that checks that the run is still in the state it leaves: a process that was taken
for dead finds its run closed, and can change nothing any more.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from sqlalchemy import ColumnElement, Connection, and_, func, insert, select, update

from backend.store.database import Database, exclusive
from backend.store.schema.tables import batches, runs, sources
from backend.store.sync.backoff import exponential_backoff
from backend.store.sync.runs import (
    LOST,
    OPEN,
    SELECT_RUNS,
    Process,
    Run,
    RunEndedError,
    RunState,
    ended_error,
    holder_columns,
    to_run,
    update_running,
)
from backend.store.sync.sources import select_source_id
from connectors.errors import TemporarilyUnavailableError

LOG = logging.getLogger("quarry.runs")
_CONTINUED = "Another run continued from there."
back_off = exponential_backoff(timedelta(minutes=1), timedelta(hours=6))
_ENDED_BY = {
    "paused": "The source was paused. To resume it: quarry sources resume {}.",
    "cancelled": "The run was cancelled. What it did is kept.",
    "interrupted": "The connection of {} was changed; a new run uses the new one.",
}


def begin(
    database: Database,
    source: str,
    kind: str,
    holder: Process,
    is_gone: Callable[[Run], bool],
    accepted: int | None = None,
    seen: int | None = None,
) -> int:
    """Open a run and return its number.

    Numbers grow, so that a run fences off the ones before it. A run whose process `is_gone` is closed as
    interrupted, as are those that wait or are paused. Their batches belong to this run from now on.

    Args:
        seen: the latest run that the caller knows of (0: none); the run does not begin after a later one.

    Raises:
        TemporarilyUnavailableError: the source has a running run, or has had one later than `seen`.
    """
    with database.writing() as connection:
        exclusive(connection)
        if seen is not None and _latest_of(connection, source) != seen:
            raise RunEndedError("Another worker was quicker.", "running")
        running = connection.execute(SELECT_RUNS.where(_running(source))).one_or_none()
        if running:
            _take_over(connection, to_run(running), is_gone)
        number = _insert(connection, source, kind, holder, accepted)
        _replace_earlier(connection, number)
        _log(connection, number)
    return number


def resume(database: Database, run: int, holder: Process) -> None:
    """Continue a waiting run in this process.

    Raises:
        RunEndedError: it is not waiting any more, or its source has another run.
    """
    now = datetime.now(UTC)
    values = holder_columns(holder) | {
        "state": "running",
        "stage": "starting",
        "waiting_for": None,
        "next_try": None,
        "renewed_at": now,
        "lease_until": None,
        "embedding": None,
    }
    with database.writing() as connection:
        exclusive(connection)
        source_id = select(runs.c.source_id).where(runs.c.id == run).scalar_subquery()
        others = select(runs.c.id).where(runs.c.source_id == source_id, runs.c.state == "running")
        free = connection.execute(others).first() is None
        waits = update(runs).where(runs.c.id == run, runs.c.state == "waiting")
        if not free or not connection.execute(waits.values(values)).rowcount:
            raise RunEndedError("Another process has continued the run.", "running")
        _log(connection, run)


def suspend(database: Database, run: int, reason: str, next_try: datetime) -> None:
    """Let the run wait until `next_try`, for any process to continue. Raises RunEndedError: it is not running
    any more."""
    values = {"state": "waiting", "waiting_for": reason, "next_try": next_try, "lease_until": None}
    _update(database, run, values)


def requeue(
    database: Database, run: int, state: Literal["interrupted", "failed"], reason: str
) -> None:
    """Close a run that made no progress, and queue another of its kind, after a longer wait each time.

    It is another run, so that a hung thread of this one finds it closed when it wakes up. Raises as `suspend`.
    """
    now = datetime.now(UTC)
    closed = {"state": state, "error": reason, "renewed_at": now, "finished_at": now}
    with database.writing() as connection:
        exclusive(connection)
        mine = select(runs).where(runs.c.id == run, runs.c.state == "running")
        row = connection.execute(mine).mappings().one_or_none()
        if row is None:
            raise ended_error(connection, run)
        connection.execute(update(runs).where(runs.c.id == run).values(closed))
        kept = ("source_id", "kind", "host", "process", "process_started", "accepted")
        waiting = {name: row[name] for name in kept} | {
            "state": "waiting",
            "stage": "starting",
            "counts": {},
            "started_at": now,
            "renewed_at": now,
            "waiting_for": reason,
            "next_try": now + back_off(row["tries"] + 1),
            "tries": row["tries"] + 1,
        }
        number = connection.scalar(insert(runs).values(waiting).returning(runs.c.id))
        left = update(batches).where(batches.c.run_id == run)
        connection.execute(left.values(run_id=number))
        _log(connection, run)


def require_decision(
    database: Database, run: int, message: str, decision: Mapping[str, int]
) -> None:
    """Close the run with what a person must decide. Raises as `suspend`."""
    state = "needs a decision"
    values = {"state": state, "decision": dict(decision), "error": message}
    _update(database, run, values | {"finished_at": datetime.now(UTC)})


def settle_decisions(
    database: Database, source: str, outcome: str, kind: str | None = None
) -> None:
    """Record how it ended on all runs of the source that need a decision, or on those of one kind.

    A person decided, and another run carries it out; or a later listing was applied, so that nothing is left to
    decide. A run that only began, failed or was cancelled settles nothing.
    """
    undecided = update(runs).where(
        runs.c.source_id == select_source_id(source), runs.c.state == "needs a decision"
    )
    if kind is not None:
        undecided = undecided.where(runs.c.kind == kind)
    with database.writing() as connection:
        connection.execute(undecided.values(state="decided", error=outcome))


def close(database: Database, run: int, state: RunState, error: str | None = None) -> bool:
    """Close the run and keep its counts; return whether it was still running."""
    now = datetime.now(UTC)
    values = {"state": state, "error": error, "renewed_at": now, "finished_at": now}
    with database.writing() as connection:
        mine = update(runs).where(runs.c.id == run, runs.c.state == "running")
        is_closed = bool(connection.execute(mine.values(values)).rowcount)
        _log(connection, run)
    return is_closed


def stop(database: Database, source: str, state: Literal["paused", "cancelled"]) -> None:
    """Pause or cancel the open run; the process that holds it notices within seconds."""
    with database.writing() as connection:
        exclusive(connection)
        _end(connection, source, state)


def interrupt(database: Database, source: str) -> None:
    """End the open run, to begin again with other settings, whose checkpoint would be of the former ones."""
    with database.writing() as connection:
        exclusive(connection)
        _end(connection, source, "interrupted", runs.c.kind.not_in(("reindex", "removal")))


def _end(
    connection: Connection, source: str, state: RunState, *conditions: ColumnElement[bool]
) -> None:
    values = {
        "state": state,
        "error": _ENDED_BY[state].format(source),
        "finished_at": datetime.now(UTC),
        "next_try": None,
    }
    going = update(runs).where(runs.c.source_id == select_source_id(source), runs.c.state.in_(OPEN))
    for run in connection.scalars(going.where(*conditions).values(values).returning(runs.c.id)):
        _log(connection, run)


def finish(
    database: Database,
    run: int,
    state: RunState,
    counts: Mapping[str, int],
    error: str | None = None,
) -> None:
    """Close the run with these counts; one that was taken over stays as it is."""
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
        _log(connection, run)


def _take_over(connection: Connection, run: Run, is_gone: Callable[[Run], bool]) -> None:
    if not is_gone(run):
        raise TemporarilyUnavailableError(
            f"{run.description}. Wait until it is done, or stop it.",
            retry_after=timedelta(minutes=1),
        )
    values = {
        "state": "interrupted",
        "finished_at": datetime.now(UTC),
        "error": LOST,
    }
    connection.execute(update(runs).where(runs.c.id == run.id).values(values))


def _update(database: Database, run: int, values: Mapping[str, object]) -> None:
    """Change a run, and log it. Raises RunEndedError: the run is not running any more."""
    with database.writing() as connection:
        update_running(connection, run, values)
        _log(connection, run)


def _latest_of(connection: Connection, source: str) -> int:
    """Return the number of the latest run of a source, or 0."""
    query = select(func.max(runs.c.id)).join(sources).where(sources.c.name == source)
    return connection.scalar(query) or 0


def _replace_earlier(connection: Connection, run: int) -> None:
    """Close the open runs before this one, and take over their batches."""
    source_id = select(runs.c.source_id).where(runs.c.id == run).scalar_subquery()
    values = {"state": "interrupted", "finished_at": datetime.now(UTC), "next_try": None}
    connection.execute(
        update(runs)
        .where(runs.c.source_id == source_id, runs.c.state.in_(("waiting", "paused")))
        .values(values | {"error": _CONTINUED})
    )
    connection.execute(update(batches).where(batches.c.source_id == source_id).values(run_id=run))


def _insert(
    connection: Connection, source: str, kind: str, holder: Process, accepted: int | None
) -> int:
    now = datetime.now(UTC)
    row: dict[str, object] = {
        "source_id": select_source_id(source),
        "kind": kind,
        "state": "running",
        "stage": "starting",
        "counts": {},
        "accepted": accepted,
        "started_at": now,
        "renewed_at": now,
    }
    opened = insert(runs).values(row | holder_columns(holder)).returning(runs.c.id)
    return int(connection.execute(opened).scalar_one())


def _running(source: str) -> ColumnElement[bool]:
    return and_(sources.c.name == source, runs.c.state == "running")


def _log(connection: Connection, run: int) -> None:
    """Log the state that a run is in now, with all that it has done.

    A source may be removed and another get its name; its id stays its own.
    """
    if not LOG.isEnabledFor(logging.INFO):
        return
    row = connection.execute(SELECT_RUNS.where(runs.c.id == run)).one_or_none()
    if row is None:  # its source was removed
        return
    fields: dict[str, object] = {
        "run": run,
        "source": row.source,
        "source_id": row.source_id,
        "kind": row.kind,
        "state": row.state,
        "counts": {name: count for name, count in row.counts.items() if count},
    }
    if reason := row.waiting_for if row.state == "waiting" else row.error:
        fields["reason"] = reason
    LOG.info("run %d of %s: %s", run, row.source, row.state, extra={"fields": fields})
