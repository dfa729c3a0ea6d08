"""The latest listing of the groups of each source, and from where it resumes while it is unfinished.

It is finished once the documents were compared as well: then the members that it found count. A try that fails
in between lists no group again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import CompoundSelect, Connection, Select, delete, exists, select, update

from backend.store.database import Database, upsert
from backend.store.runs import lock_running
from backend.store.sources import select_source_id
from backend.store.tables import (
    conjunction_readers,
    document_readers,
    documents,
    group_listings,
    runs,
    source_groups,
)
from connectors.connector import Checkpoint, ReaderGroup

_MAX_AGE = timedelta(days=7)
"""An older unfinished listing starts anew."""
_MAX_WHOLE_AGE = timedelta(days=1)
"""So does one that listed all groups: who left since then must not wait for documents that are compared slowly."""


@dataclass(frozen=True, slots=True)
class GroupListing:
    number: int
    since: Checkpoint | None
    """From where it resumes."""
    is_whole: bool
    """All groups were listed."""


def resume(database: Database, run: int) -> GroupListing:
    """Continue the unfinished listing of the run's source, or begin another.

    Raises:
        RunEndedError: the run does not belong to the caller any more.
    """
    now = datetime.now(UTC)
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        latest = select(group_listings).where(group_listings.c.source_id == source_id)
        row = connection.execute(latest).one_or_none()
        if row is not None and row.started_at is not None:
            max_age = _MAX_WHOLE_AGE if row.is_whole else _MAX_AGE
            if row.started_at > now - max_age:
                reached = None if row.checkpoint is None else Checkpoint(row.checkpoint)
                return GroupListing(row.number, reached, bool(row.is_whole))
        number = row.number + 1 if row else 1
        begun = {"checkpoint": None, "is_whole": 0, "started_at": now}
        upsert(connection, group_listings, [{"source_id": source_id, "number": number, **begun}])
    return GroupListing(number, None, is_whole=False)


def save_page(
    connection: Connection,
    source_id: int,
    groups: Sequence[ReaderGroup],
    reached: Checkpoint | None,
) -> None:
    """Record that the listing contains these groups, and from where it resumes after them."""
    number = connection.scalar(_select_number(source_id))
    rows = [
        {"token": group.token, "source_id": source_id, "name": group.name, "listing": number}
        for group in groups
    ]
    upsert(connection, source_groups, rows)
    if reached is not None:
        _update(connection, source_id, checkpoint=reached.value)


def delete_unlisted(connection: Connection, source_id: int) -> None:
    """Delete the groups that the listing, which is whole now, did not contain."""
    unlisted = source_groups.c.listing != _select_number(source_id).scalar_subquery()
    connection.execute(
        delete(source_groups).where(source_groups.c.source_id == source_id, unlisted)
    )
    _update(connection, source_id, is_whole=1)


def finish(connection: Connection, source_id: int) -> None:
    """Record that the listing was applied to its end."""
    _update(connection, source_id, started_at=None, checkpoint=None, finished_at=datetime.now(UTC))


def has_finished(database: Database, source: str) -> bool:
    """Return whether the groups of a source were ever listed and applied to their end."""
    return last_finished(database, source) is not None


def last_finished(database: Database, source: str) -> datetime | None:
    """Return when the groups of a source were last listed and applied to their end."""
    query = select(group_listings.c.finished_at).where(
        group_listings.c.source_id == select_source_id(source)
    )
    with database.reading() as connection:
        finished: datetime | None = connection.scalar(query)
    return finished


def has_unlisted(database: Database, run: int) -> bool:
    """Return whether documents that were indexed since the run began name groups that were never listed."""
    with database.reading() as connection:
        begun = connection.execute(
            select(runs.c.source_id, runs.c.started_at).where(runs.c.id == run)
        ).one()
        named = _select_named(begun.source_id, begun.started_at).subquery()
        unlisted = named.c.reader.startswith(
            f"external:{begun.source_id}:"
        ) & named.c.reader.not_in(select(source_groups.c.token))
        return bool(connection.scalar(select(exists().where(unlisted))))


def _select_named(source_id: int, since: datetime) -> CompoundSelect[tuple[str]]:
    """Select the tokens that documents of a source name which were indexed since then."""
    fresh = select(document_readers.c.reader).join(documents)
    fresh = fresh.where(documents.c.source_id == source_id, documents.c.indexed_at >= since)
    of_clauses = select(conjunction_readers.c.reader).where(
        conjunction_readers.c.conjunction.in_(fresh)
    )
    return fresh.union(of_clauses)


def _select_number(source_id: int) -> Select[tuple[int]]:
    return select(group_listings.c.number).where(group_listings.c.source_id == source_id)


def _update(connection: Connection, source_id: int, **values: object) -> None:
    listing = update(group_listings).where(group_listings.c.source_id == source_id)
    connection.execute(listing.values(values))
