"""A database with one source, and documents to put in it."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import delete, func, select, update

from backend.access.source_limits import SourceLimits
from backend.sources.service import SourceService
from backend.store.database import Database, open_database
from backend.store.documents.ledger import StoredLedger
from backend.store.schema.tables import contents
from backend.store.sync import sources
from backend.store.sync.credential_vault import Vault
from backend.store.sync.runs import Run
from connectors.access import EVERYBODY, Access
from connectors.document import Document, Section
from indexing.ingestion.ledger import Stored
from tests.support.databases import sqlite_in


@dataclass(frozen=True, slots=True)
class Store:
    database: Database
    ledger: StoredLedger

    def hold(self, *documents: Document, generation: int = 1) -> None:
        """Enter documents as if the index had them."""
        self.ledger.save(
            [
                Stored(document=each, content_hash=each.version, generation=generation, chunks=2)
                for each in documents
            ]
        )


def alive(run: Run) -> bool:
    """Judge that the process that holds a run is alive."""
    del run
    return False


def gone(run: Run) -> bool:
    """Judge that the process that holds a run is gone."""
    del run
    return True


def store_with(folder: Path, *names: str) -> Store:
    """A store with new sources of these names, on the SQLite database of a folder."""
    return _store(open_database(sqlite_in(folder)), names)


@contextmanager
def store_at(url: str, *names: str) -> Iterator[Store]:
    """A store with new sources of these names, its database closed after the block."""
    with closing(open_database(url)) as database:
        yield _store(database, names)


def _store(database: Database, names: Sequence[str]) -> Store:
    for name in names:
        sources.add(database, name, "folder", {"path": f"/srv/{name}"})
    return Store(database, StoredLedger(database))


def source_service(database: Database) -> SourceService:
    """A service for sources without credentials."""
    return SourceService(
        database, lambda: Vault(["there is no key"]), SourceLimits().find_objection
    )


def kept_texts(database: Database) -> int:
    """Of how many documents it is kept what they say."""
    with database.reading() as connection:
        return connection.scalar(select(func.count(contents.c.content))) or 0


def lose_texts(database: Database, *ids: str) -> None:
    """Of these documents, or of all."""
    chosen = [contents.c.document_id.in_(ids)] if ids else []
    with database.writing() as connection:
        connection.execute(delete(contents).where(*chosen))


def damage_texts(database: Database, *ids: str) -> None:
    """Of these documents."""
    with database.writing() as connection:
        connection.execute(
            update(contents).where(contents.c.document_id.in_(ids)).values(content=b"damaged")
        )


def document(
    name: str = "desk:a",
    text: str = "Leave is 25 days.",
    version: str = "1",
    access: Access = EVERYBODY,
) -> Document:
    """The source is what stands before the colon."""
    return Document(
        id=name,
        source=name.partition(":")[0],
        title=f"About {name}",
        sections=(Section(text=text),) if text else (),
        link=f"https://desk.test/{name}",
        media_type="text/plain",
        access=access,
        version=version,
    )
