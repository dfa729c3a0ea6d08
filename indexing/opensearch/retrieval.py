"""The legs of all queries of one call: words, vectors and exact terms, asked for in one request."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from connectors.document import Readers
from indexing.index import hybrid_ranking
from indexing.index.hybrid_ranking import Candidates, ExactMatch, is_too_common
from indexing.index.protocols import IndexQuery
from indexing.opensearch import query_bodies, score_conversion
from indexing.opensearch.mapping import Body, Search, VectorSettings
from indexing.opensearch.search_requests import Answer, Searches
from indexing.text import tokenizer

CHECKED = 100
"""Candidates of the exact leg whose text is read: twice as many as a query usually asks for."""

Leg: TypeAlias = tuple[Literal["keyword", "vector", "exact"], int] | tuple[Literal["holders"], str]
"""With the number of its query; with a term, how many chunks hold that; with none, how many there are."""
EVERYTHING = ""
_NEUTRAL = [1.0]
"""As a column of an answer has it."""


@dataclass(frozen=True, slots=True)
class Scales:
    """What turns the cluster's scores to figures that compare with those of other indexes."""

    bm25: float
    product: float

    def cosine(self, score: float) -> float:
        return score_conversion.product(score) / self.product


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, made ready."""

    query: IndexQuery
    words: list[str]
    vector: list[float] | list[int] | None
    scope: list[Body]
    """What the asker may see through the query's filters."""
    terms: tuple[str, ...]
    """The exact terms that hold a word at all."""

    @classmethod
    def of(cls, query: IndexQuery, readers: Readers, vectors: VectorSettings) -> "Asked":
        return cls(
            query,
            tokenizer.words(query.text),
            None if query.vector is None else score_conversion.asked(query.vector, vectors),
            query_bodies.conditions(readers, query.filters),
            tuple(term for term in query.exact if tokenizer.exact_words(term)),
        )

    def without(self, versions: Collection[str]) -> "Asked":
        return replace(self, scope=[*self.scope, query_bodies.none_of("version", versions)])


@dataclass(frozen=True, slots=True)
class Leads:
    """What the legs of all queries led to."""

    candidates: list[Candidates[str]]
    """Of each query, by chunk id."""
    boosts: Mapping[str, float]
    """Of chunks, by id, that have any."""
    common: frozenset[str]
    """Exact terms that too many chunks hold to name any of them."""
    partial: bool


@dataclass(frozen=True, slots=True)
class Legs:
    asked: Sequence[Asked]
    search: Search
    scales: Scales
    common: frozenset[str] = field(default=frozenset())
    """What is known of that from an earlier look."""

    def without(self, versions: Sequence[Collection[str]], common: frozenset[str]) -> "Legs":
        """The same; each query finds nothing of its `versions`, and is told what terms are `common`."""
        asked = [
            each.without(left_out) for each, left_out in zip(self.asked, versions, strict=True)
        ]
        return replace(self, asked=asked, common=common)

    def leads(self, searches: Searches) -> Leads:
        answers = searches.ask(dict(self._bodies()))
        common = self.common | _common(answers)
        # Seldom: it saves a request before the others wherever there is an exact term.
        answers |= searches.ask(dict(self._exact_again(common)))
        boosts: dict[str, float] = {}
        found = [
            self._candidates(number, answers, boosts, _telling(asked, common))
            for number, asked in enumerate(self.asked)
        ]
        return Leads(found, boosts, common, any(each.partial for each in answers.values()))

    def cosines(self, answer: Answer) -> Iterator[tuple[str, float]]:
        """By chunk id, of a search by `queries.cosines`."""
        for hit in answer.hits:
            yield hit["fields"]["chunk"][0], self.scales.cosine(hit["_score"])

    def _bodies(self) -> Iterator[tuple[Leg, Body]]:
        unsure: set[str] = set()
        for number, each in enumerate(self.asked):
            yield from self._legs(number, each)
            unsure.update(term for term in each.terms if _may_be_common(term))
        unsure -= self.common
        for term in sorted(unsure):
            held = query_bodies.holders(tokenizer.words(term), tokenizer.exact_words(term))
            yield ("holders", term), held
        if unsure:
            yield ("holders", EVERYTHING), query_bodies.chunk_count()

    def _legs(self, number: int, asked: Asked) -> Iterator[tuple[Leg, Body]]:
        query, wanted = asked.query, _wanted(asked.query.size)
        if asked.words and query.alpha < 1.0:
            yield ("keyword", number), query_bodies.keyword(asked.words, asked.scope, wanted)
        if asked.vector is not None and query.alpha > 0.0:
            look = query_bodies.nearest if self.search == "graph" else query_bodies.nearest_of_all
            yield ("vector", number), look(asked.vector, asked.scope, wanted)
        yield from _exact(number, asked, self.common)

    def _exact_again(self, common: frozenset[str]) -> Iterator[tuple[Leg, Body]]:
        """The exact legs that asked for terms which turned out to be common."""
        for number, asked in enumerate(self.asked):
            if not (common - self.common).isdisjoint(asked.terms):
                yield from _exact(number, asked, common)

    def _candidates(
        self,
        number: int,
        answers: Mapping[Leg, Answer],
        boosts: dict[str, float],
        terms: Sequence[str],
    ) -> Candidates[str]:
        keyword = _scored(answers.get(("keyword", number)), boosts)
        vector = _scored(answers.get(("vector", number)), boosts)
        factor, cosine = self.scales.bm25, self.scales.cosine
        return Candidates(
            keyword={chunk: score * factor for chunk, score in keyword.items()},
            vector={chunk: cosine(score) for chunk, score in vector.items()},
            exact=dict(_matches(answers.get(("exact", number)), terms, boosts)),
        )


def _wanted(size: int) -> int:
    return min(hybrid_ranking.candidates_per_leg(size), query_bodies.LARGEST)


def _exact(number: int, asked: Asked, common: frozenset[str]) -> Iterator[tuple[Leg, Body]]:
    phrases = [tokenizer.exact_words(term) for term in _telling(asked, common)]
    if phrases:
        size = min(max(CHECKED, asked.query.size), query_bodies.LARGEST)
        yield ("exact", number), query_bodies.exact(phrases, asked.words, asked.scope, size)


def _telling(asked: Asked, common: frozenset[str]) -> list[str]:
    return [term for term in asked.terms if term not in common]


def _may_be_common(term: str) -> bool:
    # Where nothing about the term itself is code-like it was quoted.
    return term in tokenizer.exact_terms(term)


def _common(answers: Mapping[Leg, Answer]) -> frozenset[str]:
    counts = {leg[1]: answer.total for leg, answer in answers.items() if leg[0] == "holders"}
    chunks = counts.pop(EVERYTHING, 0)
    return frozenset(
        str(term) for term, holders in counts.items() if is_too_common(holders, chunks)
    )


def _scored(answer: Answer | None, boosts: dict[str, float]) -> dict[str, float]:
    """The chunks of a leg with their scores; boosts that change something are noted."""
    found: dict[str, float] = {}
    for hit in answer.hits if answer else ():
        columns = hit["fields"]
        chunk = columns["chunk"][0]
        found[chunk] = hit["_score"]
        if columns["boost"] != _NEUTRAL:
            boosts[chunk] = columns["boost"][0]
    return found


def _matches(
    answer: Answer | None, terms: Sequence[str], boosts: dict[str, float]
) -> Iterator[tuple[str, ExactMatch]]:
    """What holds the terms not in its words only."""
    for hit in answer.hits if answer else ():
        text = hit["_source"]["place"]["embedded"]
        held = sum(tokenizer.holds(text, term) for term in terms)
        if held:
            boosts[hit["_id"]] = hit["fields"]["boost"][0]
            yield hit["_id"], ExactMatch(held, hit["_score"])
