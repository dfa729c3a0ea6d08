"""The ledger of `indexing.ledger`, kept in the database, with the contents beside it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import func, select, union, update

from backend.store.contents import Contents, decoded, encoded
from backend.store.database import Database, exclusive
from backend.store.documents import readers_of
from backend.store.saving import Saving, kept_by, source_ids
from backend.store.tables import documents, failures, sources
from connectors.document import Access, Document
from indexing.index import IndexedDocument
from indexing.ledger import Entry, LedgerChange, Stored

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class StoredLedger:
    """Implements `indexing.ledger.Ledger`."""

    database: Database
    contents: Contents

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
            rows = connection.execute(select(documents).where(documents.c.id.in_(ids))).all()
            readers = readers_of(connection, [row.id for row in rows])
        return {
            row.id: Entry(
                version=row.version,
                content_hash=row.content_hash,
                generation=row.generation,
                access=Access(frozenset(readers.get(row.id, ()))),
                kept=row.kept is not None,
            )
            for row in rows
        }

    def document(self, document_id: str) -> Document | None:
        query = select(documents, sources.c.name.label("source")).join(sources)
        with self.database.reading() as connection:
            row = connection.execute(query.where(documents.c.id == document_id)).one_or_none()
            readers = readers_of(connection, [document_id])
        content = self.contents.get(row.kept) if row and row.kept else None
        if row is None or content is None:
            return None
        return decoded(
            content,
            document_id=row.id,
            source=row.source,
            version=row.version,
            access=Access(frozenset(readers.get(row.id, ()))),
        )

    def save(self, changes: Sequence[LedgerChange]) -> None:
        now = datetime.now(UTC)
        stored = [change for change in changes if isinstance(change, Stored)]
        kept = {
            change.document.id: self.contents.put(encoded(change.document)) for change in stored
        }
        with self.database.writing() as connection:
            exclusive(connection)
            before = kept_by(connection, changes)
            Saving(connection, source_ids(connection), kept, now).save(changes)
            self._put_again(stored, kept)
        self._drop_unused(before - set(kept.values()))

    def unsettle(self, ids: Sequence[str]) -> None:
        with self.database.writing() as connection:
            connection.execute(update(documents).where(documents.c.id.in_(ids)).values(unsettled=1))

    def unsettled(self, source: str) -> list[str]:
        query = (
            select(documents.c.id)
            .join(sources)
            .where(sources.c.name == source, documents.c.unsettled == 1)
        )
        with self.database.reading() as connection:
            return sorted(connection.scalars(query))

    def lost(self, source: str) -> Iterator[str]:
        after = ""
        while rows := self._kept_page(source, after):
            yield from (document_id for document_id, key in rows if not self.contents.has(key))
            after = rows[-1][0]

    def survey(self, source: str, after: str) -> Iterator[IndexedDocument]:
        while page := self._survey_page(source, after):
            yield from page
            after = page[-1].id

    def see(self, source: str, listing: int, ids: Sequence[str]) -> None:
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

    def _put_again(self, stored: Sequence[Stored], kept: Mapping[str, str]) -> None:
        """Nobody drops a content now; one that was dropped since it was put is put again."""
        for change in stored:
            if not self.contents.has(kept[change.document.id]):
                self.contents.put(encoded(change.document))

    def _drop_unused(self, keys: set[str]) -> None:
        """Only after the rows are gone for good: a file too many does no harm, a missing one does."""
        if not keys:
            return
        with self.database.writing() as connection:
            exclusive(connection)
            used = select(documents.c.kept).where(documents.c.kept.in_(keys))
            for key in keys - set(connection.scalars(used)):
                self.contents.drop(key)

    def _kept_page(self, source: str, after: str) -> list[tuple[str, str]]:
        query = (
            select(documents.c.id, documents.c.kept)
            .join(sources)
            .where(sources.c.name == source, documents.c.id > after)
            .where(documents.c.kept.is_not(None))
            .order_by(documents.c.id)
            .limit(_PAGE)
        )
        with self.database.reading() as connection:
            return [(row.id, row.kept) for row in connection.execute(query)]

    def _survey_page(self, source: str, after: str) -> list[IndexedDocument]:
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


_BY_DOCUMENT = ((documents, documents.c.id), (failures, failures.c.document_id))
