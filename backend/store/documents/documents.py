"""Queries of stored documents: those that a user may read, and all of them for the owner of the machine.

Conjunctions, clauses that an asker must all meet, are known to documents by one derived token each.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, exists, func, or_, select

from backend.store.database import Database, inserting, select_texts
from backend.store.documents.document_contents import decode_document
from backend.store.schema.tables import (
    conjunction_readers,
    conjunctions,
    contents,
    document_readers,
    documents,
    sources,
)
from backend.store.sync.sources import IS_CONNECTED, count_rows_by_source
from connectors.access import CONJUNCTION_PREFIX, NOBODY, Access, Readers, describe_readers
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
    """A row of the ledger with its access."""

    id: str
    source: str
    title: str
    link: str
    media_type: str
    access: Access
    chunks: int
    updated_at: datetime | None
    indexed_at: datetime

    @property
    def readers(self) -> tuple[str, ...]:
        return tuple(describe_readers(self.access))


def find(database: Database, document_id: str, readers: Readers) -> StoredDocument | None:
    """Return the document if the readers include one of its own; forbidden and missing look alike.

    Raises:
        DamagedDataError: it may be read, but its content is lost.
    """
    with database.reading() as connection:
        row = _read_row(connection, document_id, _may_read(database, readers))
        document = row and _decode_row(connection, row)
    if row is None:
        return None
    if document is None:
        if row.content is not None:
            _delete_damaged(database, document_id, row.content)
        raise DamagedDataError(
            f"The text of {document_id} is missing. Sync {row.source!r}: missing texts are then fetched again."
        )
    return StoredDocument(document=document, chunks=row.chunks, indexed_at=row.indexed_at)


def read_document(connection: Connection, document_id: str) -> Document | None:
    """Return the stored version with its current access; None if its content is not stored."""
    row = _read_row(connection, document_id)
    return row and _decode_row(connection, row)


def list_documents(database: Database) -> Iterator[HeldDocument]:
    """Yield all documents by id, regardless of permissions: only for the owner of the machine."""
    after = ""
    while rows := _read_page(database, [documents.c.id > after], _PAGE):
        yield from rows
        after = rows[-1].id


def find_held(database: Database, name: str) -> HeldDocument | None:
    """Return the document of an id or a link, regardless of permissions: only to explain to an
    administrator who may read it. Files of people's own are nobody's but theirs: there is nothing to explain.
    """
    for column in (documents.c.id, documents.c.link):
        if found := _read_page(database, [column == name, IS_CONNECTED], 1):
            return found[0]
    return None


def list_readable(
    database: Database, readers: Readers, after: str, limit: int, source: str | None = None
) -> list[HeldDocument]:
    """Return at most `limit` documents that may be read, by id, starting after the id `after`."""
    conditions = [documents.c.id > after, _may_read(database, readers)]
    if source is not None:
        conditions.append(sources.c.name == source)
    return _read_page(database, conditions, limit)


def find_by_name(database: Database, name: str, readers: Readers, limit: int) -> list[HeldDocument]:
    """Return documents that may be read with this link, title or file name, by id.

    A link may name a place in the document, such as `#page=3`.
    """
    named = or_(
        documents.c.link.in_([name, name.partition("#")[0]]),
        documents.c.title == name,
        func.lower(documents.c.title) == name.lower(),
        documents.c.id.endswith(f"/{name}", autoescape=True),
        documents.c.id.endswith(f":{name}", autoescape=True),
    )
    return _read_page(database, [named, _may_read(database, readers)], limit)


def count_by_source(database: Database, source: str | None = None) -> Mapping[str, int]:
    """Return the number of documents of each source, or of one; sources without documents are absent."""
    return count_rows_by_source(database, documents, source)


def read_access(connection: Connection, ids: Sequence[str]) -> dict[str, Access]:
    """Return who may read each document; those that nobody may read are absent."""
    found: dict[str, set[str]] = {}
    condition = document_readers.c.document_id.in_(ids)
    for document_id, reader in connection.execute(select(document_readers).where(condition)):
        found.setdefault(document_id, set()).add(reader)
    return _resolve_access(connection, found)


def _read_row(
    connection: Connection, document_id: str, *conditions: ColumnElement[bool]
) -> Row[Any] | None:
    """Return the row with the name of its source and its content."""
    query = select(documents, sources.c.name.label("source"), contents.c.content)
    query = query.join(sources).outerjoin(contents)
    return connection.execute(query.where(documents.c.id == document_id, *conditions)).one_or_none()


def _decode_row(connection: Connection, row: Row[Any]) -> Document | None:
    access = read_access(connection, [row.id]).get(row.id, NOBODY)
    return decode_document(
        row.content, document_id=row.id, source=row.source, version=row.version, access=access
    )


def _delete_damaged(database: Database, document_id: str, damaged: bytes) -> None:
    """Delete damaged content, so that the next run of the source fetches it again."""
    held = (contents.c.document_id == document_id, contents.c.content == damaged)
    with database.writing() as connection:
        connection.execute(delete(contents).where(*held))


def _may_read(database: Database, readers: Readers) -> ColumnElement[bool]:
    return and_(*(_names_one(database, tokens) for tokens in readers.token_sets))


def _names_one(database: Database, tokens: Collection[str]) -> ColumnElement[bool]:
    return exists().where(
        document_readers.c.document_id == documents.c.id,
        document_readers.c.reader.in_(select_texts(database.engine.name, tokens)),
    )


def _read_page(
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
        access = read_access(connection, [row.id for row in rows])
    return [
        HeldDocument(
            id=row.id,
            source=row.source,
            title=row.title,
            link=row.link,
            media_type=row.media_type,
            access=access.get(row.id, NOBODY),
            chunks=row.chunks,
            updated_at=row.updated_at,
            indexed_at=row.indexed_at,
        )
        for row in rows
    ]


def save_conjunctions(connection: Connection, granted: Iterable[Access]) -> None:
    """Save the conjunctions among these that are not saved yet, with their derived tokens.

    A conjunction is saved before anything carries its token, and is never changed: the token is derived from the
    clauses. It is kept when no document carries it any more, since the next one may, and an index may still hold it.
    """
    # In the order of tokens, so that two transactions that save the same ones do not deadlock.
    found = sorted(
        (token, each) for each in set(granted) if each.is_conjunction for token in each.readers
    )
    rows = [{"token": token, "clauses": len(each.clauses)} for token, each in found]
    readers = [
        {"reader": reader, "conjunction": token, "clause": number}
        for token, each in found
        for number, clause in enumerate(each.to_json())
        for reader in clause
    ]
    for table, values in ((conjunctions, rows), (conjunction_readers, readers)):
        if values:
            connection.execute(inserting(connection, table).on_conflict_do_nothing(), values)


def _resolve_access(connection: Connection, readers: Mapping[str, set[str]]) -> dict[str, Access]:
    """Return the access of each document from its flat tokens; nobody's where a conjunction is unknown."""
    derived = {token for tokens in readers.values() for token in tokens if _is_derived(token)}
    known = _read_conjunctions(connection, derived) if derived else {}
    return {document: _to_access(tokens, known) for document, tokens in readers.items()}


def _to_access(tokens: set[str], known: Mapping[str, Access]) -> Access:
    derived = next(filter(_is_derived, tokens), None)
    return Access.to(tokens) if derived is None else known.get(derived, NOBODY)


def _read_conjunctions(connection: Connection, tokens: Iterable[str]) -> dict[str, Access]:
    query = select(conjunction_readers).where(conjunction_readers.c.conjunction.in_(sorted(tokens)))
    clauses: dict[str, dict[int, set[str]]] = {}
    for reader, token, number in connection.execute(query):
        clauses.setdefault(token, {}).setdefault(number, set()).add(reader)
    return {token: Access.all_of(each.values()) for token, each in clauses.items()}


def _is_derived(token: str) -> bool:
    return token.startswith(CONJUNCTION_PREFIX)
