"""The documents that could not be read or indexed, why, and when they are tried again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, or_, select, update

from backend.store.database import Database, inserting, upsert
from backend.store.schema.tables import failures, sources
from backend.store.sync.backoff import exponential_backoff
from backend.store.sync.sources import (
    EVERY_SOURCE,
    SourceChoice,
    count_rows_by_source,
    select_source_id,
    where_chosen,
    where_source,
)
from indexing.ingestion.ledger import Failed, Unread

_PAGE = 500
back_off = exponential_backoff(timedelta(minutes=15), timedelta(days=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    source: str
    document_id: str
    item: str
    """A name that people know it by."""
    link: str | None
    reason: str
    tries: int
    first_at: datetime
    last_at: datetime
    next_try: datetime | None = None
    """None: with the next run, or, if it waits for a change, on request only."""
    version: str | None = None
    """Set if this version can never be read."""

    @property
    def waits_for_change(self) -> bool:
        return self.version is not None and self.next_try is None


def list_due(database: Database, source: str, now: datetime, limit: int) -> list[str]:
    """Return the documents whose next try has come, longest due first."""
    next_run = and_(failures.c.next_try.is_(None), failures.c.version.is_(None))
    come = or_(next_run, failures.c.next_try <= now)
    query = (
        select(failures.c.document_id)
        .join(sources)
        .where(sources.c.name == source, come)
        .order_by(failures.c.next_try.nulls_first(), failures.c.document_id)
        .limit(limit)
    )
    with database.reading() as connection:
        return list(connection.scalars(query))


def retry_now(database: Database, source: str, document_ids: Sequence[str] | None) -> int:
    """Set the next try of these documents, or of all, to now; return their number."""
    chosen = update(failures).where(failures.c.source_id == select_source_id(source))
    if document_ids is not None:
        chosen = chosen.where(failures.c.document_id.in_(document_ids))
    with database.writing() as connection:
        return connection.execute(chosen.values(next_try=datetime.now(UTC))).rowcount


def forget_versions(database: Database, source_id: int) -> None:
    """Let all failures of a source be read again, whatever their versions: its settings may mend them."""
    final = update(failures).where(
        failures.c.source_id == source_id, failures.c.version.is_not(None)
    )
    with database.writing() as connection:
        connection.execute(final.values(version=None, next_try=datetime.now(UTC)))


def list_failures(
    database: Database, source: str | None = None, choice: SourceChoice = EVERY_SOURCE
) -> Iterator[Failure]:
    """Yield the failures of the sources of the choice, or of one of them, by document id."""
    after = ""
    while page := _read_page(database, source, choice, after):
        yield from page
        after = page[-1].document_id


def find(database: Database, document_id: str) -> Failure | None:
    """Return why a document could not be read, if so: only for an administrator."""
    found = _select_page(database, [failures.c.document_id == document_id])
    return found[0] if found else None


def count_by_source(database: Database, source: str | None = None) -> Mapping[str, int]:
    """Return the number of failures of each source, or of one; sources without failures are absent."""
    return count_rows_by_source(database, failures, source)


def record(
    connection: Connection,
    failed: Sequence[Failed],
    source_ids: Mapping[str, int],
    now: datetime,
    run: int | None,
) -> int:
    """Record failures, and return how many of the documents had not failed in this run yet.

    A run that was interrupted may come to a document again: that is no other try.
    """
    ids = [failure.document_id for failure in failed]
    query = select(failures.c.document_id, failures.c.tries, failures.c.run)
    found = connection.execute(query.where(failures.c.document_id.in_(ids)))
    before = {row.document_id: row for row in found}
    again = {key for key, row in before.items() if run is not None and row.run == run}
    tries = {key: row.tries + (key not in again) for key, row in before.items()}
    rows = [
        {
            "document_id": failure.document_id,
            "source_id": source_ids[failure.source],
            "item": failure.item,
            "link": failure.link,
            "reason": failure.reason,
            "tries": (count := tries.get(failure.document_id, 1)),
            "first_at": now,
            "last_at": now,
            "next_try": None if failure.version is not None else now + back_off(count),
            "version": failure.version,
            "run": run,
        }
        for failure in failed
    ]
    if rows:
        upsert(connection, failures, rows, kept=frozenset({"first_at"}))
    return len(rows) - len(again)


def record_pending(
    connection: Connection, unread: Sequence[Unread], source_ids: Mapping[str, int], now: datetime
) -> None:
    """Record documents to be read with the next run, except those that have failed already."""
    rows = [
        {
            "document_id": each.document_id,
            "source_id": source_ids[each.source],
            "item": each.document_id.partition(":")[2],
            "reason": "The source lists it, but it has not been read yet.",
            "tries": 0,
            "first_at": now,
            "last_at": now,
            "next_try": now,
        }
        for each in unread
    ]
    if rows:
        connection.execute(inserting(connection, failures).on_conflict_do_nothing(), rows)


def _read_page(
    database: Database, source: str | None, choice: SourceChoice, after: str
) -> list[Failure]:
    chosen = (*where_source(source), *where_chosen(choice))
    return _select_page(database, [failures.c.document_id > after, *chosen])


def _select_page(database: Database, conditions: Sequence[ColumnElement[bool]]) -> list[Failure]:
    query = (
        select(failures, sources.c.name.label("source"))
        .join(sources)
        .where(*conditions)
        .order_by(failures.c.document_id)
        .limit(_PAGE)
    )
    with database.reading() as connection:
        rows = connection.execute(query).all()
    return [
        Failure(
            source=row.source,
            document_id=row.document_id,
            item=row.item,
            link=row.link,
            reason=row.reason,
            tries=row.tries,
            first_at=row.first_at,
            last_at=row.last_at,
            next_try=row.next_try,
            version=row.version,
        )
        for row in rows
    ]
