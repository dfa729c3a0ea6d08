"""Puts the parts together. The only chooser of implementations.

Each part is made when it is first asked for, and its libraries are imported then: `quarry --help`
loads none of them, a search no database, a listing no model.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, TypeAlias

from backend.settings import Settings, variable

if TYPE_CHECKING:
    from backend.chat.chat_state import ChatStateContainer
    from backend.chat.context_files import ContextFile
    from backend.chat.events import ChatEvent
    from backend.chat.llm.client import LanguageModel
    from backend.chat.llm_loop import ChatTurn
    from backend.evaluation.evaluation import OpenIndex, OpenWriter, Parts
    from backend.search.llm_protocol import Complete
    from backend.search.models import Budgets, SearchRequest
    from backend.search.result_format import DocumentNumbers
    from backend.search.search_tool import SearchTool
    from backend.store.credential_vault import Vault
    from backend.store.database import Database
    from backend.store.sources import Source
    from connectors.connector import Connector
    from connectors.document import Document, Readers
    from indexing.embedding.embedder import Embedder
    from indexing.embedding.language_support import Understanding
    from indexing.embedding.token_counting import CountTokens
    from indexing.index.protocols import Filters, Index, IndexWriter
    from indexing.index.versions import IndexVersion, IndexVersions
    from indexing.ingestion.batch_worker import Carrying
    from indexing.ingestion.ledger import Ledger
    from indexing.ingestion.pipeline import Pipeline
    from indexing.opensearch.client import Client, SignIn
    from indexing.opensearch.cluster_health import ClusterHealth
    from indexing.opensearch.mapping import IndexLayout


Engine: TypeAlias = Literal["embedded", "opensearch"]
"""Where an index can be kept."""


class Container:
    """One home, and what works on it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def home(self) -> Path:
        """Raises ActionRequiredError when there can be no such folder."""
        from connectors.errors import ActionRequiredError

        home = self.settings.resolved_home
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ActionRequiredError(
                f"{home} cannot be used as Quarry's home: {error.strerror}."
                f" Set {variable('home')} to a folder that you may write to."
            ) from error
        return home

    @property
    def database_url(self) -> str:
        from backend.store.database import sqlite_url

        given = self.settings.database_url
        return given.get_secret_value() if given else sqlite_url(self.home / "quarry.db")

    @cached_property
    def database(self) -> "Database":
        from backend.store.database import open_database

        return open_database(self.database_url)

    @cached_property
    def vault(self) -> "Vault":
        """Seals the credentials of sources, and opens them.

        Raises:
            ActionRequiredError: a key is none, or the file of keys cannot be used.
        """
        from backend.store.credential_vault import Vault, keys_in, keys_in_file

        given = self.settings.credential_keys
        if given is not None:
            return Vault(keys_in(given.get_secret_value()))
        return Vault(keys_in_file(self.home / "credentials.key"))

    @cached_property
    def ledger(self) -> "Ledger":
        from backend.store.ledger import StoredLedger

        return StoredLedger(self.database)

    @property
    def models(self) -> Path:
        return self.settings.models or self.home / "models"

    @cached_property
    def embedding_model(self) -> str:
        """The one that is set; without one, that of the index; before there is one, the usual.

        Raises:
            ActionRequiredError: that of the index is served by an endpoint, and none is set.
        """
        from connectors.errors import ActionRequiredError

        settings = self.settings
        active = None if self._model_is_set else self.index_versions.active()
        if active and active.embedder.precision == "remote" and settings.embedding_url is None:
            raise ActionRequiredError(
                f"The index was made with {active.called}, a model behind an endpoint. Set"
                f" {variable('embedding_url')} to that endpoint, or change to a model of this machine:"
                " quarry reindex --model MODEL."
            )
        return active.called if active else settings.embedding_model

    @cached_property
    def embedder(self) -> "Embedder":
        settings = self.settings
        if settings.embedding_url:
            from indexing.embedding.openai_embedder import RemoteModel, RemoteModelSettings

            key = settings.embedding_key
            return RemoteModel(
                RemoteModelSettings(
                    url=settings.embedding_url,
                    model=self.embedding_model,
                    key=key.get_secret_value() if key else None,
                    max_tokens=settings.embedding_tokens,
                    query_prompt=settings.embedding_query_prompt,
                    passage_prompt=settings.embedding_passage_prompt,
                )
            )
        from indexing.embedding.sentence_transformers_model import load_embedder

        return load_embedder(self.embedding_model, self.models, settings.threads)

    def anew(self) -> "Container":
        """The same home, nothing of it opened yet."""
        return Container(self.settings)

    def with_model(self, model: str) -> "Container":
        """The same home with another embedding model set."""
        return Container(self.settings.model_copy(update={"embedding_model": model}))

    @cached_property
    def understanding(self) -> "Understanding":
        """What the embedder understands, probed once."""
        from indexing.embedding.language_support import understanding_of

        return understanding_of(self.embedder, self.models)

    @property
    def index_folder(self) -> Path:
        """Of the local index, with all its index versions."""
        return self.home / "index"

    @property
    def on_cluster(self) -> bool:
        """Whether the index in use lies in OpenSearch."""
        return self.settings.opensearch_url is not None

    @property
    def index_place(self) -> str:
        """Where the index in use lies, for people."""
        place = self.settings.opensearch_url if self.on_cluster else self.index_folder
        return str(place)

    def cluster_health(self) -> "ClusterHealth":
        """Raises TemporarilyUnavailableError, ActionRequiredError: the cluster does not answer, or not us."""
        from indexing.opensearch.cluster_health import examine

        return examine(self._opensearch_client, self.settings.opensearch_prefix)

    @cached_property
    def index_versions(self) -> "IndexVersions":
        """Of the index that is searched and written to."""
        return self.index_versions_in("opensearch" if self.on_cluster else "embedded")

    def index_versions_in(self, engine: Engine) -> "IndexVersions":
        """Of the index in an engine, whether it is in use or not.

        Raises:
            ActionRequiredError: that engine is not set up.
        """
        return (
            self._local_index_versions()
            if engine == "embedded"
            else self._opensearch_index_versions()
        )

    def _local_index_versions(self) -> "IndexVersions":
        from indexing.local import LocalIndexVersions

        return LocalIndexVersions(self.index_folder)

    def _opensearch_index_versions(self) -> "IndexVersions":
        from indexing.opensearch.versions import OpenSearchIndexVersions

        prefix = self.settings.opensearch_prefix
        return OpenSearchIndexVersions(self._opensearch_client, prefix, self._opensearch_layout)

    @cached_property
    def _opensearch_client(self) -> "Client":
        """Raises ActionRequiredError: no cluster is set, or a setting of it cannot work."""
        from connectors.errors import ActionRequiredError
        from indexing.opensearch.client import OpenSearchSettings, connect

        settings = self.settings
        if settings.opensearch_url is None:
            raise ActionRequiredError(
                f"No OpenSearch is set up. Set {variable('opensearch_url')} to its address, such as"
                " https://search.example.com:9200."
            )
        return connect(
            OpenSearchSettings(
                urls=tuple(url.strip() for url in settings.opensearch_url.split(",")),
                sign_in=self._opensearch_sign_in(),
                ca_file=settings.opensearch_ca,
                verification=settings.opensearch_verify,
            )
        )

    def _opensearch_sign_in(self) -> "SignIn":
        from indexing.opensearch.client import Anonymous, AwsSigning, ClientCertificate, Password

        settings = self.settings
        if settings.opensearch_aws_region:
            return AwsSigning(settings.opensearch_aws_region, settings.opensearch_aws_service)
        if settings.opensearch_certificate:
            return ClientCertificate(
                settings.opensearch_certificate, settings.opensearch_certificate_key
            )
        if settings.opensearch_user:
            password = settings.opensearch_password
            return Password(
                settings.opensearch_user, password.get_secret_value() if password else ""
            )
        return Anonymous()

    @property
    def _opensearch_layout(self) -> "IndexLayout":
        from indexing.opensearch.mapping import IndexLayout, VectorSettings

        settings = self.settings
        return IndexLayout(
            shards=settings.opensearch_shards,
            replicas=settings.opensearch_replicas,
            vectors=VectorSettings(
                engine=settings.opensearch_engine,
                quantisation=settings.opensearch_quantisation,
                search=settings.opensearch_vector_search,
            ),
        )

    @cached_property
    def index_version(self) -> "IndexVersion":
        """The one that the embedder asks for."""
        from indexing.index.versions import IndexVersion

        return IndexVersion(self.embedder.identity, self.embedding_model)

    @cached_property
    def index(self) -> "Index":
        """Raises ActionRequiredError: the index is of another embedder than is set."""
        with self._chosen_in_time():
            return self.index_versions.open_index(self.index_version)

    @cached_property
    def index_writer(self) -> "IndexWriter":
        """Raises ActionRequiredError: the index is of another embedder than is set."""
        with self._chosen_in_time():
            return self.index_versions.open_writer(self.index_version)

    @contextmanager
    def _chosen_in_time(self) -> Iterator[None]:
        """Where the model is the index's own, another one means that the index was switched meanwhile.

        Raises:
            IndexVersionReplacedError: so it is; what was made of the settings is to be made anew.
        """
        from connectors.errors import ActionRequiredError
        from indexing.index.versions import IndexVersionReplacedError

        try:
            yield
        except ActionRequiredError as error:
            active = self.index_versions.active()
            if self._model_is_set or active is None or active.called == self.embedding_model:
                raise
            raise IndexVersionReplacedError(active) from error

    @property
    def _model_is_set(self) -> bool:
        return "embedding_model" in self.settings.model_fields_set

    @cached_property
    def count_tokens(self) -> "CountTokens":
        from indexing.embedding.token_counting import chat_token_counter, rough_tokens

        if self.language_model is None:
            return rough_tokens
        folder = self.settings.tiktoken_cache_dir
        return chat_token_counter(folder) if folder else chat_token_counter()

    @cached_property
    def language_model(self) -> "LanguageModel | None":
        """None where none is set; then answers are extractive."""
        settings = self.settings
        if settings.llm_model is None:
            return None
        from backend.chat.llm.client import LanguageModel, ModelSettings

        key = settings.llm_key
        return LanguageModel(
            ModelSettings(
                base_url=settings.llm_url or "https://api.openai.com/v1",
                model=settings.llm_model,
                api_key=key.get_secret_value() if key else None,
                context_window=settings.llm_window,
            )
        )

    @property
    def budgets(self) -> "Budgets":
        from backend.search.models import Budgets

        return Budgets.for_window(self.settings.llm_window)

    def request(self, message: str, readers: "Readers", filters: "Filters") -> "SearchRequest":
        from backend.search.models import SearchRequest
        from indexing.runtime.deadline import Deadline

        return SearchRequest(
            message=message,
            readers=readers,
            deadline=Deadline.after(self.settings.search_seconds),
            budgets=self.budgets,
            filters=filters,
        )

    def search_tool(self) -> "SearchTool":
        """A search that asks no language model."""
        from backend.search.result_format import DocumentNumbers

        return self._search_tool(self.index, None, DocumentNumbers())

    def _search_tool(
        self, index: "Index", complete: "Complete | None", numbers: "DocumentNumbers"
    ) -> "SearchTool":
        from backend.search.search_tool import SearchTool

        return SearchTool(
            index=index,
            embedder=self.embedder,
            understanding=self.understanding,
            count_tokens=self.count_tokens,
            complete=complete,
            numbers=numbers,
        )

    def answer(
        self, turn: "ChatTurn", files: Sequence["Document"], state: "ChatStateContainer"
    ) -> Iterator["ChatEvent"]:
        """Answer by the language model, or without one from the best sentences.

        Files that the model cannot read whole, or that no model reads, are searched instead of the
        index.
        """
        from backend.search.result_format import DocumentNumbers

        numbers, model = DocumentNumbers(), self.language_model
        read_whole = model is not None and not self._too_long(turn.files, model)
        with self._searched(files if not read_whole else ()) as index:
            if model is None:
                yield from self._answer_from_sentences(turn, index, numbers, state)
            else:
                yield from self._answer_by_model(turn, index, numbers, state, files)

    def _too_long(self, files: Sequence["ContextFile"], model: "LanguageModel") -> bool:
        from backend.chat.context_files import resolve_context_user_files

        window = model.settings.prompt_tokens
        return resolve_context_user_files(files, window, self.count_tokens).use_as_search_filter

    @contextmanager
    def _searched(self, files: Sequence["Document"]) -> Iterator["Index"]:
        """The index, or where there are files one of these alone, which ends with the block."""
        from indexing.ingestion.temporary_index import index_documents
        from indexing.local import open_index, open_writer

        if not files:
            yield self.index
            return
        with TemporaryDirectory(prefix="quarry-files-") as folder:
            writer = open_writer(Path(folder), self.embedder.identity)
            index_documents(files, self.embedder, writer)
            with closing(open_index(Path(folder), self.embedder.identity)) as index:
                yield index

    def _answer_from_sentences(
        self,
        turn: "ChatTurn",
        index: "Index",
        numbers: "DocumentNumbers",
        state: "ChatStateContainer",
    ) -> Iterator["ChatEvent"]:
        from backend.chat.answer import ExtractiveParts, answer_from_sentences

        parts = ExtractiveParts(
            search=self._search_tool(index, None, numbers).run,
            numbers=numbers,
            embedder=self.embedder,
            understanding=self.understanding,
            budgets=self.budgets,
            search_seconds=self.settings.search_seconds,
        )
        return answer_from_sentences(turn, parts, state)

    def _answer_by_model(
        self,
        turn: "ChatTurn",
        index: "Index",
        numbers: "DocumentNumbers",
        state: "ChatStateContainer",
        files: Sequence["Document"],
    ) -> Iterator["ChatEvent"]:
        from backend.chat.answer import Checker
        from backend.chat.llm.client import completion
        from backend.chat.llm_loop import ChatParts, run_llm_loop

        model = self.language_model
        if model is None:
            raise ValueError("no language model is set")
        parts = ChatParts(
            model=model,
            count_tokens=self.count_tokens,
            search=self._search_tool(index, completion(model), numbers).run,
            numbers=numbers,
            search_seconds=self.settings.search_seconds,
        )
        whole = {file.id: file for file in files}
        checker = Checker(self.embedder, self.understanding, state, whole)
        return checker.checked(run_llm_loop(turn, parts, state))

    def connector(self, source: "Source") -> "Connector":
        """Raises ActionRequiredError: its settings or its credential are not valid, or no key opens that."""
        from connectors.registry import connect

        opened = self.vault.open(source.credential) if source.credential else {}
        return connect(source.kind, source.name, source.settings, opened)

    def pipeline(self, source: "Source") -> "Pipeline":
        from indexing.ingestion.pipeline import Pipeline

        return Pipeline(
            source=source.name, embedder=self.embedder, writer=self.index_writer, ledger=self.ledger
        )

    def carrying(self) -> "Carrying":
        """What indexes batches, of whatever source."""
        from indexing.ingestion.batch_worker import Carrying

        return Carrying(embedder=self.embedder, writer=self.index_writer, ledger=self.ledger)

    def evaluation_parts(self) -> "Parts":
        """On indexes of their own, in the engine that is in use."""
        from backend.evaluation.evaluation import Parts

        at = self._opensearch_evaluation if self.on_cluster else self._local_evaluation
        open_index, open_writer = at()
        return Parts(
            open_index=open_index,
            open_writer=open_writer,
            embedder=self.embedder,
            understanding=self.understanding,
        )

    def _local_evaluation(self) -> "tuple[OpenIndex, OpenWriter]":
        from indexing.local import open_index, open_writer

        cache = self.home / "evaluation"
        return (
            lambda name, identity: closing(open_index(cache / name, identity)),
            lambda name, identity: open_writer(cache / name, identity),
        )

    def _opensearch_evaluation(self) -> "tuple[OpenIndex, OpenWriter]":
        from indexing.opensearch.open_index import open_index, open_writer

        client, layout = self._opensearch_client, self._opensearch_layout
        prefix = f"{self.settings.opensearch_prefix}-evaluation"
        return (
            lambda name, identity: open_index(client, f"{prefix}-{name}", identity, layout),
            lambda name, identity: open_writer(client, f"{prefix}-{name}", identity, layout),
        )
