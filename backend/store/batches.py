"""Batches: what was read from a source and is to be indexed, each held by one worker at a time.

A batch and the checkpoint behind it are saved in one transaction, which also checks that the run is still
the saver's. A worker holds a batch under a lease, with a number that grows with every lease of it; whoever
comes with an older number may say nothing of it any more.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from backend.store import run_transitions
from backend.store import runs as run_rows
from backend.store.backoff import exponential_backoff
from backend.store.batch_codec import decode_changes, encode_changes
from backend.store.database import Database, exclusive
from backend.store.runs import Process
from backend.store.tables import batches, of_source, runs, source_named, sources
from connectors.connector import Checkpoint
from indexing.ingestion.batching import ClaimedBatch, DocumentChange, document_id
from indexing.ingestion.ledger import BatchFinished, LeaseLostError

Row = TypeVar("Row", bound=tuple[Any, ...])

LEASE = timedelta(seconds=60)
"""For which a batch, or a run, is held after its worker was heard of."""
back_off = exponential_backoff(timedelta(seconds=10), timedelta(hours=1))


def save(
    database: Database,
    run: int,
    changes: Sequence[DocumentChange],
    checkpoint: Checkpoint | None,
) -> None:
    """Save what a run has read and how far that is, both or none.

    Raises:
        RunEndedError: the run is not the caller's any more; nothing is saved.
    """
    payload = encode_changes(changes)
    ids = [document_id(change) for change in changes]
    with database.writing() as connection:
        exclusive(connection)
        mine = select(runs.c.source_id).where(runs.c.id == run, runs.c.state == "running")
        source_id = connection.scalar(mine)
        if source_id is None:
            raise run_rows.ended_error(connection, run)
        if changes:
            row = {
                "source_id": source_id,
                "run_id": run,
                "after": _last_batch_of(connection, source_id, ids),
                "document_ids": ids,
                "payload": payload,
                "saved_at": datetime.now(UTC),
            }
            _join_queue(connection, source_id)
            connection.execute(insert(batches).values(row))
        if checkpoint is not None:
            reached = update(sources).where(sources.c.id == source_id)
            connection.execute(reached.values(checkpoint=checkpoint.value))


def claim(
    database: Database,
    holder: Process,
    is_dead: Callable[[Process], bool],
    source: str | None = None,
    lease: timedelta = LEASE,
) -> ClaimedBatch | None:
    """Take the oldest batch of the source that has had the least lately, or of the one that is named.

    A batch whose worker `is_dead`, or has not been heard of, is taken over. None is taken of a source that
    is paused, whose run was cancelled, or is at something that batches would disturb.
    """
    now = datetime.now(UTC)
    if not _any_claimable(database, now, source):
        return None
    with database.writing() as connection:
        exclusive(connection)
        row = connection.execute(_next(now, is_dead, connection, source)).first()
        if row is None:
            return None
        values = run_rows.holder_columns(holder) | {
            "fence": row.fence + 1,
            "lease_until": now + lease,
        }
        connection.execute(update(batches).where(batches.c.id == row.id).values(values))
        served = update(sources).where(sources.c.id == row.source_id)
        connection.execute(served.values(served=sources.c.served + _cost(row.payload)))
    fence = row.fence + 1
    return ClaimedBatch(
        number=row.id,
        fence=fence,
        source=row.source,
        changes=decode_changes(row.payload),
        is_current=partial(is_current, database, row.id, fence),
    )


def _cost(payload: bytes) -> int:
    """What a batch counts for: its kilobytes. Those of a source that has just begun are small."""
    return 1 + len(payload) // 1_000


def _join_queue(connection: Connection, source_id: int) -> None:
    """Where nothing of a source waits, its turn begins anew, as start-time fair queueing has it (Goyal, Vin,
    Cheng 1996): where those are who wait, or, where none does, where the last one was. So it neither catches up
    on the time that it had nothing to do, nor pays for having been alone.
    """
    own = select(batches.c.id).where(batches.c.source_id == source_id)
    if connection.execute(own.limit(1)).first() is not None:
        return
    now: int | None = connection.scalar(_indexable(select(func.min(sources.c.served))))
    if now is None:
        now = connection.scalar(select(func.max(sources.c.served)))
    behind = update(sources).where(sources.c.id == source_id, sources.c.served < now)
    connection.execute(behind.values(served=now))


def renew(
    database: Database, held: Iterable[tuple[int, int]], lease: timedelta = LEASE
) -> set[tuple[int, int]]:
    """Hold these (number and fence) for longer, and tell those that are still held."""
    until = datetime.now(UTC) + lease
    still = set()
    with database.writing() as connection:
        for number, fence in held:
            mine = update(batches).where(_is_held(number, fence))
            if connection.execute(mine.values(lease_until=until)).rowcount:
                still.add((number, fence))
    return still


def is_current(database: Database, number: int, fence: int) -> bool:
    """Whether the lease is the latest one of its batch."""
    with database.reading() as connection:
        found = connection.execute(select(batches.c.id).where(_is_held(number, fence)))
        return found.first() is not None


def release(database: Database, held: Iterable[tuple[int, int]]) -> None:
    """Give these back, as if they had never been taken."""
    with database.writing() as connection:
        for number, fence in held:
            free = update(batches).where(_is_held(number, fence))
            connection.execute(free.values(lease_until=None))


def postpone(
    database: Database, held: Iterable[tuple[int, int]], next_try: datetime | None, reason: str
) -> None:
    """Give these back, not to be taken before then; their runs say what is waited for.

    Without a time each waits longer with every try, and not all of them as long: of those that were taken
    together one may be at fault, and the others are not to be taken with it again.
    """
    with database.writing() as connection:
        exclusive(connection)
        for number, fence in held:
            mine = _is_held(number, fence)
            row = connection.execute(select(batches).where(mine)).one_or_none()
            if row is None:
                continue
            at = next_try or datetime.now(UTC) + back_off(row.tries + 1) * random.uniform(0.7, 1.3)
            values = {"lease_until": None, "next_try": at, "tries": row.tries + 1}
            connection.execute(update(batches).where(mine).values(values))
            waits = update(runs).where(runs.c.id == row.run_id, runs.c.state == "running")
            connection.execute(waits.values(waiting_for=reason, next_try=at))


def list_ready_sources(database: Database) -> list[int]:
    """The sources, by number, of which there may be a batch to take now."""
    query = _indexable(select(batches.c.source_id)).where(_is_claimable(datetime.now(UTC)))
    query = query.distinct().order_by(batches.c.source_id)
    with database.reading() as connection:
        return list(connection.scalars(query))


def finish(connection: Connection, finished: BatchFinished) -> None:
    """Forget a batch that has been carried out, and count what came of it.

    Raises:
        LeaseLostError: it is another's by now.
    """
    mine = _is_held(finished.batch, finished.fence)
    run = connection.scalar(select(batches.c.run_id).where(mine))
    if run is None:
        raise LeaseLostError(finished.batch)
    connection.execute(delete(batches).where(batches.c.id == finished.batch))
    run_transitions.add_counts(connection, run, finished.counts, finished.item)


def count(database: Database, source: str) -> int:
    """How many batches of the source are not carried out yet."""
    query = select(func.count()).select_from(batches.join(sources))
    with database.reading() as connection:
        return connection.scalar(query.where(sources.c.name == source)) or 0


def counts(database: Database, source: str | None = None) -> dict[str, int]:
    """The same by source, of all or of one; those without any are left out."""
    query = select(sources.c.name, func.count()).select_from(batches.join(sources))
    with database.reading() as connection:
        found = connection.execute(query.where(*of_source(source)).group_by(sources.c.name))
        return dict(found.all())


def is_idle(database: Database, source: str, is_dead: Callable[[Process], bool]) -> bool:
    """Whether nobody works on a batch of the source. Leases that nobody keeps up are taken away."""
    now = datetime.now(UTC)
    leased = (
        select(batches)
        .join(sources)
        .where(sources.c.name == source, batches.c.lease_until.is_not(None))
    )
    with database.reading() as connection:
        if connection.execute(leased).first() is None:
            return True
    with database.writing() as connection:
        exclusive(connection)
        rows = connection.execute(leased).all()
        lapsed = [
            row.id for row in rows if row.lease_until <= now or is_dead(run_rows.read_holder(row))
        ]
        values = {"lease_until": None, "fence": batches.c.fence + 1}
        connection.execute(update(batches).where(batches.c.id.in_(lapsed)).values(values))
    return len(lapsed) == len(rows)


def delete_all(database: Database, source: str) -> None:
    """Forget all batches of a source that is to be removed, and whoever holds one."""
    with database.writing() as connection:
        exclusive(connection)
        connection.execute(delete(batches).where(batches.c.source_id == source_named(source)))


def _last_batch_of(connection: Connection, source_id: int, ids: Sequence[str]) -> int:
    """The last open batch that speaks of one of these documents; 0 where none does."""
    query = (
        select(batches.c.id, batches.c.document_ids)
        .where(batches.c.source_id == source_id)
        .order_by(batches.c.id.desc())
    )
    wanted = set(ids)
    for row in connection.execute(query):
        if not wanted.isdisjoint(row.document_ids):
            return int(row.id)
    return 0


def _any_claimable(database: Database, now: datetime, source: str | None) -> bool:
    """A look that disturbs no writer: whether there may be one to take."""
    query = select(batches.c.id).join(sources).where(_is_claimable(now), *of_source(source))
    leased = (
        select(batches.c.id).join(sources).where(batches.c.lease_until > now, *of_source(source))
    )
    with database.reading() as connection:
        return any(connection.execute(each.limit(1)).first() for each in (query, leased))


def _next(
    now: datetime, is_dead: Callable[[Process], bool], connection: Connection, source: str | None
) -> Select[tuple[object, ...]]:
    leased = select(batches.c.id, batches.c.host, batches.c.process, batches.c.process_started)
    rows = connection.execute(leased.where(batches.c.lease_until > now)).all()
    dead = [row.id for row in rows if is_dead(run_rows.read_holder(row))]
    earlier = batches.alias()
    held = batches.alias()
    in_hand = (
        select(func.count())
        .where(held.c.source_id == batches.c.source_id, held.c.lease_until > now)
        .scalar_subquery()
    )
    waits = exists().where(
        earlier.c.source_id == batches.c.source_id, earlier.c.id <= batches.c.after
    )
    return (
        _indexable(select(batches, sources.c.name.label("source")))
        .where(or_(_is_claimable(now), batches.c.id.in_(dead)))
        .where(~waits, *of_source(source))
        .order_by(in_hand, sources.c.served, batches.c.id)
        .limit(1)
    )


def _indexable(query: Select[Row]) -> Select[Row]:
    """The query, of batches whose source and run let them be indexed: a new run of a source has all of its
    batches."""
    run_lets = or_(
        and_(runs.c.state == "running", runs.c.stage == "indexing"),
        runs.c.state.in_(("waiting", "done", "failed", "interrupted", "needs a decision")),
    )
    joined = (
        query.select_from(batches)
        .join(sources, sources.c.id == batches.c.source_id)
        .join(runs, runs.c.id == batches.c.run_id)
    )
    return joined.where(sources.c.paused_at.is_(None), run_lets)


def _is_claimable(now: datetime) -> ColumnElement[bool]:
    unheld = or_(batches.c.lease_until.is_(None), batches.c.lease_until <= now)
    return and_(unheld, or_(batches.c.next_try.is_(None), batches.c.next_try <= now))


def _is_held(number: int, fence: int) -> ColumnElement[bool]:
    return and_(
        batches.c.id == number, batches.c.fence == fence, batches.c.lease_until.is_not(None)
    )
