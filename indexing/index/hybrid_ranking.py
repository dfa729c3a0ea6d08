"""Combine a keyword leg and a vector leg into one ranking; pure functions, shared by both engines.

Each leg's raw scores become z-scores over the leg's own candidates, shifted by 3 and cut off at 0; a
candidate that a leg did not find scores 0 there. Candidates are ranked by the sum of both, weighted with
`alpha`, times the candidate's weight (its boost). Exact matches form a tier above this sum: candidates that
contain more of the query's exact terms come first. Fusing z-scores follows the standardised CombSUM of
Montague and Aslam, "Relevance score normalization for metasearch" (CIKM 2001).

Candidates with equal keyword scores and nearly equal cosines are mostly copies of one text that differ in a
name or a number. Which of them is a little nearer to the query says nothing about which is right, so they
share a vector score and keep the order of the keyword leg.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

from indexing.index.protocols import Evidence
from indexing.text.analysis import QueryWord

CANDIDATES = 200
"""Per leg. More candidates make the mean and the deviation, on which the scores depend, more stable."""

SHIFT = 3.0
"""Nearly every candidate lies within three deviations of the mean, so hardly any is cut off."""

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
    found: Candidates[Key], alpha: float, size: int, weights: Mapping[Key, float]
) -> list[RankedCandidate[Key]]:
    """Return the best `size` candidates, best first; ties go by the rank in the exact leg, then by key.

    `weights` multiply the scores of the candidates they name; 1 is neutral.
    """
    scores = _combine_scores(found, alpha)
    for key in weights.keys() & scores.keys():
        scores[key] *= weights[key]
    legs = _Legs(found, _Ranks.of_candidates(found))
    best = sorted(_preselect(found, scores, size), key=legs.sort_key(scores))
    return [RankedCandidate(key, scores[key], legs) for key in best[:size]]


def _combine_scores(found: Candidates[Key], alpha: float) -> dict[Key, float]:
    """Return each candidate's weighted sum of standardised scores."""
    scores = dict.fromkeys(found.exact, 0.0)
    keyword, vector = _standardise_leg(found.keyword), _standardise_leg(found.vector)
    if alpha < 1.0:
        vector = _share_near_scores(vector, found.keyword)
    for share, leg in ((1.0 - alpha, keyword), (alpha, vector)):
        for key, score in leg.items():
            scores[key] = scores.get(key, 0.0) + share * score
    return scores


def _standardise_leg(leg: Mapping[Key, float]) -> dict[Key, float]:
    return dict(zip(leg, _standardise(leg.values()), strict=True))


def _share_near_scores(vector: dict[Key, float], keyword: Mapping[Key, float]) -> dict[Key, float]:
    """Give near candidates that the keyword leg scores equally the vector score of the best of them."""
    shared = dict(vector)
    for equals in _group_equal_scores({key: keyword[key] for key in vector if key in keyword}):
        best = math.inf
        for key in sorted(equals, key=vector.__getitem__, reverse=True):
            if best - vector[key] > NEAR:
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

    def sort_key(self, scores: Mapping[Key, float]) -> Callable[[Key], tuple[int, float, int, Key]]:
        """Sort by number of exact terms, score, rank in the exact leg, key."""
        exact, ranks, last = self.found.exact, self.ranks.exact, len(scores)
        if not exact:
            return lambda key: (0, -scores[key], last, key)
        return lambda key: (
            -exact[key].terms if key in exact else 0,
            -scores[key],
            ranks.get(key, last),
            key,
        )


def is_too_common(holders: int, chunks: int) -> bool:
    """Whether a code-like word, contained in `holders` of all `chunks`, is too common to single any of them out.

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


def _standardise(scores: Iterable[float]) -> list[float]:
    """Return shifted z-scores, none below zero; equal scores all become the mean."""
    scores = list(scores)
    mean, deviation = _mean_and_deviation(scores)
    if deviation == 0.0:
        return [SHIFT] * len(scores)
    standard = [(score - mean) / deviation + SHIFT for score in scores]
    return [each if each > 0.0 else 0.0 for each in standard]


def _mean_and_deviation(scores: Iterable[float]) -> tuple[float, float]:
    # Sorted, because a sum of floats depends a little on their order.
    ordered = sorted(scores)
    if not ordered:
        return 0.0, 0.0
    mean, least, most = sum(ordered) / len(ordered), ordered[0], ordered[-1]
    # Scores that differ by rounding alone count as equal; a deviation that small would tear them apart.
    if most - least <= ROUNDING * max(abs(least), abs(most)):
        return mean, 0.0
    return mean, math.dist(ordered, [mean] * len(ordered)) / math.sqrt(len(ordered))
