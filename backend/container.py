"""Choose and open the parts of one home: the only place where implementations are chosen.

Each part is opened when it is first used, and its libraries are imported then: `quarry --help` loads none
of them, a search no database, a listing no model.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backend.settings import Settings, variable

if TYPE_CHECKING:
    from backend.chat.llm.stored_models import ModelService
    from backend.composition.chat import ChatService
    from backend.composition.index import EmbeddingModel, IndexEngine, Names
    from backend.composition.knowledge import KnowledgeFinder
    from backend.composition.language_models import LanguageModels
    from backend.composition.memories import MemoryFinder
    from backend.composition.research import ResearchParts
    from backend.composition.sign_in import SignInParts
    from backend.composition.sources import SourceParts
    from backend.composition.web import WebParts
    from backend.research.calculations.sandbox import CalculationSandbox
    from backend.store.audit import Actor
    from backend.store.database import Database
    from backend.store.sync.credential_vault import Vault
    from connectors.access import Readers


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

    @cached_property
    def database(self) -> "Database":
        from backend.store.database import open_database

        return open_database(self.home_database.url)

    @cached_property
    def home_database(self) -> "HomeDatabase":
        """Answers what can be asked without a database being created, or loaded."""
        url = self.settings.database_url
        return HomeDatabase(
            url.get_secret_value() if url else None, lambda: self.home, lambda: self.database
        )

    @cached_property
    def vault(self) -> "Vault":
        """Encrypts and decrypts the credentials of sources.

        Raises:
            ActionRequiredError: a key is invalid, or the key file cannot be used.
        """
        from backend.store.sync.credential_vault import Vault, keys_in, keys_in_file

        keys = self.settings.credential_keys
        if keys is not None:
            return Vault(keys_in(keys.get_secret_value()))
        return Vault(keys_in_file(self.home / "credentials.key"))

    @cached_property
    def sign_in(self) -> "SignInParts":
        from backend.composition.sign_in import SignInParts

        return SignInParts(self.settings, lambda: self.home)

    @cached_property
    def embedding(self) -> "EmbeddingModel":
        from backend.composition.index import EmbeddingModel

        return EmbeddingModel(self.settings, self.home, lambda: self.engine.versions)

    @cached_property
    def engine(self) -> "IndexEngine":
        from backend.composition.index import IndexEngine

        stored = self.home_database
        return IndexEngine(
            self.settings, self.home, self.embedding, stored.count_documents, stored.list_set_names
        )

    @cached_property
    def sources(self) -> "SourceParts":
        from backend.composition.sources import SourceParts

        return SourceParts(
            self.settings,
            lambda: self.home,
            lambda: self.database,
            lambda: self.vault,
            lambda: self.engine,
        )

    @cached_property
    def web(self) -> "WebParts":
        from backend.composition.web import WebParts

        return WebParts(
            self.settings,
            self.home_database.find,
            lambda: self.database,
            lambda: self.vault,
            lambda: self.embedding.with_languages,
        )

    @cached_property
    def language_models(self) -> "LanguageModels":
        from backend.composition.language_models import LanguageModels

        return LanguageModels(self.settings, self.home_database.find, lambda: self.vault)

    def model_service(self, actor: "Actor") -> "ModelService":
        """Return what changes the language models of the database."""
        from backend.chat.llm.stored_models import ModelService

        return ModelService(self.database, lambda: self.vault, actor)

    @cached_property
    def chat(self) -> "ChatService":
        from backend.composition.chat import ChatService

        return ChatService(
            self.settings,
            self.engine,
            self.home_database.list_source_kinds,
            lambda: self.language_models,
            lambda: self.web.sessions,
            lambda: self._memories,
            lambda: self._knowledge,
        )

    @cached_property
    def _memories(self) -> "MemoryFinder":
        from backend.composition.memories import MemoryFinder

        return MemoryFinder(self.home_database.find, lambda: self.embedding.sentence_model)

    @cached_property
    def _knowledge(self) -> "KnowledgeFinder":
        from backend.composition.knowledge import KnowledgeFinder

        return KnowledgeFinder(
            self.home_database.find,
            lambda: self.embedding.sentence_model,
            lambda: self.engine.index,
            timedelta(days=self.settings.knowledge_web_days),
        )

    @property
    def research(self) -> "ResearchParts":
        """Opens what research runs work with."""
        from backend.composition.research import ResearchParts

        return ResearchParts(self.chat, self.database, self.calculation_sandbox)

    @property
    def calculation_sandbox(self) -> "CalculationSandbox":
        """Runs code that language models write; it says why where it cannot."""
        from backend.research.calculations.sandbox import CalculationSandbox

        return CalculationSandbox(self.home / "calculations")

    def close(self) -> None:
        """Close what was opened of it."""
        opened = vars(self)
        for part in ("web", "engine", "database"):
            if part in opened:
                opened[part].close()

    def reopen(self) -> "Container":
        """Return the same home with nothing of it opened yet."""
        return Container(self.settings)

    def with_model(self, model: str) -> "Container":
        """Return the same home with another embedding model set."""
        return Container(self.settings.model_copy(update={"embedding_model": model}))


@dataclass(frozen=True, slots=True)
class HomeDatabase:
    """The database of a home as it is known before it is opened.

    A search asks this, and loads no store: the database is opened only where it has to be.
    """

    set_url: str | None
    """The database that the settings name; None for a file in the home."""
    find_home: Callable[[], Path]
    open: "Callable[[], Database]"

    @property
    def url(self) -> str:
        from backend.store.database import sqlite_url

        return self.set_url or sqlite_url(self._file)

    @property
    def _file(self) -> Path:
        """Of the database where no other is set."""
        return self.find_home() / "quarry.db"

    def find(self) -> "Database | None":
        """Return None without a database: none is created to look into it."""
        return None if self.set_url is None and not self._file.exists() else self.open()

    def count_documents(self) -> int:
        """Count those of all sources; none without a database."""
        if (database := self.find()) is None:
            return 0
        from backend.store.documents.documents import count_by_source

        return sum(count_by_source(database).values())

    def list_set_names(self, readers: "Readers") -> "Names":
        """Return the names of the sets that are shown to these readers, by label; none without a database."""
        if (database := self.find()) is None:
            return {}
        from backend.store.documents.document_sets import list_visible

        return list_visible(database, readers)

    def list_source_kinds(self) -> dict[str, str]:
        """Return the kind of each source by its name; a database is created where there is none."""
        from backend.store.sync.sources import list_sources

        return {source.name: source.kind for source in list_sources(self.open())}

    def resolve_readers(self, own: "Readers") -> "Readers":
        """Return what an asker with these tokens may read now."""
        return self._add_groups(own) if self._find_held_beyond_tokens().groups else own

    def resolve_readers_of_owner(self, own: "Readers") -> "Readers":
        """Return the same for the owner of the machine, who has files only where there are no accounts."""
        held = self._find_held_beyond_tokens()
        resolved = self._add_groups(own) if held.groups else own
        return self._add_files_of_owner(resolved) if held.files_of_owner else resolved

    def _find_held_beyond_tokens(self) -> "HeldBeyondTokens":
        return find_held_beyond_tokens(self._file) if self.set_url is None else _ANYTHING

    def _add_groups(self, own: "Readers") -> "Readers":
        from backend.access.own_readers import add_groups_of_accounts
        from backend.access.readers import resolve_readers

        database = self.open()
        return resolve_readers(database, add_groups_of_accounts(database, own))

    def _add_files_of_owner(self, readers: "Readers") -> "Readers":
        from backend.access.readers import add_own_files
        from backend.store.accounts.people import has_people
        from backend.store.owner import ConversationOwner

        if has_people(self.open()):
            return readers
        return add_own_files(readers, ConversationOwner(None))


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
