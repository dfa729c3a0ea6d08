"""The live workers: each registers again and again, with what keeps it from its work."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, select

from backend.store.database import Database, upsert
from backend.store.schema.tables import workers
from backend.store.sync import runs
from backend.store.sync.runs import Process

FRESH = timedelta(seconds=45)
"""A live worker has registered within this time: three heartbeats."""
_FORGOTTEN = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorker:
    process: Process
    queue: str
    """The queue that it works on; `beat` sends the messages to the others."""
    seen_at: datetime
    trouble: str | None


def register(database: Database, process: Process, queue: str, trouble: str | None = None) -> None:
    """Record that this process works on a queue, and delete workers that were silent for a day."""
    now = datetime.now(UTC)
    row = runs.holder_columns(process) | {"queue": queue, "seen_at": now, "trouble": trouble}
    with database.writing() as connection:
        upsert(connection, workers, [row])
        connection.execute(delete(workers).where(workers.c.seen_at < now - _FORGOTTEN))


def unregister(database: Database, process: Process) -> None:
    """Delete the entry of a process that ends."""
    with database.writing() as connection:
        connection.execute(delete(workers).where(_is(process)))


def list_live(database: Database) -> list[LiveWorker]:
    """Return the workers with a recent heartbeat, by queue."""
    since = datetime.now(UTC) - FRESH
    query = select(workers).where(workers.c.seen_at > since)
    with database.reading() as connection:
        found = connection.execute(query.order_by(workers.c.queue, workers.c.host)).all()
    return [
        LiveWorker(
            process=runs.read_holder(row), queue=row.queue, seen_at=row.seen_at, trouble=row.trouble
        )
        for row in found
    ]


def _is(process: Process) -> ColumnElement[bool]:
    return and_(*(workers.c[name] == value for name, value in runs.holder_columns(process).items()))
