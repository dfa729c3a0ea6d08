"""What an asker may do with the index on the cluster.

A point in time costs two round trips more, a quarter to a third of the time of a search with one query, and
nearly always it would show the same. So the legs are asked without one, and the chunks to show are fetched
together with the records of their documents, one state for both: if every one of them still counts, no
document that was found has been replaced since, and the answer is whole. Only where one does not (a writer
was there in between, or is half done) all is asked again in one point in time, where a chunk that does not
count never did, and the next of the ranking takes its place.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TypeVar

from opensearchpy import OpenSearch

from connectors.closing import Closing
from connectors.document import Readers
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index import person_keys
from indexing.index.protocols import Facets, Filters, Found, IndexQuery
from indexing.opensearch import chunk_lookup, errors, query_bodies, score_conversion
from indexing.opensearch.cancellable_connection import cut_by
from indexing.opensearch.client import within
from indexing.opensearch.mapping import VectorSettings
from indexing.opensearch.ranking import View
from indexing.opensearch.record_mapping import person_of
from indexing.opensearch.retrieval import Asked, Legs, Scales
from indexing.opensearch.search_requests import Gone, Searches, at_one_point, best_effort, whole
from indexing.runtime.deadline import Deadline

Told = TypeVar("Told")

MOST_VALUES = 10_000
"""That a facet tells of; more differ in no way that a person could choose from."""
FACETS = MappingProxyType(
    {
        "source": MOST_VALUES,
        "media_type": MOST_VALUES,
        "people": person_keys.MAX_PEOPLE,
        # One to each person, as a rule, and room for those who are called by several names.
        "person": 2 * person_keys.MAX_PEOPLE,
        "month": MOST_VALUES,
    }
)
POINTS = 2
"""Points in time that are tried: one may go with its node."""


class OpenSearchIndex(Closing):
    """An `Index` over one index version on the cluster. Any number of threads and processes may use it."""

    def __init__(
        self, client: OpenSearch, index: str, dimension: int, vectors: VectorSettings
    ) -> None:
        """To be had from `open_index`, which sees to it that the index is there and fits."""
        self._client = client
        self._index = index
        self._dimension = dimension
        self._vectors = vectors
        self._scales: Scales | None = None

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        """See `Index.find`.

        Raises:
            ValueError: a vector that is not of the index's dimension.
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError
        """
        for query in queries:
            if query.vector is not None and query.vector.shape != (self._dimension,):
                raise ValueError(
                    f"a vector of shape {query.vector.shape}; the index has {self._dimension} dimensions"
                )
        deadline.check()
        with cut_by(deadline):
            asked = [Asked.of(query, readers, self._vectors) for query in queries]
            legs = Legs(asked, self._vectors.search, self._known_scales(deadline))
            return self._quick(legs, readers, deadline) or self._certain(legs, readers, deadline)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        """See `Index.chunks`. Raises DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError."""
        deadline.check()
        wanted = chunk_lookup.spans(ranges)
        with cut_by(deadline):
            found = self._places(wanted, readers, deadline)
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
        body = query_bodies.facets(readers, filters, FACETS)
        with cut_by(deadline):
            answer = whole(self._client, self._index, deadline).ask({0: body})[0]
        told = answer.facets
        names = ((*person_of(value), count) for value, count in told["person"].items())
        return Facets(
            sources=told["source"],
            media_types=told["media_type"],
            people=person_keys.count_people(told["people"], names),
            months=told["month"],
        )

    def close(self) -> None:
        """Nothing is held open here; the client is whose who made it."""

    def _quick(self, legs: Legs, readers: Readers, deadline: Deadline) -> Found | None:
        """The answer, unless something of it does not count any more."""
        copy = _copy(asked.query for asked in legs.asked)
        view = View(legs, readers, best_effort(self._client, self._index, deadline, copy))
        return view.found_if_whole()

    def _certain(self, legs: Legs, readers: Readers, deadline: Deadline) -> Found:
        """The answer of one point in time."""

        def asked(searches: Searches) -> Found:
            return View(legs, readers, searches).found()

        found = self._at_one_point(asked, deadline)
        # A node may have gone with its part of the point; other copies answer at a new one.
        return self._at_one_point(asked, deadline) if found.partial else found

    def _places(
        self, wanted: chunk_lookup.Spans, readers: Readers, deadline: Deadline
    ) -> chunk_lookup.Places:
        searches = whole(self._client, self._index, deadline)
        found = chunk_lookup.few(wanted, readers, searches) if wanted else {}
        if found is not None:
            return found
        return self._at_one_point(lambda point: chunk_lookup.many(wanted, readers, point), deadline)

    def _at_one_point(self, ask: Callable[[Searches], Told], deadline: Deadline) -> Told:
        for _ in range(POINTS):
            with suppress(Gone), at_one_point(self._client, self._index, deadline) as searches:
                return ask(searches)
        raise TemporarilyUnavailableError(
            "Nodes of the cluster come and go; a search is cut each time.", errors.SOON
        )

    def _known_scales(self, deadline: Deadline) -> Scales:
        if self._scales is None:
            with errors.named_errors(deadline):
                version = self._client.info(params=within(deadline))["version"]["number"]
            self._scales = Scales(
                score_conversion.bm25_factor(version), score_conversion.square(self._vectors)
            )
        return self._scales


def _copy(asked: Iterable[IndexQuery]) -> str:
    """Names copies of the shards: one question is answered by the same ones, other questions by others."""
    return f"q{zlib.crc32(repr([query.text for query in asked]).encode()):x}"
