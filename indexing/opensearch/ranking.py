"""Turns the candidates of one call into ranked hits for each of its queries."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from connectors.access import Readers
from indexing.index import hybrid_ranking
from indexing.index.hybrid_ranking import Candidates, RankedCandidate, Weighting
from indexing.index.protocols import Found, Hit
from indexing.opensearch import access_filter, chunk_lookup, query_bodies
from indexing.opensearch.access_filter import VisibleChunk
from indexing.opensearch.mapping import Body
from indexing.opensearch.naming import key_of, version_of
from indexing.opensearch.query_bodies import MAX_HITS
from indexing.opensearch.record_mapping import Source
from indexing.opensearch.retrieval import PreparedQuery, RetrievedCandidates, Retriever
from indexing.opensearch.search_requests import MultiSearch
from indexing.text.analysis import Languages

Ranking: TypeAlias = list[RankedCandidate[str]]


class RankedSearch:
    """One call of `find`: several queries of one user."""

    def __init__(self, retriever: Retriever, readers: Readers, search: MultiSearch) -> None:
        self._retriever = retriever
        self._readers = readers
        self._search = search
        self._visible: dict[str, VisibleChunk] = {}
        self._cosines: list[dict[str, float]] = [{} for _ in retriever.queries]
        """Of each query, by chunk id: those that the retrieval did not return."""
        self._partial = False

    def find_if_consistent(self) -> Found | None:
        """Return the best of each ranking; `None` if one of them is not visible, or no longer."""
        rankings = self._rank(self._retrieve())
        self._read_chunks(rankings)
        consistent = all(
            self._is_shown(query, place)
            for query, ranking in zip(self._retriever.queries, rankings, strict=True)
            for place in ranking
        )
        # A second search would not make a partial answer complete.
        return self._to_found(rankings) if consistent or self._partial else None

    def find(self) -> Found:
        """Return the best visible chunks of each ranking; the searches must see one state of the index.

        A document that is being replaced may have many chunks of a version that does not count. They must
        not displace other candidates, so candidates are retrieved again without these versions.
        """
        retrieved = self._retrieve()
        while any(hidden := self._hidden_versions(retrieved)):
            self._retriever = self._retriever.without(hidden, retrieved.common_terms)
            retrieved = self._retrieve()
        rankings = self._rank(retrieved)
        self._read_chunks(rankings)
        return self._to_found(rankings)

    @property
    def languages(self) -> Languages:
        """Those that the queries were made into words of: of all documents that the user may see."""
        return self._retriever.wording.languages

    def _retrieve(self) -> RetrievedCandidates:
        retrieved = self._retriever.retrieve(self._search)
        if retrieved.languages != self.languages:
            # Rarely needed: a document in another language was written, or the last one of a language deleted.
            self._retriever = self._retriever.in_languages(retrieved.languages)
            retrieved = self._retriever.retrieve(self._search)
        self._partial |= retrieved.partial
        return retrieved

    def _rank(self, retrieved: RetrievedCandidates) -> list[Ranking]:
        return [
            hybrid_ranking.rank_candidates(
                found,
                Weighting.of_query(query.query),
                min(query.query.size, MAX_HITS),
                retrieved.boosts,
            )
            for found, query in zip(retrieved.candidates, self._retriever.queries, strict=True)
        ]

    def _hidden_versions(self, retrieved: RetrievedCandidates) -> list[set[str]]:
        """Return for each query the versions among its candidates that are not visible."""
        keys = sorted({key_of(chunk) for found in retrieved.candidates for chunk in _all(found)})
        queries = dict(enumerate(chunk_lookup.record_queries(keys, self._readers)))
        records: dict[str, Source] = {}
        for response in self._search.run(queries).values():
            records |= access_filter.read_records(response)
            self._partial |= response.partial
        return [
            {
                version_of(chunk)
                for chunk in _all(found)
                if not access_filter.is_visible(chunk, records, query.query.filters)
            }
            for found, query in zip(retrieved.candidates, self._retriever.queries, strict=True)
        ]

    def _is_shown(self, query: PreparedQuery, place: RankedCandidate[str]) -> bool:
        visible = self._visible.get(place.key)
        return visible is not None and access_filter.Memberships.of_chunk(visible.chunk).match(
            query.query.filters
        )

    def _read_chunks(self, rankings: Sequence[Ranking]) -> None:
        """Read chunks with their records, and cosines that are still unknown, in one request."""
        wanted = sorted({place.key for ranking in rankings for place in ranking})
        queries = {
            ("chunks", n): body
            for n, body in enumerate(chunk_lookup.chunk_queries(wanted, self._readers))
        }
        queries |= {("cosines", n): body for n, body in self._cosine_queries(rankings)}
        responses = self._search.run(queries)
        self._visible.update(
            access_filter.read_visible(
                response for (kind, _), response in responses.items() if kind == "chunks"
            )
        )
        for (kind, number), response in responses.items():
            self._partial |= response.partial
            if kind == "cosines":
                self._cosines[number].update(self._retriever.read_cosines(response))

    def _cosine_queries(self, rankings: Sequence[Ranking]) -> Iterator[tuple[int, Body]]:
        """Yield queries for the cosines that hits do not have yet.

        Every hit has its cosine, however it was retrieved, so that the evidence of hits is comparable.
        """
        for number, (query, ranking) in enumerate(
            zip(self._retriever.queries, rankings, strict=True)
        ):
            ids = [place.key for place in ranking if place.cosine is None]
            if query.vector is not None and ids:
                yield number, query_bodies.cosine_query(ids, query.vector)

    def _to_found(self, rankings: Sequence[Ranking]) -> Found:
        hits = [tuple(self._hits(number, ranking)) for number, ranking in enumerate(rankings)]
        return Found(tuple(hits), self._partial)

    def _hits(self, number: int, ranking: Ranking) -> Iterator[Hit]:
        query, cosines = self._retriever.queries[number], self._cosines[number]
        words = hybrid_ranking.pad_words(query.words)
        found = [place for place in ranking if self._is_shown(query, place)]
        shares = [
            hybrid_ranking.compute_word_share(words, self._visible[place.key].words)
            for place in found
        ]
        evidence = [
            place.evidence(cosines.get(place.key), share)
            for place, share in zip(found, shares, strict=True)
        ]
        ordered = hybrid_ranking.order_by_evidence(
            list(zip(found, evidence, strict=True)), Weighting.of_query(query.query)
        )
        for place, each in ordered:
            yield Hit(self._visible[place.key].chunk, place.score, each)


def _all(found: Candidates[str]) -> Iterator[str]:
    """Yield all candidates; some more than once."""
    return chain(found.keyword, found.vector, found.exact)
