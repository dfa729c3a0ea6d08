"""Choose and open the parts of one home: the only place where implementations are chosen.

Each part is opened when it is first used, and its libraries are imported then: `quarry --help` loads none
of them, a search no database, a listing no model.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backend.settings import Settings, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backend.access.machine_secret import MachineSecret
    from backend.access.openid.provider import Provider
    from backend.access.source_limits import SourceLimits
    from backend.chat.llm.stored_models import ModelService
    from backend.chat.text_nearness import SentenceModel
    from backend.composition.chat import ChatService
    from backend.composition.index import EmbeddingModel, IndexEngine, Names
    from backend.composition.knowledge import KnowledgeFinder
    from backend.composition.language_models import LanguageModels, StoredModels
    from backend.composition.memories import MemoryFinder
    from backend.composition.research import ResearchParts
    from backend.composition.web_search import WebSessions
    from backend.files.file_keeper import FileIndex
    from backend.research.calculations.sandbox import CalculationSandbox
    from backend.store.audit import Actor
    from backend.store.credential_vault import Vault
    from backend.store.database import Database
    from backend.store.sources import Source
    from backend.web_search.browser.browser_reader import BrowserReader
    from backend.web_search.page_reader import PageReader
    from backend.web_search.search import WebSearch
    from backend.web_search.service import WebSearchService
    from connectors.access import Readers
    from connectors.connector import Connector, ServerAccess
    from indexing.embedding.language_support import EmbedderWithLanguages
    from indexing.index.protocols import Selection
    from indexing.index.versions import IndexVersion
    from indexing.ingestion.executor import BatchWorker
    from indexing.ingestion.ledger import Ledger
    from indexing.ingestion.pipeline import Pipeline


class Container:
    """The parts of one home."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def home(self) -> Path:
        """Raises NotConfiguredError when the folder cannot be created."""
        from connectors.errors import NotConfiguredError

        home = self.settings.home.expanduser().absolute()
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise NotConfiguredError(
                f"{home} cannot be used as Quarry's home: {error.strerror}."
                f" Set {variable('home')} to a folder that you may write to."
            ) from error
        return home

    @property
    def database_url(self) -> str:
        from backend.store.database import sqlite_url

        url = self.settings.database_url
        return url.get_secret_value() if url else sqlite_url(self._database_file)

    @property
    def _database_file(self) -> Path:
        """Of the database where no other is set."""
        return self.home / "quarry.db"

    @cached_property
    def database(self) -> "Database":
        from backend.store.database import open_database

        return open_database(self.database_url)

    def resolve_readers(self, own: "Readers") -> "Readers":
        """Return what an asker with these tokens may read as of now."""
        return self._add_groups(own) if self._find_held_beyond_tokens().groups else own

    def resolve_readers_of_owner(self, own: "Readers") -> "Readers":
        """Return the same for the owner of the machine, who has files only where there are no accounts."""
        held = self._find_held_beyond_tokens()
        resolved = self._add_groups(own) if held.groups else own
        return self._add_files_of_owner(resolved) if held.files_of_owner else resolved

    def _find_held_beyond_tokens(self) -> "HeldBeyondTokens":
        if self.settings.database_url is not None:
            return _ANYTHING
        return find_held_beyond_tokens(self._database_file)

    def _add_groups(self, own: "Readers") -> "Readers":
        from backend.access.own_readers import add_groups_of_accounts
        from backend.access.readers import resolve_readers

        return resolve_readers(self.database, add_groups_of_accounts(self.database, own))

    def _add_files_of_owner(self, readers: "Readers") -> "Readers":
        from backend.access.readers import add_own_files
        from backend.store.conversations import ConversationOwner
        from backend.store.people import has_people

        if has_people(self.database):
            return readers
        return add_own_files(readers, ConversationOwner(None))

    @cached_property
    def page_reader(self) -> "PageReader":
        """Reads pages of the open web; nothing in the settings opens more than the public web to it."""
        from backend.web_search.page_fetcher import PageFetcher
        from backend.web_search.page_reader import PageReader

        return PageReader(PageFetcher(), self.browser.render)

    @cached_property
    def browser(self) -> "BrowserReader":
        """Opens the pages whose text scripts write; to be closed, and started only for the first one."""
        from backend.web_search.browser.browser_reader import BrowserLimits, BrowserReader

        limits = BrowserLimits(memory_bytes=self.settings.browser_megabytes << 20)
        return BrowserReader(self.settings.browser_path, limits)

    @property
    def calculation_sandbox(self) -> "CalculationSandbox":
        """Runs code that language models write; it says why where it cannot."""
        from backend.research.calculations.sandbox import CalculationSandbox

        return CalculationSandbox(self.home / "calculations")

    @cached_property
    def vault(self) -> "Vault":
        """Encrypts and decrypts the credentials of sources.

        Raises:
            ActionRequiredError: a key is invalid, or the key file cannot be used.
        """
        from backend.store.credential_vault import Vault, keys_in, keys_in_file

        keys = self.settings.credential_keys
        if keys is not None:
            return Vault(keys_in(keys.get_secret_value()))
        return Vault(keys_in_file(self.home / "credentials.key"))

    @cached_property
    def machine_secret(self) -> "MachineSecret":
        """What the owner of the home proves to the server that they are; created where there is none.

        Raises:
            NotConfiguredError: its file cannot be used, or others may read it.
        """
        from backend.access.machine_secret import read_machine_secret

        return read_machine_secret(self.machine_secret_file)

    @cached_property
    def openid_provider(self) -> "Provider | None":
        """The identity provider by which people may sign in, if one is set.

        Raises:
            NotConfiguredError: its settings are not valid.
        """
        issuer = self.settings.oidc_issuer
        if issuer is None:
            return None
        from backend.access.openid.provider import Provider, ProviderSettings, parse_domains

        secret = self.settings.oidc_client_secret
        return Provider(
            ProviderSettings(
                issuer=issuer,
                client_id=self.settings.oidc_client_id,
                client_secret=secret.get_secret_value() if secret else None,
                scopes=tuple(dict.fromkeys(["openid", *self.settings.oidc_scopes.split()])),
                groups_claim=self.settings.oidc_groups_claim,
                domains=parse_domains(self.settings.oidc_domains),
                authority=self.settings.oidc_ca,
            )
        )

    def find_source_objection(self, access: "ServerAccess") -> str | None:
        """Say why a source of a source manager may not reach this.

        Raises:
            NotConfiguredError: the settings that allow it are not valid.
        """
        return self.source_limits.find_objection(access)

    @cached_property
    def source_limits(self) -> "SourceLimits":
        """What sources of source managers may reach.

        Raises:
            NotConfiguredError: the settings that allow it are not valid.
        """
        from backend.access.source_limits import SourceLimits
        from connectors.errors import NotConfiguredError

        roots, addresses = self.settings.source_roots, self.settings.source_addresses
        try:
            return SourceLimits.parse(roots, addresses, self.home)
        except ValueError as error:
            names = f"{variable('source_roots')} or {variable('source_addresses')}"
            raise NotConfiguredError(f"{names} is not valid: {error}.") from error

    @property
    def machine_secret_file(self) -> Path:
        return self.home / "machine.secret"

    @cached_property
    def ledger(self) -> "Ledger":
        from backend.store.ledger import StoredLedger

        return StoredLedger(self.database)

    @cached_property
    def embedding(self) -> "EmbeddingModel":
        from backend.composition.index import EmbeddingModel

        return EmbeddingModel(self.settings, self.home, self._active_version)

    @cached_property
    def engine(self) -> "IndexEngine":
        from backend.composition.index import IndexEngine

        return IndexEngine(
            self.settings, self.home, self.embedding, self._count_documents, self._list_set_names
        )

    @cached_property
    def chat(self) -> "ChatService":
        from backend.composition.chat import ChatService

        return ChatService(
            self.settings,
            self.engine,
            self._source_kinds,
            lambda: self.language_models,
            lambda: self.web_sessions,
            lambda: self._memories,
            lambda: self._knowledge,
        )

    @property
    def research(self) -> "ResearchParts":
        """Opens what research runs work with."""
        from backend.composition.research import ResearchParts

        return ResearchParts(self.chat, self.database, self.calculation_sandbox)

    @cached_property
    def _memories(self) -> "MemoryFinder":
        from backend.composition.memories import MemoryFinder

        return MemoryFinder(self._find_database, lambda: self.sentence_model)

    @cached_property
    def _knowledge(self) -> "KnowledgeFinder":
        from backend.composition.knowledge import KnowledgeFinder

        return KnowledgeFinder(
            self._find_database,
            lambda: self.sentence_model,
            lambda: self.engine.index,
            timedelta(days=self.settings.knowledge_web_days),
        )

    @property
    def sentence_model(self) -> "SentenceModel":
        """Embeds questions and short texts alike."""
        from backend.chat.text_nearness import SentenceModel

        embedding = self.engine.embedding
        return SentenceModel(embedding.sentence_vectors, embedding.language_support)

    @cached_property
    def language_models(self) -> "LanguageModels":
        from backend.composition.language_models import LanguageModels

        return LanguageModels(self.settings, self._find_stored_models)

    def model_service(self, actor: "Actor") -> "ModelService":
        """Return what changes the language models of the database."""
        from backend.chat.llm.stored_models import ModelService

        return ModelService(self.database, lambda: self.vault, actor)

    @cached_property
    def web_search(self) -> "WebSearch":
        from backend.composition.web_search import make_web_search

        return make_web_search(self._find_database, lambda: self.vault, self.browser.render)

    @cached_property
    def web_sessions(self) -> "WebSessions":
        """Opens the web to turns."""
        from backend.composition.web_search import WebSessions

        return WebSessions(
            self.web_search,
            lambda: self.page_reader,
            self._find_database,
            lambda: self.embedder_with_languages,
        )

    @property
    def embedder_with_languages(self) -> "EmbedderWithLanguages":
        """The embedder, and the languages that it understands."""
        from indexing.embedding.language_support import EmbedderWithLanguages

        return EmbedderWithLanguages(self.embedding.embedder, self.embedding.language_support)

    def web_search_service(self, actor: "Actor") -> "WebSearchService":
        """Return what admins do to web search."""
        from backend.web_search.service import WebSearchService

        return WebSearchService(self.database, lambda: self.vault, self.web_search, actor)

    def _find_database(self) -> "Database | None":
        """None without a database: none is created to look into it."""
        if self.settings.database_url is None and not self._database_file.exists():
            return None
        return self.database

    def _find_stored_models(self) -> "StoredModels | None":
        """None without a database: none is created to look for models."""
        if (database := self._find_database()) is None:
            return None
        from backend.composition.language_models import StoredModels

        return StoredModels(database=database, open_vault=lambda: self.vault)

    def _source_kinds(self) -> dict[str, str]:
        from backend.store.sources import list_sources

        return {source.name: source.kind for source in list_sources(self.database)}

    def _active_version(self) -> "IndexVersion | None":
        return self.engine.versions.active()

    def _count_documents(self) -> int:
        """Count those of all sources, without creating a database where there is none."""
        if self.settings.database_url is None and not self._database_file.exists():
            return 0
        from backend.store.documents import count_by_source

        return sum(count_by_source(self.database).values())

    def _list_set_names(self, readers: "Readers") -> "Names":
        """None without a database: none is created to look for sets."""
        if self.settings.database_url is None and not self._database_file.exists():
            return {}
        from backend.store.document_sets import list_visible

        return list_visible(self.database, readers)

    def count_documents(self, selections: "Sequence[Selection]") -> int:
        """Count documents of the index, whoever may read them: for those who look after it."""
        return self.engine.writer.count(selections)

    def close(self) -> None:
        """Close what was opened of it."""
        opened = vars(self)
        for part in ("browser", "engine", "database"):
            if part in opened:
                opened[part].close()

    def reopen(self) -> "Container":
        """The same home with nothing of it opened yet."""
        return Container(self.settings)

    def with_model(self, model: str) -> "Container":
        """The same home with another embedding model set."""
        return Container(self.settings.model_copy(update={"embedding_model": model}))

    def connector(self, source: "Source") -> "Connector":
        """Raises ActionRequiredError: its settings or its credential are invalid, no key decrypts that, or it may not
        reach what it is to read."""
        from backend.access.source_owners import limit_owner
        from connectors.registry import INGEST, create_connector

        if source.kind == INGEST:
            return self._ingest_connector(source)
        credential = self.vault.open(source.credential) if source.credential else {}
        limit = limit_owner(self.database, source.owner_id, self.find_source_objection)
        return create_connector(
            source.kind, source.name, source.settings, credential, source.id, limit
        )

    def _ingest_connector(self, source: "Source") -> "Connector":
        from backend.store.pushed_documents import StoredPushedDocuments
        from connectors.sources.ingest.connector import IngestConnector

        return IngestConnector(source.name, StoredPushedDocuments(self.database, source))

    def pipeline(self, source: "Source") -> "Pipeline":
        from indexing.ingestion.pipeline import Pipeline

        return Pipeline(
            source=source.name,
            embedder=self.embedding.embedder,
            writer=self.engine.writer,
            ledger=self.ledger,
        )

    @property
    def file_index(self) -> "FileIndex":
        """Where people's own files are indexed."""
        from backend.files.file_keeper import FileIndex

        return FileIndex(
            database=self.database,
            embedder=self.embedding.embedder,
            writer=self.engine.writer,
            ledger=self.ledger,
        )

    def batch_worker(self) -> "BatchWorker":
        """Indexes batches of whatever source."""
        from indexing.ingestion.executor import BatchWorker

        return BatchWorker(
            embedder=self.embedding.embedder, writer=self.engine.writer, ledger=self.ledger
        )


_GROUP_TABLES = ("memberships", "conjunctions", "group_members", "source_accounts")


@dataclass(frozen=True, slots=True)
class HeldBeyondTokens:
    """What an asker may hold besides the asker's own tokens, by a database."""

    groups: bool
    files_of_owner: bool
    """The owner of the machine may have files of their own."""


_NOTHING = HeldBeyondTokens(groups=False, files_of_owner=False)
_ANYTHING = HeldBeyondTokens(groups=True, files_of_owner=True)


def find_held_beyond_tokens(file: Path) -> HeldBeyondTokens:
    """Return what an asker of this SQLite database may hold.

    It is asked without the store, which takes longer to load than a search, and opened once.
    """
    if not file.exists():
        return _NOTHING
    try:
        with closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            names = connection.execute("SELECT name FROM sqlite_master")
            tables = {name for (name,) in names}
            has_files = "user_files" in tables and _has_row(
                connection, "user_files WHERE person_id IS NULL"
            )
            has_groups = any(_has_row(connection, each) for each in _GROUP_TABLES if each in tables)
            return HeldBeyondTokens(has_groups, has_files)
    except sqlite3.DatabaseError:
        return _ANYTHING  # Opening it in full waits for it, or says what is wrong.


def _has_row(connection: sqlite3.Connection, rows: str) -> bool:
    return bool(connection.execute(f"SELECT EXISTS (SELECT 1 FROM {rows})").fetchone()[0])
