"""Searches an index on the cluster for users.

A point in time costs two more round trips, a quarter to a third of the time of a search with one query, and
nearly always shows the same. So candidates are first retrieved without one, and the chunks to show are read
together with the records of their documents, in one state. If each of them is visible, no document that was
found has been replaced since, and the answer is consistent. Otherwise, when a writer replaced a document in
between, everything is repeated within one point in time. There a chunk that is not visible never was, and the
next one of the ranking takes its place.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TypeVar

from opensearchpy import OpenSearch

from connectors.access import Readers
from connectors.closing import Closing
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index import person_keys
from indexing.index.protocols import Facets, Filters, Found, IndexQuery
from indexing.index.spelling import (
    Corrections,
    Inflections,
    SpellingQuery,
    suggest_corrections,
)
from indexing.opensearch import chunk_lookup, errors, query_bodies, score_conversion
from indexing.opensearch.cancellable_connection import cancel_on
from indexing.opensearch.chunk_lookup import ChunksByPosition, Intervals
from indexing.opensearch.client import request_timeout
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.passage_words import OpenSearchPassageWords
from indexing.opensearch.ranking import RankedSearch
from indexing.opensearch.record_mapping import person_of
from indexing.opensearch.retrieval import PreparedQuery, Retriever, ScoreScales, Wording
from indexing.opensearch.search_requests import (
    MultiSearch,
    PointInTimeGoneError,
    best_effort_search,
    point_in_time_search,
    strict_search,
)
from indexing.runtime.deadline import Deadline
from indexing.text.analysis import NO_LANGUAGES, Analysis, Languages
from indexing.text.languages import LANGUAGES

Result = TypeVar("Result")

MAX_FACET_VALUES = 10_000
"""Of one facet; more are too many to choose from."""
FACETS = MappingProxyType(
    {
        "source": MAX_FACET_VALUES,
        "media_type": MAX_FACET_VALUES,
        "people": person_keys.MAX_PEOPLE,
        # Usually one per person; the rest is for people with several names.
        "person": 2 * person_keys.MAX_PEOPLE,
        "month": MAX_FACET_VALUES,
        "sets": MAX_FACET_VALUES,
    }
)
MAX_REMEMBERED = 1_000
"""Askers whose languages are remembered; those of others cost a second retrieval."""
POINT_ATTEMPTS = 2
"""Points in time that are tried: one may be lost with its node."""


class OpenSearchIndex(Closing):
    """An `Index` over one index version on the cluster, for any number of threads and processes."""

    def __init__(
        self,
        client: OpenSearch,
        index: str,
        dimension: int,
        vectors: VectorSettings,
        analysis: Analysis,
    ) -> None:
        """Use `open_index`, which ensures that the index exists and fits."""
        self._client = client
        self._index = index
        self._dimension = dimension
        self._vectors = vectors
        self._analysis = analysis
        self._languages: dict[Readers, Languages] = {}
        """Of the documents that each asker saw at the last search."""
        self._scales: ScoreScales | None = None

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        """See `Index.find`.

        Raises:
            ValueError: a vector that does not have the index's dimension.
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError
        """
        for query in queries:
            if query.vector is not None and query.vector.shape != (self._dimension,):
                raise ValueError(
                    f"a vector of shape {query.vector.shape}; the index has {self._dimension} dimensions"
                )
        deadline.check()
        with cancel_on(deadline):
            retriever = self._prepare(queries, readers, deadline)
            found = self._find_quickly(retriever, readers, deadline)
            return found or self._find_consistently(retriever, readers, deadline)

    def _prepare(
        self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline
    ) -> Retriever:
        wording = Wording(self._analysis, readers, self._languages.get(readers, NO_LANGUAGES))
        prepared = [PreparedQuery.of(query, wording, self._vectors) for query in queries]
        scales = self._load_scales(deadline)
        return Retriever(prepared, wording, self._vectors.search, scales)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        """See `Index.chunks`. Raises DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError."""
        deadline.check()
        wanted = chunk_lookup.to_intervals(ranges)
        with cancel_on(deadline):
            found = self._find_chunks(wanted, readers, deadline)
        by_document: dict[str, list[Chunk]] = {}
        for chunk in sorted(found.values(), key=lambda chunk: chunk.key):
            by_document.setdefault(chunk.document_id, []).append(chunk)
        return [
            [
                c
                for c in by_document.get(each.document_id, ())
                if each.start <= c.position < each.end
            ]
            for each in ranges
        ]

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        """See `Index.facets`. Raises DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError."""
        body = query_bodies.facets_query(readers, filters, FACETS)
        with cancel_on(deadline):
            response = strict_search(self._client, self._index, deadline).run({0: body})[0]
        found = response.facets
        names = ((*person_of(value), count) for value, count in found["person"].items())
        return Facets(
            sources=found["source"],
            media_types=found["media_type"],
            people=person_keys.count_people(found["people"], names),
            months=found["month"],
            sets=found["sets"],
        )

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        """See `Index.suggest_corrections`. Raises as `facets` does."""
        with cancel_on(deadline):
            passages = OpenSearchPassageWords(
                strict_search(self._client, self._index, deadline),
                readers,
                lambda wanted: self._find_chunks(wanted, readers, deadline),
                self._list_inflections(readers),
            )
            return suggest_corrections(query, passages)

    def close(self) -> None:
        """Do nothing: the client belongs to its creator."""

    def _find_quickly(
        self, retriever: Retriever, readers: Readers, deadline: Deadline
    ) -> Found | None:
        """Search without a point in time; `None` if something found is not visible any more."""
        preference = _preference(prepared.query for prepared in retriever.queries)
        search = best_effort_search(self._client, self._index, deadline, preference)
        ranked = RankedSearch(retriever, readers, search)
        found = ranked.find_if_consistent()
        self._remember_languages(readers, ranked.languages)
        return found

    def _find_consistently(
        self, retriever: Retriever, readers: Readers, deadline: Deadline
    ) -> Found:
        def find(search: MultiSearch) -> Found:
            return RankedSearch(retriever, readers, search).find()

        found = self._in_one_point(find, deadline)
        # A node may be lost with its part of the point in time; a new one uses other copies.
        return self._in_one_point(find, deadline) if found.partial else found

    def _find_chunks(
        self, wanted: Intervals, readers: Readers, deadline: Deadline
    ) -> ChunksByPosition:
        search = strict_search(self._client, self._index, deadline)
        found = chunk_lookup.find_few(wanted, readers, search) if wanted else {}
        if found is not None:
            return found
        return self._in_one_point(
            lambda point: chunk_lookup.find_many(wanted, readers, point), deadline
        )

    def _in_one_point(self, find: Callable[[MultiSearch], Result], deadline: Deadline) -> Result:
        for _ in range(POINT_ATTEMPTS):
            with (
                suppress(PointInTimeGoneError),
                point_in_time_search(self._client, self._index, deadline) as search,
            ):
                return find(search)
        raise TemporarilyUnavailableError(
            "Nodes keep leaving the cluster; each search was interrupted.", errors.RETRY_SOON
        )

    def _list_inflections(self, readers: Readers) -> Inflections:
        """Return how a word is inflected in the asker's languages; before these are known, in all."""
        languages = self._languages.get(readers, frozenset(LANGUAGES))
        return lambda word: [
            form for forms in self._analysis.query_words(word, languages) for form in forms
        ]

    def _remember_languages(self, readers: Readers, languages: Languages) -> None:
        if len(self._languages) >= MAX_REMEMBERED:
            self._languages.clear()
        self._languages[readers] = languages

    def _load_scales(self, deadline: Deadline) -> ScoreScales:
        if self._scales is None:
            with errors.translate_errors(deadline):
                info = self._client.info(params=request_timeout(deadline))
            self._scales = ScoreScales(
                score_conversion.bm25_factor(info["version"]["number"]),
                score_conversion.self_product(self._vectors),
            )
        return self._scales


def _preference(queries: Iterable[IndexQuery]) -> str:
    """Name the copies of the shards: the same for the same texts, spread over different ones."""
    return f"q{zlib.crc32(repr([query.text for query in queries]).encode()):x}"
