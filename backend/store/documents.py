"""What is held of documents: for an asker who may read one, and for the owner of the machine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, exists, func, select

from backend.store.database import Database
from backend.store.document_contents import decoded
from backend.store.tables import contents, document_readers, documents, of_source, sources
from connectors.access import Access, Readers
from connectors.document import Document
from connectors.errors import DamagedDataError

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    document: Document
    chunks: int
    indexed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDocument:
    """The ledger's row, as the owner sees it."""

    id: str
    source: str
    title: str
    link: str
    media_type: str
    readers: tuple[str, ...]
    chunks: int
    updated_at: datetime | None
    indexed_at: datetime


def find(database: Database, document_id: str, readers: Readers) -> StoredDocument | None:
    """The document, if the asker may read it; forbidden and missing look alike.

    Raises:
        DamagedDataError: the asker may read it, and its sections are lost.
    """
    with database.reading() as connection:
        row = _row(connection, document_id, _may_read(readers))
        document = row and _said(connection, row)
    if row is None:
        return None
    if document is None:
        if row.content is not None:
            _forget(database, document_id, row.content)
        raise DamagedDataError(
            f"The text of {document_id} is missing. Sync {row.source!r}: what is missing is read again."
        )
    return StoredDocument(document=document, chunks=row.chunks, indexed_at=row.indexed_at)


def last_version(connection: Connection, document_id: str) -> Document | None:
    """As it was stored, with its present access; None where it is not kept."""
    row = _row(connection, document_id)
    return row and _said(connection, row)


def list_documents(database: Database) -> Iterator[HeldDocument]:
    """All documents by id, whoever may read them: for the owner of the machine only."""
    after = ""
    while rows := _page(database, [documents.c.id > after], _PAGE):
        yield from rows
        after = rows[-1].id


def readable(
    database: Database, readers: Readers, after: str, limit: int, source: str | None = None
) -> list[HeldDocument]:
    """At most `limit` documents that the asker may read, by id, of those that follow `after`."""
    conditions = [documents.c.id > after, _may_read(readers)]
    if source is not None:
        conditions.append(sources.c.name == source)
    return _page(database, conditions, limit)


def counts(database: Database, source: str | None = None) -> Mapping[str, int]:
    """How many documents each source has, or one; those without any are left out."""
    count = (
        select(sources.c.name, func.count())
        .join(documents, documents.c.source_id == sources.c.id)
        .group_by(sources.c.name)
    )
    with database.reading() as connection:
        return dict(connection.execute(count.where(*of_source(source))).all())


def readers_of(connection: Connection, ids: Sequence[str]) -> dict[str, set[str]]:
    """The readers of each document; those that nobody may read are left out."""
    found: dict[str, set[str]] = {}
    condition = document_readers.c.document_id.in_(ids)
    for document_id, reader in connection.execute(select(document_readers).where(condition)):
        found.setdefault(document_id, set()).add(reader)
    return found


def _row(
    connection: Connection, document_id: str, *conditions: ColumnElement[bool]
) -> Row[Any] | None:
    """With the name of its source, and its content."""
    query = select(documents, sources.c.name.label("source"), contents.c.content)
    query = query.join(sources).outerjoin(contents)
    return connection.execute(query.where(documents.c.id == document_id, *conditions)).one_or_none()


def _said(connection: Connection, row: Row[Any]) -> Document | None:
    access = Access(frozenset(readers_of(connection, [row.id]).get(row.id, ())))
    return decoded(
        row.content, document_id=row.id, source=row.source, version=row.version, access=access
    )


def _forget(database: Database, document_id: str, damaged: bytes) -> None:
    """So that the next run of the source reads it again."""
    held = (contents.c.document_id == document_id, contents.c.content == damaged)
    with database.writing() as connection:
        connection.execute(delete(contents).where(*held))


def _may_read(readers: Readers) -> ColumnElement[bool]:
    return exists().where(
        document_readers.c.document_id == documents.c.id,
        document_readers.c.reader.in_(sorted(readers.tokens)),
    )


def _page(
    database: Database, conditions: Sequence[ColumnElement[bool]], limit: int
) -> list[HeldDocument]:
    query = (
        select(documents, sources.c.name.label("source"))
        .join(sources)
        .where(*conditions)
        .order_by(documents.c.id)
        .limit(limit)
    )
    with database.reading() as connection:
        rows = connection.execute(query).all()
        readers = readers_of(connection, [row.id for row in rows])
    return [
        HeldDocument(
            id=row.id,
            source=row.source,
            title=row.title,
            link=row.link,
            media_type=row.media_type,
            readers=tuple(sorted(readers.get(row.id, ()))),
            chunks=row.chunks,
            updated_at=row.updated_at,
            indexed_at=row.indexed_at,
        )
        for row in rows
    ]
