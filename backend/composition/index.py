"""Choose the embedding model and the index engine, and open both when they are first used.

The index is opened under the names of document sets. In the index a document carries labels of sets, which say nothing
to people. To an asker only those sets exist that are shown to them: a filter by another finds what one by an unknown
name finds, nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from backend.settings import Settings, variable
from connectors.closing import Closing
from indexing.index.protocols import LABEL_SIGN

if TYPE_CHECKING:
    from backend.chat.text_nearness import SentenceModel
    from backend.evaluation.evaluation import EvaluationDependencies, OpenIndex, OpenWriter
    from connectors.access import Readers
    from indexing.chunking.chunk import Chunk, ChunkRange
    from indexing.embedding.embedder import Embedder
    from indexing.embedding.language_support import EmbedderWithLanguages, LanguageSupport
    from indexing.embedding.vector_cache import VectorCache
    from indexing.index.protocols import (
        Facets,
        Filters,
        Found,
        Hit,
        Index,
        IndexQuery,
        IndexWriter,
        Selection,
    )
    from indexing.index.spelling import Corrections, SpellingQuery
    from indexing.index.versions import IndexVersion, IndexVersions
    from indexing.opensearch.client import Client, SignIn
    from indexing.opensearch.cluster_health import ClusterHealth
    from indexing.opensearch.mapping import IndexLayout
    from indexing.runtime.deadline import Deadline

EngineName: TypeAlias = Literal["embedded", "opensearch"]
Names: TypeAlias = Mapping[str, str]
"""The names of sets, by label."""


@dataclass(frozen=True)
class EmbeddingModel:
    """The model that the settings name, or else the one that the index was built with."""

    settings: Settings
    home: Path
    find_versions: Callable[[], "IndexVersions"]
    """Of the index, the active one of which names the model it was built with."""

    @property
    def folder(self) -> Path:
        """Where converted models are stored."""
        return self.settings.models or self.home / "models"

    @property
    def is_set(self) -> bool:
        return "embedding_model" in self.settings.model_fields_set

    @cached_property
    def name(self) -> str:
        """The model that is set; else that of the index; before there is an index, the default.

        Raises:
            NotConfiguredError: the index needs an embedding endpoint, and none is set.
        """
        from connectors.errors import NotConfiguredError

        settings = self.settings
        active = None if self.is_set else self.find_versions().active()
        if active and active.embedder.precision == "remote" and settings.embedding_url is None:
            raise NotConfiguredError(
                f"The index was built with {active.model_name}, a model behind an endpoint. Set"
                f" {variable('embedding_url')} to that endpoint, or change to a local model:"
                " quarry reindex --model MODEL."
            )
        return active.model_name if active else settings.embedding_model

    @cached_property
    def embedder(self) -> "Embedder":
        return self._remote() if self.settings.embedding_url else self._local()

    def _local(self) -> "Embedder":
        from indexing.embedding.model_loading import load_embedder

        return load_embedder(self.name, self.folder, self.settings.threads)

    def _remote(self) -> "Embedder":
        from indexing.embedding.openai_embedder import OpenAiEmbedder, OpenAiEmbedderSettings

        settings, key = self.settings, self.settings.embedding_key
        return OpenAiEmbedder(
            OpenAiEmbedderSettings(
                url=settings.embedding_url or "",
                model=self.name,
                key=key.get_secret_value() if key else None,
                max_tokens=settings.embedding_tokens,
                query_prompt=settings.embedding_query_prompt,
                passage_prompt=settings.embedding_passage_prompt,
            )
        )

    @cached_property
    def sentence_vectors(self) -> "VectorCache":
        """Embeds sentences of answers and the passages that they cite."""
        from indexing.embedding.vector_cache import VectorCache

        return VectorCache(self.embedder)

    @cached_property
    def language_support(self) -> "LanguageSupport":
        """Which languages the model understands, measured once and stored beside it."""
        from indexing.embedding.language_support import load_language_support

        return load_language_support(self.embedder, self.folder)

    @property
    def with_languages(self) -> "EmbedderWithLanguages":
        """The embedder, and the languages that it understands."""
        from indexing.embedding.language_support import EmbedderWithLanguages

        return EmbedderWithLanguages(self.embedder, self.language_support)

    @property
    def sentence_model(self) -> "SentenceModel":
        """Embeds questions and short texts alike."""
        from backend.chat.text_nearness import SentenceModel

        return SentenceModel(self.sentence_vectors, self.language_support)


@dataclass(frozen=True)
class IndexEngine:
    """The index in the engine that the settings choose: local, or OpenSearch."""

    settings: Settings
    home: Path
    embedding: EmbeddingModel
    count_documents: Callable[[], int]
    """Of all sources, as the database knows them."""
    list_set_names: Callable[["Readers"], Names]
    """Lists the document sets that are shown to these readers."""

    @property
    def is_opensearch(self) -> bool:
        return self.settings.opensearch_url is not None

    @property
    def folder(self) -> Path:
        """Of the local index, with all its versions."""
        return self.home / "index"

    @property
    def location(self) -> str:
        """Where the index lies, for people."""
        return self.settings.opensearch_url or str(self.folder)

    @cached_property
    def versions(self) -> "IndexVersions":
        return self.versions_in("opensearch" if self.is_opensearch else "embedded")

    @cached_property
    def version(self) -> "IndexVersion":
        """The version that the embedding model needs."""
        from indexing.index.versions import IndexVersion

        return IndexVersion(self.embedding.embedder.identity, self.embedding.name)

    @cached_property
    def index(self) -> "Index":
        """The index, for search; created empty only where nothing was indexed yet.

        Raises:
            NotConfiguredError: the index was built with another model than is set.
            DamagedDataError: documents were indexed, but this engine has no index.
        """
        self._check_presence()
        with self._current_version():
            opened = self.versions.open_index(self.version)
            return NamedSetsIndex(opened, self.list_set_names)

    @cached_property
    def writer(self) -> "IndexWriter":
        """Raises NotConfiguredError: the index was built with another model than is set."""
        with self._current_version():
            return self.versions.open_writer(self.version)

    def count_selected(self, selections: "Sequence[Selection]") -> int:
        """Count documents of the index, whoever may read them: for those who look after it."""
        return self.writer.count(selections)

    def close(self) -> None:
        """Close the index, if it was opened for search. What writes it holds nothing open."""
        index = vars(self).get("index")
        if isinstance(index, Closing):
            index.close()

    def versions_in(self, engine: EngineName) -> "IndexVersions":
        """Return the versions of the index in an engine, whether it is in use or not.

        Raises:
            NotConfiguredError: that engine is not set up.
        """
        return self._local_versions() if engine == "embedded" else self._opensearch_versions()

    def cluster_health(self) -> "ClusterHealth":
        """Read the health of the cluster.

        Raises:
            TemporarilyUnavailableError, ActionRequiredError: the cluster does not answer, or not us.
        """
        from indexing.opensearch.cluster_health import read_cluster_health

        return read_cluster_health(self._client, self.settings.opensearch_prefix)

    def evaluation_parts(self) -> "EvaluationDependencies":
        """Return indexes of their own, in the engine in use, for an evaluation."""
        from backend.evaluation.evaluation import EvaluationDependencies

        open_index, open_writer = (
            self._opensearch_evaluation() if self.is_opensearch else self._local_evaluation()
        )
        return EvaluationDependencies(
            open_index=open_index,
            open_writer=open_writer,
            embedder=self.embedding.embedder,
            understanding=self.embedding.language_support,
        )

    def _check_presence(self) -> None:
        """Refuse an empty index in place of one that was lost: it would answer that there is nothing."""
        from connectors.errors import DamagedDataError

        if self.versions.active() is None and (documents := self.count_documents()):
            raise DamagedDataError(
                f"There is no index in {self.location}, although documents were indexed ({documents} in the database)."
                " If it was lost, build it again from what is stored of the documents: quarry reindex --rebuild."
                " If you changed the engine, copy the index to it: quarry move --help."
            )

    @contextmanager
    def _current_version(self) -> Iterator[None]:
        """Distinguish a switch of the index from a wrong setting.

        The name of the model was read from the index before the index is opened. Where another process
        switched the index between the two, the model is not wrong, only old.

        Raises:
            IndexVersionReplacedError: the index was switched; what was opened of it must be opened again.
        """
        from connectors.errors import ActionRequiredError
        from indexing.index.versions import IndexVersionReplacedError

        try:
            yield
        except ActionRequiredError as error:
            active = self.versions.active()
            if self.embedding.is_set or active is None or active.model_name == self.embedding.name:
                raise
            raise IndexVersionReplacedError(active) from error

    def _local_versions(self) -> "IndexVersions":
        from indexing.local import LocalIndexVersions

        return LocalIndexVersions(self.folder)

    def _opensearch_versions(self) -> "IndexVersions":
        from indexing.opensearch.versions import OpenSearchIndexVersions

        return OpenSearchIndexVersions(self._client, self.settings.opensearch_prefix, self._layout)

    @cached_property
    def _client(self) -> "Client":
        """Raises NotConfiguredError: no cluster is set, or a setting of it cannot work."""
        from connectors.errors import NotConfiguredError
        from indexing.opensearch.client import OpenSearchSettings, connect

        settings = self.settings
        if settings.opensearch_url is None:
            raise NotConfiguredError(
                f"OpenSearch is not set up. Set {variable('opensearch_url')} to its address, such as"
                " https://search.example.com:9200."
            )
        return connect(
            OpenSearchSettings(
                urls=tuple(url.strip() for url in settings.opensearch_url.split(",")),
                sign_in=self._sign_in(),
                ca_file=settings.opensearch_ca,
                verification=settings.opensearch_verify,
            )
        )

    def _sign_in(self) -> "SignIn":
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
    def _layout(self) -> "IndexLayout":
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

    def _local_evaluation(self) -> "tuple[OpenIndex, OpenWriter]":
        from indexing.local import open_index, open_writer

        folder = self.home / "evaluation"
        return (
            lambda name, identity: closing(open_index(folder / name, identity)),
            lambda name, identity: open_writer(folder / name, identity),
        )

    def _opensearch_evaluation(self) -> "tuple[OpenIndex, OpenWriter]":
        from indexing.opensearch.open_index import open_index, open_writer

        client, layout = self._client, self._layout
        prefix = f"{self.settings.opensearch_prefix}-evaluation"
        return (
            lambda name, identity: open_index(client, f"{prefix}-{name}", identity, layout),
            lambda name, identity: open_writer(client, f"{prefix}-{name}", identity, layout),
        )


@dataclass(frozen=True)
class NamedSetsIndex(Closing):
    """An `Index` whose filters, facets and chunks name sets as the asker knows them."""

    index: "Index"
    list_names: Callable[["Readers"], Names]
    """Lists the sets that are shown to these readers."""

    def find(
        self, queries: "Sequence[IndexQuery]", readers: "Readers", deadline: "Deadline"
    ) -> "Found":
        names = _AskersNames(self.list_names, readers)
        asked = [replace(each, filters=names.to_labels(each.filters)) for each in queries]
        found = self.index.find(asked, readers, deadline)
        rankings = tuple(tuple(map(names.name_hit, ranking)) for ranking in found.rankings)
        return replace(found, rankings=rankings)

    def chunks(
        self, ranges: "Sequence[ChunkRange]", readers: "Readers", deadline: "Deadline"
    ) -> "list[list[Chunk]]":
        names = _AskersNames(self.list_names, readers)
        found = self.index.chunks(ranges, readers, deadline)
        return [list(map(names.name_chunk, chunks)) for chunks in found]

    def facets(self, filters: "Filters", readers: "Readers", deadline: "Deadline") -> "Facets":
        names = _AskersNames(self.list_names, readers)
        found = self.index.facets(names.to_labels(filters), readers, deadline)
        if not found.sets:
            return found
        known = names.get()
        counts = {known[each]: count for each, count in found.sets.items() if each in known}
        return replace(found, sets=counts)

    def suggest_corrections(
        self, query: "SpellingQuery", readers: "Readers", deadline: "Deadline"
    ) -> "Corrections":
        return self.index.suggest_corrections(query, readers, deadline)

    def close(self) -> None:
        if isinstance(self.index, Closing):
            self.index.close()


class _AskersNames:
    """The names of one asker, listed once they are needed."""

    def __init__(self, list_names: Callable[["Readers"], Names], readers: "Readers") -> None:
        self._list_names = list_names
        self._readers = readers
        self._names: Names | None = None

    def get(self) -> Names:
        if self._names is None:
            self._names = self._list_names(self._readers)
        return self._names

    def to_labels(self, filters: "Filters") -> "Filters":
        """Replace names of sets by labels; what names no set of the asker is left out, labels stay."""
        if filters.sets is None:
            return filters
        kept = {each for each in filters.sets if each.startswith(LABEL_SIGN)}
        found = {label for label, name in self.get().items() if name in filters.sets}
        return replace(filters, sets=frozenset(kept | found))

    def name_hit(self, hit: "Hit") -> "Hit":
        return replace(hit, chunk=self.name_chunk(hit.chunk)) if hit.chunk.sets else hit

    def name_chunk(self, chunk: "Chunk") -> "Chunk":
        if not chunk.sets:
            return chunk
        names = self.get()
        return replace(chunk, sets=frozenset(names[each] for each in chunk.sets if each in names))
