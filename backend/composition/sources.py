"""Open what sources are read with, within what they may reach, and what indexes the documents that they yield."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backend.settings import Settings, variable

if TYPE_CHECKING:
    from backend.access.source_limits import SourceLimits
    from backend.composition.index import IndexEngine
    from backend.files.file_keeper import FileIndex
    from backend.store.database import Database
    from backend.store.sync.credential_vault import Vault
    from backend.store.sync.sources import Source
    from connectors.connector import Connector, FindObjection, ServerAccess
    from indexing.ingestion.executor import BatchWorker
    from indexing.ingestion.ledger import Ledger
    from indexing.ingestion.pipeline import Pipeline


@dataclass(frozen=True)
class SourceParts:
    """What the sources of a home work with. Implements `backend.sync.due_work.SyncParts`."""

    settings: Settings
    find_home: Callable[[], Path]
    open_database: "Callable[[], Database]"
    open_vault: "Callable[[], Vault]"
    """Called only where a credential is stored or read: it creates a key file where there is none."""
    find_engine: "Callable[[], IndexEngine]"

    @property
    def database(self) -> "Database":
        return self.open_database()

    @cached_property
    def limits(self) -> "SourceLimits":
        """What sources of source managers may reach.

        Raises:
            NotConfiguredError: the settings that allow it are not valid.
        """
        from backend.access.source_limits import SourceLimits
        from connectors.errors import NotConfiguredError

        roots, addresses = self.settings.source_roots, self.settings.source_addresses
        try:
            return SourceLimits.parse(roots, addresses, self.find_home())
        except ValueError as error:
            names = f"{variable('source_roots')} or {variable('source_addresses')}"
            raise NotConfiguredError(f"{names} is not valid: {error}.") from error

    def find_objection(self, access: "ServerAccess") -> str | None:
        """Say why a source of a source manager may not reach this.

        Raises:
            NotConfiguredError: the settings that allow it are not valid.
        """
        return self.limits.find_objection(access)

    def connector(self, source: "Source") -> "Connector":
        """Make the connector of a source.

        Raises:
            ActionRequiredError: its settings or its credential are invalid, no key decrypts that, or it may not
                reach what it is to read.
        """
        from connectors.registry import INGEST, create_connector

        if source.kind == INGEST:
            return self._ingest_connector(source)
        credential = self.open_vault().open(source.credential) if source.credential else {}
        limit = limit_owner(self.database, source.owner_id, self.find_objection)
        return create_connector(
            source.kind, source.name, source.settings, credential, source.id, limit
        )

    def _ingest_connector(self, source: "Source") -> "Connector":
        from backend.store.documents.pushed_documents import StoredPushedDocuments
        from connectors.sources.ingest.connector import IngestConnector

        return IngestConnector(source.name, StoredPushedDocuments(self.database, source))

    @cached_property
    def ledger(self) -> "Ledger":
        from backend.store.documents.ledger import StoredLedger

        return StoredLedger(self.database)

    def pipeline(self, source: "Source") -> "Pipeline":
        from indexing.ingestion.pipeline import Pipeline

        engine = self.find_engine()
        return Pipeline(
            source=source.name,
            embedder=engine.embedding.embedder,
            writer=engine.writer,
            ledger=self.ledger,
        )

    def batch_worker(self) -> "BatchWorker":
        """Make what indexes batches of whatever source."""
        from indexing.ingestion.executor import BatchWorker

        engine = self.find_engine()
        return BatchWorker(
            embedder=engine.embedding.embedder, writer=engine.writer, ledger=self.ledger
        )

    @property
    def file_index(self) -> "FileIndex":
        """Where people's own files are indexed."""
        from backend.files.file_keeper import FileIndex

        engine = self.find_engine()
        return FileIndex(
            database=self.database,
            embedder=engine.embedding.embedder,
            writer=engine.writer,
            ledger=self.ledger,
        )


def limit_owner(
    database: "Database", owner_id: int | None, find_objection: "FindObjection"
) -> "FindObjection":
    """Return what is objected to in a source of this owner: for the admins, or one of them, nothing.

    Whose the source is decides, not who saves or runs it.
    """
    from backend.access.roles import Role
    from backend.store.accounts import people
    from connectors.connector import allow_all

    owner = None if owner_id is None else people.find(database, owner_id)
    is_of_admin = owner_id is None or (owner is not None and owner.role == Role.ADMIN)
    return allow_all if is_of_admin else find_objection
