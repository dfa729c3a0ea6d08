"""The ledger of `indexing.ingestion.ledger`, kept in the database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import and_, func, select, union, update

from backend.store.database import Database, exclusive
from backend.store.documents import last_version, readers_of
from backend.store.ledger_writes import Saving, contents_of, source_ids
from backend.store.tables import contents, documents, failures, sources
from connectors.document import Access, Document
from indexing.index.protocols import IndexedDocument
from indexing.ingestion.ledger import Entry, LedgerChange

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class StoredLedger:
    """Implements `indexing.ingestion.ledger.Ledger`."""

    database: Database

    def sources(self) -> frozenset[str]:
        with self.database.reading() as connection:
            return frozenset(connection.scalars(select(sources.c.name)))

    def count(self, source: str) -> int:
        query = select(func.count()).select_from(documents.join(sources))
        with self.database.reading() as connection:
            return connection.scalar(query.where(sources.c.name == source)) or 0

    def versions(self, ids: Sequence[str]) -> Mapping[str, str]:
        query = select(documents.c.id, documents.c.version).where(documents.c.id.in_(ids))
        with self.database.reading() as connection:
            return dict(connection.execute(query).all())

    def entries(self, ids: Sequence[str]) -> Mapping[str, Entry]:
        with self.database.reading() as connection:
            rows = connection.execute(_WITH_KEPT.where(documents.c.id.in_(ids))).all()
            readers = readers_of(connection, [row.id for row in rows])
        return {
            row.id: Entry(
                version=row.version,
                content_hash=row.content_hash,
                generation=row.generation,
                access=Access(frozenset(readers.get(row.id, ()))),
                kept=row.kept,
            )
            for row in rows
        }

    def document(self, document_id: str) -> Document | None:
        with self.database.reading() as connection:
            return last_version(connection, document_id)

    def save(self, changes: Sequence[LedgerChange]) -> None:
        now = datetime.now(UTC)
        encoded = contents_of(changes)
        with self.database.writing() as connection:
            exclusive(connection)
            Saving(connection, source_ids(connection), encoded, now).save(changes)

    def mark_access_pending(self, ids: Sequence[str]) -> None:
        with self.database.writing() as connection:
            connection.execute(update(documents).where(documents.c.id.in_(ids)).values(unsettled=1))

    def access_pending(self, source: str) -> list[str]:
        query = (
            select(documents.c.id)
            .join(sources)
            .where(sources.c.name == source, documents.c.unsettled == 1)
        )
        with self.database.reading() as connection:
            return sorted(connection.scalars(query))

    def lost_contents(self, source: str) -> Iterator[str]:
        after = ""
        while page := self._lost_page(source, after):
            yield from page
            after = page[-1]

    def scan(self, source: str, after: str) -> Iterator[IndexedDocument]:
        while page := self._scan_page(source, after):
            yield from page
            after = page[-1].id

    def mark_seen(self, source: str, listing: int, ids: Sequence[str]) -> None:
        with self.database.writing() as connection:
            source_id = source_ids(connection)[source]
            for table, key in _BY_DOCUMENT:
                connection.execute(
                    update(table)
                    .where(table.c.source_id == source_id, key.in_(ids))
                    .values(listing=listing)
                )

    def unseen(self, source: str, listing: int) -> Iterator[str]:
        after = ""
        while page := self._unseen_page(source, listing, after):
            yield from page
            after = page[-1]

    def _lost_page(self, source: str, after: str) -> list[str]:
        query = (
            select(documents.c.id)
            .join(sources)
            .outerjoin(contents)
            .where(sources.c.name == source, documents.c.id > after)
            .where(contents.c.document_id.is_(None))
            .order_by(documents.c.id)
            .limit(_PAGE)
        )
        with self.database.reading() as connection:
            return list(connection.scalars(query))

    def _scan_page(self, source: str, after: str) -> list[IndexedDocument]:
        query = (
            select(documents)
            .join(sources)
            .where(sources.c.name == source, documents.c.id > after)
            .order_by(documents.c.id)
            .limit(_PAGE)
        )
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
            readers = readers_of(connection, [row.id for row in rows if row.chunks])
        return [
            IndexedDocument(
                row.id,
                row.generation,
                row.chunks,
                row.content_hash,
                Access(frozenset(readers.get(row.id, ()))),
            )
            for row in rows
        ]

    def _unseen_page(self, source: str, listing: int, after: str) -> list[str]:
        with self.database.reading() as connection:
            source_id = source_ids(connection)[source]
            unseen = union(
                *(
                    select(key.label("id")).where(
                        table.c.source_id == source_id, table.c.listing != listing, key > after
                    )
                    for table, key in _BY_DOCUMENT
                )
            )
            return list(connection.scalars(unseen.order_by("id").limit(_PAGE)))


# Asked of the value's type in a condition, SQLite reads no content; asked for as a column, it reads all of it.
_WITH_KEPT = select(documents, contents.c.document_id.is_not(None).label("kept")).outerjoin(
    contents, and_(contents.c.document_id == documents.c.id, contents.c.content.is_not(None))
)
_BY_DOCUMENT = ((documents, documents.c.id), (failures, failures.c.document_id))
