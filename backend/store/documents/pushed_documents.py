"""The documents that programs put in: what a sync reads of them, and what became of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from sqlalchemy import ColumnElement, Row, Text, and_, case, cast, or_, select, update

from backend.store.database import Database
from backend.store.documents.document_contents import decode_document, encode_document
from backend.store.documents.documents import read_access
from backend.store.schema.push_tables import pushed_documents
from backend.store.schema.tables import documents, failures
from backend.store.sync import schedule
from backend.store.sync.sources import Source
from connectors.access import NOBODY, Access, parse_access
from connectors.connector import DocumentListing
from connectors.document import Document
from connectors.errors import NotFoundError
from connectors.extraction.registry import TEXT
from connectors.sources.ingest.pushed_documents import PushedChange, PushedDocument, meet

PushedState: TypeAlias = Literal["waiting", "indexed", "failed", "deleting"]
_PAGE = 200
_DAMAGED = "what was stored of it is damaged: put it in again"
_columns = pushed_documents.c
_IS_INDEXED = documents.c.version == cast(_columns.push, Text)
_HAS_FAILED = or_(
    _columns.problem.is_not(None),
    and_(failures.c.tries > 0, failures.c.last_at >= _columns.pushed_at),
)
_state = case(
    (_columns.content.is_(None), "deleting"),
    (_IS_INDEXED, "indexed"),
    (_HAS_FAILED, "failed"),
    else_="waiting",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedDocumentState:
    document_id: str
    title: str
    state: PushedState
    problem: str | None
    """Why it is not indexed as it was put in; None unless it has failed."""
    pushed_at: datetime


def list_states(
    database: Database, source: Source, after: str, limit: int, state: PushedState | None = None
) -> list[PushedDocumentState]:
    """Return what became of the documents of a source, by id, starting after the id `after`."""
    which = [_columns.source_id == source.id, _columns.id > after]
    return _read_states(database, which if state is None else [*which, _state == state], limit)


def find_state(database: Database, source: Source, document_id: str) -> PushedDocumentState:
    """Return what became of a document that was put in. Raises NotFoundError: the source has no such document."""
    which = [_columns.source_id == source.id, _columns.id == document_id]
    found = _read_states(database, which, 1)
    if not found:
        raise NotFoundError(f"There is no document {document_id!r}.")
    return found[0]


def _read_states(
    database: Database, which: Sequence[ColumnElement[bool]], limit: int
) -> list[PushedDocumentState]:
    query = (
        select(_columns.id, _columns.title, _columns.problem, _columns.pushed_at)
        .add_columns(_state.label("state"), failures.c.reason)
        .outerjoin(documents, documents.c.id == _columns.id)
        .outerjoin(failures, failures.c.document_id == _columns.id)
        # What is deleted is there as long as the index has it.
        .where(*which, or_(_columns.content.is_not(None), documents.c.id.is_not(None)))
        .order_by(_columns.id)
        .limit(limit)
    )
    with database.reading() as connection:
        return [_to_state(row) for row in connection.execute(query)]


def _to_state(row: Row[Any]) -> PushedDocumentState:
    return PushedDocumentState(
        document_id=row.id,
        title=row.title,
        state=row.state,
        problem=row.problem or row.reason if row.state == "failed" else None,
        pushed_at=row.pushed_at,
    )


@dataclass(frozen=True, slots=True)
class StoredPushedDocuments:
    """Implements `connectors.sources.ingest.pushed_documents.PushedDocuments`."""

    database: Database
    source: Source

    def list_changes(self, after: int) -> list[PushedChange]:
        found = self._read_changes(_columns.push > after, _PAGE)
        if len(found) < _PAGE:
            return found
        # The last request may be cut.
        whole = [each for each in found if each.push < found[-1].push]
        return whole or self._read_changes(_columns.push == found[0].push, None)

    def _read_changes(self, which: ColumnElement[bool], limit: int | None) -> list[PushedChange]:
        query = (
            select(_columns.push, _columns.id)
            .where(_columns.source_id == self.source.id, which)
            .order_by(_columns.push, _columns.id)
            .limit(limit)
        )
        with self.database.reading() as connection:
            return [PushedChange(row.push, row.id) for row in connection.execute(query)]

    def find(self, document_id: str) -> PushedDocument | None:
        which = (_columns.source_id == self.source.id, _columns.id == document_id)
        query = select(pushed_documents).where(*which, _columns.content.is_not(None))
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else self._decode(row)

    def keep_read(self, found: PushedDocument) -> None:
        document = found.document
        same = (_columns.id == document.id, cast(_columns.push, Text) == document.version)
        values = {"content": encode_document(document), "problem": found.problem}
        read = update(pushed_documents).where(*same).values(values | {"file": None, "file_size": 0})
        with self.database.transaction() as database:
            with database.writing() as connection:
                connection.execute(read)
            if found.problem is not None:
                # A former version that the index has is not left to its readers alone.
                schedule.request_run(database, self.source.name, "permissions")

    def list_existing(self, after: str) -> list[DocumentListing]:
        with self.database.reading() as connection:
            is_held = documents.c.id.is_not(None)
            query = (
                select(_columns.id, _columns.readers, _columns.content.is_(None).label("is_gone"))
                .add_columns(is_held.label("is_held"), _IS_INDEXED.label("is_indexed"))
                .outerjoin(documents, documents.c.id == _columns.id)
                .where(_columns.source_id == self.source.id, _columns.id > after)
                .where(or_(is_held, _columns.content.is_not(None)))
                .order_by(_columns.id)
                .limit(_PAGE)
            )
            rows = connection.execute(query).all()
            former = [row.id for row in rows if row.is_held and not row.is_indexed]
            held = read_access(connection, former)
        of_former = {each: held.get(each, NOBODY) for each in former}
        return [DocumentListing(row.id, _limit(row, of_former)) for row in rows]

    def _decode(self, row: Row[Any]) -> PushedDocument:
        version, access = str(row.push), parse_access(row.readers)
        document = decode_document(
            row.content,
            document_id=row.id,
            source=self.source.name,
            version=version,
            access=access,
        )
        if document is not None:
            return PushedDocument(document=document, file=row.file, problem=row.problem)
        lost = Document(
            id=row.id,
            source=self.source.name,
            title=row.title,
            sections=(),
            link="",
            media_type=TEXT,
            access=access,
            version=version,
        )
        return PushedDocument(document=lost, problem=_DAMAGED)


def _limit(row: Row[Any], of_former: dict[str, Access]) -> Access:
    """Return who may read a document, as far as they may read the former version that the index has."""
    access = NOBODY if row.is_gone else parse_access(row.readers)
    return meet(access, of_former[row.id]) if row.id in of_former else access
