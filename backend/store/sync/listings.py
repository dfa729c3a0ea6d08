"""The latest listing of each source: its number, and from where it resumes while it is unfinished.

Its source may answer few requests at a time, or its process may be killed: the next run goes on where this one
ended, and what it listed counts as listed. Listings are numbered by source; the numbers grow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, select, update

from backend.store.database import Database, exclusive, upsert
from backend.store.schema.tables import documents, failures, listings, runs, sources
from backend.store.sync.runs import lock_running
from backend.store.sync.sources import select_source_id, where_source
from connectors.connector import Checkpoint

MAX_AGE = timedelta(days=7)
"""An older unfinished listing starts anew. A document that it passed over may have come back since, by a restored
page or a channel that is joined again, without being read again, and would be deleted at its end."""

BY_DOCUMENT = ((documents, documents.c.id), (failures, failures.c.document_id))
"""The tables with a row a document in which `listing` is the number of the latest listing that contained it."""


@dataclass(frozen=True, slots=True)
class OpenListing:
    number: int
    since: Checkpoint | None
    """From where it resumes."""


def resume(database: Database, run: int, max_age: timedelta = MAX_AGE) -> OpenListing:
    """Continue the unfinished listing of the run's source, or begin another where it cannot resume.

    Raises:
        RunEndedError: the run does not belong to the caller any more.
    """
    now = datetime.now(UTC)
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        latest = select(listings).where(listings.c.source_id == source_id)
        row = connection.execute(latest).one_or_none()
        if row is not None and row.checkpoint is not None and row.started_at > now - max_age:
            found = OpenListing(row.number, Checkpoint(row.checkpoint))
        else:
            # Before there were numbers of their own, listings had those of their runs.
            found = OpenListing(max(run, row.number + 1 if row else 0), None)
            _save(connection, source_id, found.number, now)
        numbered = update(runs).where(runs.c.id == run)
        connection.execute(numbered.values(listing=found.number))
    return found


def finish(database: Database, source: str) -> datetime | None:
    """Record that the listing was applied to its end, and return when it began; None if none was open."""
    unfinished = (
        listings.c.source_id == select_source_id(source),
        listings.c.started_at.is_not(None),
    )
    with database.writing() as connection:
        exclusive(connection)
        started_at = connection.scalar(select(listings.c.started_at).where(*unfinished))
        ended = {"started_at": None, "checkpoint": None, "compared_at": started_at}
        connection.execute(update(listings).where(*unfinished).values(ended))
    return started_at


def list_compared(database: Database, source: str | None = None) -> dict[str, datetime]:
    """Return of all sources, or of one, when the last listing began that was applied to its end, by name."""
    query = select(sources.c.name, listings.c.compared_at).join(sources)
    compared = query.where(listings.c.compared_at.is_not(None), *where_source(source))
    with database.reading() as connection:
        return dict(connection.execute(compared).all())


def save_reached(connection: Connection, source_id: int, number: int, reached: Checkpoint) -> None:
    """Record from where a listing resumes; one that is finished, or was begun anew, stays as it is."""
    unfinished = update(listings).where(
        listings.c.source_id == source_id,
        listings.c.number == number,
        listings.c.started_at.is_not(None),
    )
    connection.execute(unfinished.values(checkpoint=reached.value))


def mark_present(connection: Connection, ids: Sequence[str]) -> None:
    """Count these documents, which were read just now, as contained in the unfinished listings of their sources.

    A listing that goes on for hours has passed the places of documents that are new since.
    """
    if not ids:
        return
    unfinished = select(listings.c.source_id, listings.c.number).where(
        listings.c.started_at.is_not(None)
    )
    for source_id, number in connection.execute(unfinished).all():
        mark_listed(connection, source_id, number, ids)


def mark_listed(connection: Connection, source_id: int, number: int, ids: Sequence[str]) -> None:
    for table, key in BY_DOCUMENT:
        rows = update(table).where(table.c.source_id == source_id, key.in_(ids))
        connection.execute(rows.values(listing=number))
    back = (
        documents.c.source_id == source_id,
        documents.c.id.in_(ids),
        documents.c.unlisted_since.is_not(None),
    )
    connection.execute(update(documents).where(*back).values(unlisted_since=None))


def _save(connection: Connection, source_id: int, number: int, now: datetime) -> None:
    row = {"source_id": source_id, "number": number, "checkpoint": None, "started_at": now}
    upsert(connection, listings, [row])
