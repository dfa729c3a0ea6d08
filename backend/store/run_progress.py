"""What a running run does: its stage, how far it is, what it waits for, and its lease.

All functions raise RunEndedError where the run was taken over, paused or cancelled, unless they say otherwise.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from sqlalchemy import Connection, case, func, literal, select, update

from backend.store.database import Database, Moment, exclusive
from backend.store.runs import ended_error
from backend.store.tables import batches, runs
from indexing.ingestion.progress import Embedding, Progress


def update_running(connection: Connection, run: int, values: Mapping[str, object]) -> None:
    """Set columns of the run."""
    fresh = dict(values) | {"renewed_at": datetime.now(UTC)}
    mine = update(runs).where(runs.c.id == run, runs.c.state == "running")
    if not connection.execute(mine.values(fresh)).rowcount:
        raise ended_error(connection, run)


def renew(
    database: Database, run: int, stage: str, item: str | None, counts: Mapping[str, int]
) -> None:
    """Record what a run does that works on no documents of a source."""
    _update(database, run, {"stage": stage, "item": item, "counts": dict(counts)})


def enter_stage(database: Database, run: int, stage: str) -> None:
    """Enter a stage; batches are claimed in the stage `indexing` alone."""
    values = {
        "stage": stage,
        "stage_at": datetime.now(UTC),
        "done": 0,
        **dict.fromkeys(("total", "item", "waiting_for", "embedding")),
    }
    _update(database, run, values)


def set_total(database: Database, run: int, remaining: int) -> None:
    """Record how many documents the stage has still to deal with."""
    _update(database, run, {"total": runs.c.done + remaining})


def set_activity(
    database: Database, run: int, item: str | None = None, waiting_for: str | None = None
) -> None:
    """Record what is worked on or waited for."""
    _update(database, run, {"item": item, "waiting_for": waiting_for})


def renew_lease(database: Database, run: int, until: datetime) -> None:
    """Extend the lease: the process renews it before `until`, or is dead."""
    _update(database, run, {"lease_until": until})


def mark_fetched(database: Database, run: int) -> None:
    """Record that the source was read to its end: from now on it is known how much there is to index."""
    open_changes = (
        select(func.coalesce(func.sum(batches.c.changes), 0))
        .where(batches.c.source_id == runs.c.source_id)
        .scalar_subquery()
    )
    total = runs.c.done + open_changes
    _update(database, run, {"fetched": 1, "waiting_for": None, "total": total})


def report_progress(
    database: Database, run: int, progress: Progress, more: Mapping[str, int]
) -> None:
    """Record what the run is doing, and add the counts since the last report."""
    with database.writing() as connection:
        exclusive(connection)
        now = literal(datetime.now(UTC), Moment)
        began = case((runs.c.stage == progress.stage, runs.c.stage_at), else_=now)
        values = {
            "stage": progress.stage,
            "stage_at": began,
            "done": progress.done,
            "total": progress.total,
            "embedding": progress.embedding and asdict(progress.embedding),
        }
        update_running(connection, run, values)
        add_counts(connection, run, more, progress.item)


def record_embedding(database: Database, embedding: Embedding) -> None:
    """Record what is embedded, on the run of its batch; never raises RunEndedError."""
    run = select(batches.c.run_id).where(batches.c.id == embedding.batch).scalar_subquery()
    with database.writing() as connection:
        mine = update(runs).where(runs.c.id == run, runs.c.state == "running")
        connection.execute(mine.values(embedding=asdict(embedding), renewed_at=datetime.now(UTC)))


def add_counts(
    connection: Connection,
    run: int,
    counts: Mapping[str, int],
    item: str | None = None,
    done: int = 0,
) -> None:
    """Add to the counts of the run and to what is done of its stage, whichever process holds it."""
    query = select(runs.c.counts).where(runs.c.id == run).with_for_update()
    before = dict(connection.execute(query).scalar_one())
    added = {name: before.get(name, 0) + more for name, more in counts.items() if more}
    values: dict[str, object] = {
        "counts": before | added,
        "done": runs.c.done + done,
        "renewed_at": datetime.now(UTC),
    }
    if item is not None:
        values["item"] = item
    connection.execute(update(runs).where(runs.c.id == run).values(values))
    # A running run that made progress waits for nothing; a suspended one still waits for its source.
    goes_on = update(runs).where(runs.c.id == run, runs.c.state == "running")
    connection.execute(goes_on.values(waiting_for=None, next_try=None))


def _update(database: Database, run: int, values: Mapping[str, object]) -> None:
    with database.writing() as connection:
        update_running(connection, run, values)
