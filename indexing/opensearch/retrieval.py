"""Retrieves the candidates of all queries of one call: by words, vectors and exact terms, in one request."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from connectors.access import Readers
from indexing.index import hybrid_ranking
from indexing.index.hybrid_ranking import Candidates, ExactMatch, is_too_common
from indexing.index.protocols import IndexQuery
from indexing.opensearch import access_filter, query_bodies, score_conversion
from indexing.opensearch.mapping import Body, Search, VectorSettings
from indexing.opensearch.search_requests import MultiSearch, SearchResponse
from indexing.text import tokenizer
from indexing.text.analysis import NO_LANGUAGES, Analysis, Languages, QueryWord

EXACT_CANDIDATES = 100
"""Whose text is read for exact terms: twice as many as a query usually wants."""

SearchKey: TypeAlias = (
    tuple[Literal["keyword", "vector", "exact"], int] | tuple[Literal["count", "facet"], str]
)
"""What a search is for: a kind and the number of its query, a term whose chunks are counted, or a facet."""
ALL_CHUNKS = ""
"""The term of the search that counts all chunks."""
LANGUAGES: SearchKey = ("facet", "languages")
_NEUTRAL_BOOST = [1.0]
"""As a doc-value field contains it."""


@dataclass(frozen=True, slots=True)
class ScoreScales:
    """Converts the cluster's scores to those of other index engines."""

    bm25: float
    product: float

    def to_cosine(self, score: float) -> float:
        return score_conversion.score_to_product(score) / self.product


@dataclass(frozen=True, slots=True)
class Wording:
    """How the queries of one call are made into words."""

    analysis: Analysis
    readers: Readers
    languages: Languages = NO_LANGUAGES
    """Of the documents that the readers may see, as far as known."""

    def words(self, text: str) -> list[QueryWord]:
        return self.analysis.query_words(text, self.languages)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    query: IndexQuery
    words: list[QueryWord]
    vector: list[float] | list[int] | None
    conditions: list[Body]
    """What the user may see and the query's filters and conditions accept."""
    terms: tuple[str, ...]
    """The exact terms that contain a word."""

    @classmethod
    def of(cls, query: IndexQuery, wording: Wording, vectors: VectorSettings) -> "PreparedQuery":
        vector = query.vector
        return cls(
            query,
            wording.words(query.text),
            None if vector is None else score_conversion.to_query_vector(vector, vectors),
            [
                *access_filter.filter_conditions(wording.readers, query.filters),
                *query_bodies.text_conditions(query.conditions),
            ],
            tuple(term for term in query.exact if tokenizer.plain_words(term)),
        )

    def without(self, versions: Collection[str]) -> "PreparedQuery":
        return replace(
            self, conditions=[*self.conditions, access_filter.none_of("version", versions)]
        )


@dataclass(frozen=True, slots=True)
class RetrievedCandidates:
    candidates: list[Candidates[str]]
    """Of each query, by chunk id."""
    boosts: Mapping[str, float]
    """Of chunks, by id, that have one."""
    common_terms: frozenset[str]
    """Exact terms that too many chunks contain to identify any of them."""
    languages: Languages
    """Of the documents that the readers may see."""
    partial: bool


@dataclass(frozen=True, slots=True)
class Retriever:
    queries: Sequence[PreparedQuery]
    wording: Wording
    search: Search
    scales: ScoreScales
    common_terms: frozenset[str] = field(default=frozenset())
    """Those that an earlier retrieval has found."""

    def without(
        self, versions: Sequence[Collection[str]], common_terms: frozenset[str]
    ) -> "Retriever":
        """Return a retriever that excludes for each query its `versions`, and knows the common terms."""
        queries = [
            each.without(excluded) for each, excluded in zip(self.queries, versions, strict=True)
        ]
        return replace(self, queries=queries, common_terms=common_terms)

    def in_languages(self, languages: Languages) -> "Retriever":
        """Return a retriever of the same queries to documents in these languages."""
        wording = replace(self.wording, languages=languages)
        queries = [replace(each, words=wording.words(each.query.text)) for each in self.queries]
        return replace(self, queries=queries, wording=wording)

    def retrieve(self, search: MultiSearch) -> RetrievedCandidates:
        responses = search.run(dict(self._searches()))
        common = self.common_terms | _find_common_terms(responses)
        # Rarely needed: asking all at once saves a request wherever there is an exact term.
        responses |= search.run(dict(self._repeated_exact_searches(common)))
        boosts: dict[str, float] = {}
        found = [
            self._read_candidates(number, responses, boosts, _telling_terms(query, common))
            for number, query in enumerate(self.queries)
        ]
        partial = any(each.partial for each in responses.values())
        languages = frozenset(responses[LANGUAGES].facets.get("languages", ()))
        return RetrievedCandidates(found, boosts, common, languages, partial)

    def read_cosines(self, response: SearchResponse) -> Iterator[tuple[str, float]]:
        """Yield by chunk id the cosines of a `query_bodies.cosine_query`."""
        for hit in response.hits:
            yield hit["fields"]["chunk"][0], self.scales.to_cosine(hit["_score"])

    def _searches(self) -> Iterator[tuple[SearchKey, Body]]:
        yield LANGUAGES, query_bodies.languages_query(self.wording.readers)
        unsure: set[str] = set()
        for number, query in enumerate(self.queries):
            yield from self._searches_of(number, query)
            unsure.update(term for term in query.terms if _may_be_common(term))
        unsure -= self.common_terms
        for term in sorted(unsure):
            count = query_bodies.term_count_query(
                self.wording.words(term), tokenizer.plain_words(term)
            )
            yield ("count", term), count
        if unsure:
            yield ("count", ALL_CHUNKS), query_bodies.chunk_count_query()

    def _searches_of(
        self, number: int, prepared: PreparedQuery
    ) -> Iterator[tuple[SearchKey, Body]]:
        query, size = prepared.query, _candidate_count(prepared.query.size)
        if prepared.words and query.alpha < 1.0:
            body = query_bodies.keyword_query(prepared.words, prepared.conditions, size)
            yield ("keyword", number), body
        if prepared.vector is not None and query.alpha > 0.0:
            in_graph = self.search == "graph"
            find = query_bodies.graph_vector_query if in_graph else query_bodies.full_vector_query
            yield ("vector", number), find(prepared.vector, prepared.conditions, size)
        yield from _exact_search(number, prepared, self.common_terms)

    def _repeated_exact_searches(self, common: frozenset[str]) -> Iterator[tuple[SearchKey, Body]]:
        """Repeat the exact searches for terms that turned out to be common, without these."""
        for number, query in enumerate(self.queries):
            if not (common - self.common_terms).isdisjoint(query.terms):
                yield from _exact_search(number, query, common)

    def _read_candidates(
        self,
        number: int,
        responses: Mapping[SearchKey, SearchResponse],
        boosts: dict[str, float],
        terms: Sequence[str],
    ) -> Candidates[str]:
        keyword = _read_scores(responses.get(("keyword", number)), boosts)
        vector = _read_scores(responses.get(("vector", number)), boosts)
        return Candidates(
            keyword={chunk: score * self.scales.bm25 for chunk, score in keyword.items()},
            vector={chunk: self.scales.to_cosine(score) for chunk, score in vector.items()},
            exact=dict(_read_exact_matches(responses.get(("exact", number)), terms, boosts)),
        )


def _candidate_count(size: int) -> int:
    return min(hybrid_ranking.candidates_per_leg(size), query_bodies.MAX_HITS)


def _exact_search(
    number: int, prepared: PreparedQuery, common: frozenset[str]
) -> Iterator[tuple[SearchKey, Body]]:
    phrases = [tokenizer.plain_words(term) for term in _telling_terms(prepared, common)]
    if phrases:
        size = min(max(EXACT_CANDIDATES, prepared.query.size), query_bodies.MAX_HITS)
        body = query_bodies.exact_query(phrases, prepared.words, prepared.conditions, size)
        yield ("exact", number), body


def _telling_terms(query: PreparedQuery, common: frozenset[str]) -> list[str]:
    return [term for term in query.terms if term not in common]


def _may_be_common(term: str) -> bool:
    # A term that does not look like a code or an identifier was quoted by the user.
    return term in tokenizer.find_exact_terms(term)


def _find_common_terms(responses: Mapping[SearchKey, SearchResponse]) -> frozenset[str]:
    counts = {key[1]: response.total for key, response in responses.items() if key[0] == "count"}
    chunks = counts.pop(ALL_CHUNKS, 0)
    return frozenset(str(term) for term, count in counts.items() if is_too_common(count, chunks))


def _read_scores(response: SearchResponse | None, boosts: dict[str, float]) -> dict[str, float]:
    """Return the scores by chunk id, and collect boosts that are not neutral."""
    found: dict[str, float] = {}
    for hit in response.hits if response else ():
        fields = hit["fields"]
        chunk = fields["chunk"][0]
        found[chunk] = hit["_score"]
        if fields["boost"] != _NEUTRAL_BOOST:
            boosts[chunk] = fields["boost"][0]
    return found


def _read_exact_matches(
    response: SearchResponse | None, terms: Sequence[str], boosts: dict[str, float]
) -> Iterator[tuple[str, ExactMatch]]:
    """Yield the chunks whose text contains the terms themselves, not only their words."""
    for hit in response.hits if response else ():
        text = hit["_source"]["place"]["embedded"]
        matches = sum(tokenizer.contains_term(text, term) for term in terms)
        if matches:
            boosts[hit["_id"]] = hit["fields"]["boost"][0]
            yield hit["_id"], ExactMatch(matches, hit["_score"])
