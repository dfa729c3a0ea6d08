"""Combine a keyword leg and a vector leg into one ranking; pure, and the same for every index.

Each leg's raw scores become z-scores over the leg's own candidates, shifted by 3 and cut at 0; what a
leg did not find counts 0 there. The ranking is by the sum weighted with `alpha`, times the weight of the
candidate (its boost). Above this sum stands a tier: what holds exactly what was asked for comes first,
more of the exact terms before fewer. Fusing z-scores follows the standardised CombSUM of Montague and
Aslam, "Relevance score normalization for metasearch" (CIKM 2001).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from indexing.index import Evidence

CANDIDATES = 200
"""Of each leg. More candidates steady the mean and the deviation that the scores are measured by."""

SHIFT = 3.0
"""Nearly every candidate lies within three deviations of the mean, so hardly one is cut."""

Key = TypeVar("Key", int, str)


@dataclass(frozen=True, slots=True)
class ExactMatch:
    terms: int
    """How many of the query's exact terms the candidate holds, at least 1."""
    score: float
    """Orders matches of equally many terms; from the index, compares within one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates(Generic[Key]):
    """What each leg of one query found, by raw score. The order of entries means nothing."""

    keyword: Mapping[Key, float] = field(default_factory=dict)
    vector: Mapping[Key, float] = field(default_factory=dict)
    exact: Mapping[Key, ExactMatch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placed(Generic[Key]):
    key: Key
    score: float
    evidence: Evidence


def ranked(
    candidates: Candidates[Key], alpha: float, size: int, weight: Callable[[Key], float]
) -> list[Placed[Key]]:
    """The best `size` candidates, best first; equals by the rank of the exact leg, then by key.

    `weight` multiplies the score of a candidate; 1 is neutral.
    """
    keyword = _standardised(candidates.keyword)
    vector = _standardised(candidates.vector)
    exact_ranks = _ranks(candidates.exact, lambda match: (match.terms, match.score))
    scores = {
        key: weight(key) * (alpha * vector.get(key, 0.0) + (1.0 - alpha) * keyword.get(key, 0.0))
        for key in candidates.keyword.keys() | candidates.vector.keys() | exact_ranks.keys()
    }

    def place(key: Key) -> tuple[int, float, float, Key]:
        match = candidates.exact.get(key)
        return -(match.terms if match else 0), -scores[key], exact_ranks.get(key, math.inf), key

    keyword_ranks = _ranks(candidates.keyword, lambda score: score)
    vector_ranks = _ranks(candidates.vector, lambda score: score)
    return [
        Placed(
            key,
            scores[key],
            Evidence(
                cosine=candidates.vector.get(key),
                bm25=candidates.keyword.get(key),
                exact=candidates.exact[key].terms if key in candidates.exact else 0,
                vector_rank=vector_ranks.get(key),
                keyword_rank=keyword_ranks.get(key),
                exact_rank=exact_ranks.get(key),
            ),
        )
        for key in sorted(scores, key=place)[:size]
    ]


def _standardised(scores: Mapping[Key, float]) -> dict[Key, float]:
    """Shifted z-scores, none below zero. Where all scores are equal each counts as the mean."""
    mean, deviation = _mean_and_deviation(scores.values())
    if deviation == 0.0:
        return dict.fromkeys(scores, SHIFT)
    return {key: max(0.0, (score - mean) / deviation + SHIFT) for key, score in scores.items()}


def _mean_and_deviation(scores: Iterable[float]) -> tuple[float, float]:
    values = sorted(scores)
    if not values or values[0] == values[-1]:
        return 0.0, 0.0
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    # Scores that differ by rounding alone are one score; measured by it they would seem far apart.
    noise = 1e-6 * max(abs(values[0]), abs(values[-1]))
    return mean, deviation if values[-1] - values[0] > noise else 0.0


_Value = TypeVar("_Value")


def _ranks(
    found: Mapping[Key, _Value], order: Callable[[_Value], float | tuple[int, float]]
) -> dict[Key, int]:
    best_first = sorted(sorted(found), key=lambda key: order(found[key]), reverse=True)
    return {key: rank for rank, key in enumerate(best_first, start=1)}
