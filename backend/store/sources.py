"""The sources: what is connected, by which settings, and how far it has been read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Row, delete, insert, select
from sqlalchemy.exc import IntegrityError

from backend.store.database import Database
from backend.store.tables import runs, sources
from connectors.connector import Checkpoint, source_name
from connectors.errors import AskTheOwner


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    id: int
    name: str
    kind: str
    """As `connectors.catalog` names it."""
    settings: Mapping[str, object]
    """JSON values; what they mean is the connector's."""
    checkpoint: Checkpoint | None
    created_at: datetime


def add(database: Database, name: str, kind: str, settings: Mapping[str, object]) -> Source:
    """Enter a source.

    Raises:
        ValueError: a name that cannot begin the ids of documents.
        AskTheOwner: there is one of this name.
    """
    row = {
        "name": source_name(name),
        "kind": kind,
        "settings": dict(settings),
        "created_at": datetime.now(UTC),
    }
    try:
        with database.writing() as connection:
            connection.execute(insert(sources).values(row))
    except IntegrityError as error:
        raise AskTheOwner(
            f"There is a source named {name!r} already. Give this one another name."
        ) from error
    return find(database, name)


def find(database: Database, name: str) -> Source:
    """Raises AskTheOwner: there is none of this name."""
    with database.reading() as connection:
        row = connection.execute(select(sources).where(sources.c.name == name)).one_or_none()
    if row is None:
        names = ", ".join(source.name for source in listing(database)) or "none yet"
        raise AskTheOwner(f"There is no source named {name!r}. There are: {names}.")
    return _source(row)


def listing(database: Database) -> list[Source]:
    """All sources by name."""
    with database.reading() as connection:
        return [
            _source(row) for row in connection.execute(select(sources).order_by(sources.c.name))
        ]


def remove(database: Database, name: str) -> None:
    """Forget a source whose documents and failures have been removed before, and its runs.

    Raises:
        AskTheOwner: it has documents, or there is none of this name.
    """
    source = find(database, name)
    try:
        with database.writing() as connection:
            connection.execute(delete(runs).where(runs.c.source_id == source.id))
            connection.execute(delete(sources).where(sources.c.id == source.id))
    except IntegrityError as error:
        raise AskTheOwner(
            f"{name!r} has documents still. Remove them from the index first."
        ) from error


def _source(row: Row[tuple[object, ...]]) -> Source:
    return Source(
        id=row.id,
        name=row.name,
        kind=row.kind,
        settings=row.settings,
        checkpoint=None if row.checkpoint is None else Checkpoint(row.checkpoint),
        created_at=row.created_at,
    )
