"""Combine a keyword leg and a vector leg into one ranking; pure functions, shared by both engines.

Each leg's raw scores become shares of its best: keyword scores counted from 0, cosines from what unrelated texts
have with the embedder. A candidate that a leg did not find scores 0 there. Candidates are ranked by the sum of both,
weighted with `alpha`, times the candidate's weight (its boost). Exact matches form a tier above this sum: candidates
that contain more of the query's exact terms come first. It is the convex combination of Bruch, Gai and Ingber,
"An Analysis of Fusion Functions for Hybrid Retrieval" (TOIS 2023), with a measured lower bound of the cosines.

Shares of the best hide how good the best is. So once the texts of the best are known, `order_by_evidence` gives a leg
the more weight the better its own best is: the nearest passage between unrelated and related texts, or the passage with
most of the query's words.

Candidates with equal keyword scores and nearly equal cosines are mostly copies of one text that differ in a
name or a number. Which of them is a little nearer to the query says nothing about which is right, so they
share a vector score and keep the order of the keyword leg.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Generic, TypeVar

from indexing.embedding.language_support import CosineScale
from indexing.index.protocols import Evidence, IndexQuery
from indexing.text.analysis import QueryWord

CANDIDATES = 200
"""Per leg."""

BEST = 10
"""First hits whose evidence is that of the query: one right passage among them shows what a leg is worth."""

NEAR = 0.75
"""Deviations within which the cosines of candidates with equal keyword scores count as equal."""
ROUNDING = 1e-6
"""Relative difference below which two scores differ by rounding alone."""

COMMON_SHARE = 0.05
COMMON_COUNT = 50

Key = TypeVar("Key", int, str)


@dataclass(frozen=True, slots=True)
class ExactMatch:
    terms: int
    """Number of the query's exact terms that the candidate contains, at least 1."""
    score: float
    """Orders candidates with the same number of terms; comparable within one query only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates(Generic[Key]):
    """Raw scores of what each leg of one query found. The order of entries has no meaning."""

    keyword: Mapping[Key, float] = field(default_factory=dict)
    vector: Mapping[Key, float] = field(default_factory=dict)
    exact: Mapping[Key, ExactMatch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Weighting:
    """How much the vector leg of a query counts."""

    alpha: float
    """Share of the vector leg, 0 to 1."""
    scale: CosineScale
    """What cosines of the embedder mean."""

    @classmethod
    def of_query(cls, query: IndexQuery) -> "Weighting":
        return cls(query.alpha, query.scale)

    def adjust(self, evidence: Sequence[Evidence]) -> "Weighting":
        """Return the weighting by the evidence of the best hits: legs that found equally much keep their shares."""
        cosine = max((one.cosine for one in evidence if one.cosine is not None), default=0.0)
        vector = self.alpha * self.scale.strength(cosine)
        keyword = (1.0 - self.alpha) * max((one.word_share for one in evidence), default=0.0)
        return replace(self, alpha=vector / (vector + keyword)) if vector + keyword else self


@dataclass(frozen=True, slots=True)
class RankedCandidate(Generic[Key]):
    key: Key
    score: float
    legs: "_Legs[Key]"

    @property
    def cosine(self) -> float | None:
        """The raw cosine, `None` if the vector leg did not find it."""
        return self.legs.found.vector.get(self.key)

    def evidence(self, cosine: float | None, word_share: float) -> Evidence:
        """Collect the raw scores and ranks; `cosine` is used if the vector leg did not find it."""
        found, ranks, key = self.legs.found, self.legs.ranks, self.key
        return Evidence(
            cosine=found.vector.get(key, cosine),
            bm25=found.keyword.get(key),
            word_share=word_share,
            exact=found.exact[key].terms if key in found.exact else 0,
            vector_rank=ranks.vector.get(key),
            keyword_rank=ranks.keyword.get(key),
            exact_rank=ranks.exact.get(key),
        )


def candidates_per_leg(size: int) -> int:
    """Return how many candidates each leg must find for `size` hits."""
    return max(CANDIDATES, size)


def rank_candidates(
    found: Candidates[Key], weighting: Weighting, size: int, boosts: Mapping[Key, float]
) -> list[RankedCandidate[Key]]:
    """Return the best `size` candidates, best first; ties go by the rank in the exact leg, then by key.

    `boosts` multiply the scores of the candidates they name; 1 is neutral.
    """
    legs = _Legs.of_candidates(found, weighting, boosts)
    scores = legs.combine_scores({**found.keyword, **found.vector, **found.exact}, weighting.alpha)
    best = sorted(_preselect(found, scores, size), key=legs.sort_key(scores))
    return [RankedCandidate(key, scores[key], legs) for key in best[:size]]


def order_by_evidence(
    ranking: Sequence[tuple[RankedCandidate[Key], Evidence]], weighting: Weighting
) -> list[tuple[RankedCandidate[Key], Evidence]]:
    """Order the hits of one query anew, with the weights that the evidence of the best gives its legs."""
    if not ranking:
        return []
    adjusted = weighting.adjust([evidence for _, evidence in ranking[:BEST]])
    legs = ranking[0][0].legs
    scores = legs.combine_scores([place.key for place, _ in ranking], adjusted.alpha)
    sort_key = legs.sort_key(scores)
    return [
        (replace(place, score=scores[place.key]), evidence)
        for place, evidence in sorted(ranking, key=lambda one: sort_key(one[0].key))
    ]


def _scale_keyword(leg: Mapping[Key, float]) -> dict[Key, float]:
    best = max(leg.values(), default=0.0)
    return {key: max(0.0, score) / best if best > 0.0 else 0.0 for key, score in leg.items()}


def _scale_vector(leg: Mapping[Key, float], scale: CosineScale) -> dict[Key, float]:
    best = max(leg.values(), default=0.0) - scale.unrelated
    return {
        key: max(0.0, cosine - scale.unrelated) / best if best > 0.0 else 0.0
        for key, cosine in leg.items()
    }


def _share_near_scores(
    vector: Mapping[Key, float], keyword: Mapping[Key, float]
) -> Mapping[Key, float]:
    """Give near candidates that the keyword leg scores equally the cosine of the nearest of them."""
    near = NEAR * _deviation(vector.values())
    shared = dict(vector)
    for equals in _group_equal_scores({key: keyword[key] for key in vector if key in keyword}):
        best = math.inf
        for key in sorted(equals, key=vector.__getitem__, reverse=True):
            if best - vector[key] > near:
                best = vector[key]
            shared[key] = best
    return shared


def _group_equal_scores(leg: Mapping[Key, float]) -> Iterator[list[Key]]:
    """Yield the keys of each score that several candidates have, up to rounding."""
    order = sorted(leg, key=leg.__getitem__, reverse=True)
    tolerance = ROUNDING * max(map(abs, leg.values()), default=0.0)
    equals = order[:1]
    for key, following in pairwise(order):
        if leg[key] - leg[following] > tolerance:
            if len(equals) > 1:
                yield equals
            equals = []
        equals.append(following)
    if len(equals) > 1:
        yield equals


def _preselect(found: Candidates[Key], scores: Mapping[Key, float], size: int) -> list[Key]:
    """Return the best `size` by score with their ties, and the whole exact leg; sorting all takes longer."""
    if len(scores) <= size:
        return list(scores)
    floor = sorted(scores.values())[-size]
    return [key for key, score in scores.items() if score >= floor or key in found.exact]


@dataclass(frozen=True, slots=True)
class _Ranks(Generic[Key]):
    keyword: Mapping[Key, int]
    vector: Mapping[Key, int]
    exact: Mapping[Key, int]

    @classmethod
    def of_candidates(cls, found: Candidates[Key]) -> "_Ranks[Key]":
        return cls(
            _rank_leg(found.keyword),
            _rank_leg(found.vector),
            _rank_leg({key: (match.terms, match.score) for key, match in found.exact.items()}),
        )


def _rank_leg(leg: Mapping[Key, float] | Mapping[Key, tuple[int, float]]) -> dict[Key, int]:
    """Number the candidates of a leg from 1, ties by key."""
    # Sorting by key takes longer than everything else, and mostly there are no ties.
    keys = leg if len(set(leg.values())) == len(leg) else sorted(leg)
    order = sorted(keys, key=leg.__getitem__, reverse=True)
    return dict(zip(order, range(1, len(order) + 1), strict=True))


@dataclass(frozen=True, slots=True)
class _Legs(Generic[Key]):
    """What all candidates of one ranking share."""

    found: Candidates[Key]
    ranks: _Ranks[Key]
    keyword: Mapping[Key, float]
    """Scores as shares of the best."""
    vector: Mapping[Key, float]
    """The same; near candidates share a score where words count at all."""
    boosts: Mapping[Key, float]

    @classmethod
    def of_candidates(
        cls, found: Candidates[Key], weighting: Weighting, boosts: Mapping[Key, float]
    ) -> "_Legs[Key]":
        cosines = found.vector
        if weighting.alpha < 1.0:
            cosines = _share_near_scores(cosines, found.keyword)
        return cls(
            found,
            _Ranks.of_candidates(found),
            _scale_keyword(found.keyword),
            _scale_vector(cosines, weighting.scale),
            boosts,
        )

    def combine_scores(self, keys: Iterable[Key], alpha: float) -> dict[Key, float]:
        """Return the boosted sum of both legs for each key."""
        return {
            key: self.boosts.get(key, 1.0)
            * ((1.0 - alpha) * self.keyword.get(key, 0.0) + alpha * self.vector.get(key, 0.0))
            for key in keys
        }

    def sort_key(
        self, scores: Mapping[Key, float]
    ) -> Callable[[Key], tuple[int, float, int, int, Key]]:
        """Sort by number of exact terms, score, rank in the exact leg, key; what scores nothing by its cosine."""
        exact, ranks, last = self.found.exact, self.ranks, len(scores)
        return lambda key: (
            -exact[key].terms if key in exact else 0,
            -scores[key],
            ranks.exact.get(key, last),
            0 if scores[key] else ranks.vector.get(key, last),
            key,
        )


def is_too_common(holders: int, chunks: int) -> bool:
    """Return whether a code-like word is too common to single out any chunk: `holders` of all `chunks` contain it.

    A word such as `2026` or `v2` in half of a corpus would rank that half above everything else in the
    question. Quoted phrases are not checked: a user who quotes a common phrase means it.
    """
    return holders > COMMON_COUNT and holders > COMMON_SHARE * chunks


def compute_word_share(words: Collection[QueryWord], held: str) -> float:
    """Return the share of `words` of which a form, padded with a space on both sides, occurs in `held`."""
    spaced = f" {held} "
    found = [any(map(spaced.__contains__, forms)) for forms in words]
    return sum(found) / len(words) if words else 0.0


def pad_words(words: Iterable[QueryWord]) -> list[QueryWord]:
    """Return the distinct words as `compute_word_share` compares them."""
    return [tuple(f" {form} " for form in word) for word in frozenset(words)]


def _deviation(scores: Iterable[float]) -> float:
    # Sorted, because a sum of floats depends a little on their order.
    ordered = sorted(scores)
    if not ordered:
        return 0.0
    mean = sum(ordered) / len(ordered)
    return math.dist(ordered, [mean] * len(ordered)) / math.sqrt(len(ordered))
