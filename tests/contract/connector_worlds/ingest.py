"""Documents that a program puts in, kept in a database."""

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import insert, select

from backend.store.database import open_database
from backend.store.documents import pushes
from backend.store.documents.pushed_documents import StoredPushedDocuments
from backend.store.documents.pushes import Push
from backend.store.schema.push_tables import pushed_documents
from backend.store.sync import sources
from connectors.access import Access
from connectors.connector import Connector
from connectors.document import Document, Section
from connectors.extraction.registry import PDF, TEXT
from connectors.sources.ingest.connector import IngestConnector
from connectors.sources.ingest.pushed_documents import PushedDocument
from tests.contract.connector_worlds.world import (
    ITEMS,
    UNREADABLE,
    Crowds,
    World,
    edited_text,
    text,
    title,
)
from tests.support.databases import sqlite_in

_MOMENT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
_AT_ONCE = 1_000


class IngestWorld(World, Crowds):
    name = "ingest"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._database = open_database(sqlite_in(root))
        self._source = sources.add(self._database, "源", "ingest", {})
        for number in range(ITEMS):
            file = b"%PDF-1.7 broken" if number == UNREADABLE else None
            self._put_in(number, text(number), file)

    def connect(self) -> Connector:
        return IngestConnector("源", StoredPushedDocuments(self._database, self._source))

    def readers(self, number: int) -> Access:
        return Access.to(["group:three"] if number % 7 == 3 else ["public"])

    def edit(self, number: int) -> None:
        self._put_in(number, edited_text(number))

    def remove(self, number: int) -> None:
        with self._database.transaction() as database:
            pushes.save_deletion(database, self._push(), [_id(number)], {})

    def crowd(self, items: int) -> Connector:
        """All as one document is stored, under other ids."""
        with self._database.reading() as connection:
            (one,) = connection.execute(
                select(pushed_documents).where(pushed_documents.c.id == _id(0))
            ).mappings()
        source = sources.add(self._database, "crowd", "ingest", {})
        for start in range(0, items, _AT_ONCE):
            rows = [
                {**one, "id": f"crowd:{number}", "source_id": source.id, "push": 1 + number // 50}
                for number in range(start, min(start + _AT_ONCE, items))
            ]
            with self._database.writing() as connection:
                connection.execute(insert(pushed_documents), rows)
        return IngestConnector("crowd", StoredPushedDocuments(self._database, source))

    def close(self) -> None:
        self._database.close()

    def _put_in(self, number: int, said: str, file: bytes | None = None) -> None:
        document = Document(
            id=_id(number),
            source="源",
            title=title(number),
            sections=() if file else (Section(text=said),),
            link=f"https://tickets.example.com/{number}",
            media_type=PDF if file else TEXT,
            access=self.readers(number),
            version="",
            updated_at=_MOMENT,
        )
        encoded = pushes.encode(PushedDocument(document=document, file=file))
        with self._database.transaction() as database:
            pushes.save(database, self._push(), [encoded], {})

    def _push(self) -> Push:
        return Push(source_id=self._source.id, digest="", key=None, at=datetime.now(UTC))


def _id(number: int) -> str:
    return f"源:{number:06}"
