"""Batches: changes that were fetched from a source and wait to be indexed, each by one worker at a time.

A batch and the checkpoint after it are saved in one transaction, which also checks that the run still belongs
to the process: so a checkpoint never skips a change, and a process that lost its run saves nothing. A worker
claims a batch under a lease with a fencing number that grows with every lease of the batch. A worker whose
lease ran out may still be at work; its number is older by then, so that nothing it reports is accepted.
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

from backend.store.database import Database, exclusive
from backend.store.documents.document_contents import decode_changes, encode_changes
from backend.store.schema.tables import batches, runs, sources
from backend.store.sync import runs as run_rows
from backend.store.sync.backoff import exponential_backoff
from backend.store.sync.runs import Process
from backend.store.sync.sources import select_source_id, where_source
from connectors.connector import Checkpoint
from indexing.ingestion.batching import ClaimedBatch, DocumentChange, document_id
from indexing.ingestion.ledger import BatchFinished, LeaseLostError, LedgerChange

Row = TypeVar("Row", bound=tuple[Any, ...])

LEASE = timedelta(seconds=60)
"""How long a batch, or a run, belongs to its worker after the last sign of life."""
back_off = exponential_backoff(timedelta(seconds=10), timedelta(hours=1))


def save(
    database: Database,
    run: int,
    changes: Sequence[DocumentChange],
    checkpoint: Checkpoint | None,
) -> None:
    """Save the changes that a run has fetched and the checkpoint after them, both or neither.

    Raises:
        RunEndedError: the run does not belong to the caller any more; nothing is saved.
    """
    payload = encode_changes(changes)
    ids = [document_id(change) for change in changes]
    with database.writing() as connection:
        source_id = run_rows.lock_running(connection, run)
        if changes:
            row = {
                "source_id": source_id,
                "run_id": run,
                "after": _last_batch_of(connection, source_id, ids),
                "document_ids": ids,
                "changes": len(changes),
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
    """Claim the oldest batch of the source that was served least of late, or of this source.

    A batch whose worker `is_dead`, or whose lease ran out, is claimed too. No batch is claimed of a source
    that is paused, or whose run was cancelled or is in a stage that indexing would disturb.
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
    """Return what a batch counts for in the queue: its kilobytes."""
    return 1 + len(payload) // 1_000


def _join_queue(connection: Connection, source_id: int) -> None:
    """Let a source without waiting batches join the queue, by start-time fair queueing (Goyal, Vin, Cheng 1996).

    Its virtual time becomes that of the waiting sources or, if none waits, of the source served last. So it
    neither catches up on idle time nor pays for having been served alone.
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
    """Extend the leases of these batches (number and fence); return those that are still held."""
    until = datetime.now(UTC) + lease
    still = set()
    with database.writing() as connection:
        for number, fence in held:
            mine = update(batches).where(_is_held(number, fence))
            if connection.execute(mine.values(lease_until=until)).rowcount:
                still.add((number, fence))
    return still


def is_current(database: Database, number: int, fence: int) -> bool:
    """Return whether the lease is the latest one of its batch."""
    with database.reading() as connection:
        found = connection.execute(select(batches.c.id).where(_is_held(number, fence)))
        return found.first() is not None


def release(database: Database, held: Iterable[tuple[int, int]]) -> None:
    """Give these batches back, for any worker to claim."""
    with database.writing() as connection:
        for number, fence in held:
            free = update(batches).where(_is_held(number, fence))
            connection.execute(free.values(lease_until=None))


def postpone(
    database: Database, held: Iterable[tuple[int, int]], next_try: datetime | None, reason: str
) -> None:
    """Give these batches back until `next_try`, with the reason on their runs.

    Without a time each waits longer with every try, by a random factor: if one of several batches that failed
    together is at fault, the others must not be claimed together with it again.
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
    """Return the ids of the sources that may have a batch to claim now."""
    query = _indexable(select(batches.c.source_id)).where(_is_claimable(datetime.now(UTC)))
    query = query.distinct().order_by(batches.c.source_id)
    with database.reading() as connection:
        return list(connection.scalars(query))


def find_run(connection: Connection, changes: Iterable[LedgerChange]) -> int | None:
    """Return the run whose batch these changes finish, if they finish one."""
    finished = next((one for one in changes if isinstance(one, BatchFinished)), None)
    if finished is None:
        return None
    return connection.scalar(select(batches.c.run_id).where(batches.c.id == finished.batch))


def finish(connection: Connection, finished: BatchFinished) -> None:
    """Delete a batch that was indexed, and add its counts to its run.

    It is part of the ledger's transaction: what a worker wrote after its lease was lost is rolled back.

    Raises:
        LeaseLostError: another worker holds it by now.
    """
    mine = _is_held(finished.batch, finished.fence)
    row = connection.execute(select(batches.c.run_id, batches.c.changes).where(mine)).first()
    if row is None:
        raise LeaseLostError(finished.batch)
    connection.execute(delete(batches).where(batches.c.id == finished.batch))
    run_rows.add_counts(connection, row.run_id, finished.counts, finished.item, row.changes)


def count(database: Database, source: str) -> int:
    """Count the open batches of a source."""
    query = select(func.count()).select_from(batches.join(sources))
    with database.reading() as connection:
        return connection.scalar(query.where(sources.c.name == source)) or 0


def counts(database: Database, source: str | None = None) -> dict[str, int]:
    """Count the open batches of all sources, or of one; sources without any are left out."""
    query = select(sources.c.name, func.count()).select_from(batches.join(sources))
    with database.reading() as connection:
        found = connection.execute(query.where(*where_source(source)).group_by(sources.c.name))
        return dict(found.all())


def is_idle(database: Database, source: str, is_dead: Callable[[Process], bool]) -> bool:
    """Return whether no worker holds a batch of the source; leases that ran out are revoked."""
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
    """Delete all batches of a source that is about to be removed, claimed ones too."""
    with database.writing() as connection:
        exclusive(connection)
        connection.execute(delete(batches).where(batches.c.source_id == select_source_id(source)))


def _last_batch_of(connection: Connection, source_id: int, ids: Sequence[str]) -> int:
    """Return the last open batch with a change of one of these documents, or 0.

    The new batch waits for it: two changes of one document are indexed in order.
    """
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
    """Return whether there may be a batch to claim, without locking out writers."""
    query = select(batches.c.id).join(sources).where(_is_claimable(now), *where_source(source))
    leased = (
        select(batches.c.id).join(sources).where(batches.c.lease_until > now, *where_source(source))
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
        .where(~waits, *where_source(source))
        .order_by(in_hand, sources.c.served, batches.c.id)
        .limit(1)
    )


def _indexable(query: Select[Row]) -> Select[Row]:
    """Limit a query to batches whose source and run allow indexing. All batches of a source belong to its
    latest run."""
    run_lets = or_(
        and_(runs.c.state == "running", runs.c.stage == "indexing"),
        runs.c.state.in_(
            ("waiting", "done", "failed", "interrupted", "needs a decision", "decided")
        ),
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
