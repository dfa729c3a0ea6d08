"""Combine a keyword leg and a vector leg into one ranking; pure, and the same for every index.

Each leg's raw scores become z-scores over the leg's own candidates, shifted by 3 and cut at 0; what a
leg did not find counts 0 there. The ranking is by the sum weighted with `alpha`, times the weight of the
candidate (its boost). Above this sum stands a tier: what holds exactly what was asked for comes first,
more of the exact terms before fewer. Fusing z-scores follows the standardised CombSUM of Montague and
Aslam, "Relevance score normalization for metasearch" (CIKM 2001).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from indexing.index import Evidence

CANDIDATES = 200
"""Of each leg. More candidates steady the mean and the deviation that the scores are measured by."""

SHIFT = 3.0
"""Nearly every candidate lies within three deviations of the mean, so hardly one is cut."""

COMMON_SHARE = 0.05
COMMON_COUNT = 50

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


def candidates(size: int) -> int:
    """How many each leg is asked for, where `size` hits are wanted."""
    return max(CANDIDATES, size)


def ranked(
    found: Candidates[Key], alpha: float, size: int, weight: Callable[[Key], float]
) -> list[Placed[Key]]:
    """The best `size` candidates, best first; equals by the rank of the exact leg, then by key.

    `weight` multiplies the score of a candidate; 1 is neutral.
    """
    scores = _combined(found, alpha, weight)
    ranks = _Ranks.of(found)
    order = sorted(scores)
    # Each sort keeps the order of the one before it among its equals.
    if found.exact:
        order.sort(key=lambda key: ranks.exact.get(key, len(scores)))
    order.sort(key=scores.__getitem__, reverse=True)
    if found.exact:
        order.sort(key=lambda key: -found.exact[key].terms if key in found.exact else 0)
    return [Placed(key, scores[key], _evidence(found, ranks, key)) for key in order[:size]]


def _combined(
    found: Candidates[Key], alpha: float, weight: Callable[[Key], float]
) -> dict[Key, float]:
    """The weighted sum of what each leg says of a candidate, times the candidate's weight."""
    scores = dict.fromkeys(found.exact, 0.0)
    for share, leg in ((1.0 - alpha, found.keyword), (alpha, found.vector)):
        for key, score in _standardised(leg).items():
            scores[key] = scores.get(key, 0.0) + share * score
    return {key: score * weight(key) for key, score in scores.items()}


@dataclass(frozen=True, slots=True)
class _Ranks(Generic[Key]):
    keyword: Mapping[Key, int]
    vector: Mapping[Key, int]
    exact: Mapping[Key, int]

    @classmethod
    def of(cls, found: Candidates[Key]) -> "_Ranks[Key]":
        return cls(
            _ranks([(-score, key) for key, score in found.keyword.items()]),
            _ranks([(-score, key) for key, score in found.vector.items()]),
            _ranks([((-m.terms, -m.score), key) for key, m in found.exact.items()]),
        )


def _ranks(
    scored: list[tuple[float, Key]] | list[tuple[tuple[int, float], Key]],
) -> dict[Key, int]:
    return {key: rank for rank, (_, key) in enumerate(sorted(scored), start=1)}


def _evidence(found: Candidates[Key], ranks: _Ranks[Key], key: Key) -> Evidence:
    return Evidence(
        cosine=found.vector.get(key),
        bm25=found.keyword.get(key),
        exact=found.exact[key].terms if key in found.exact else 0,
        vector_rank=ranks.vector.get(key),
        keyword_rank=ranks.keyword.get(key),
        exact_rank=ranks.exact.get(key),
    )


def is_common(holders: int, chunks: int) -> bool:
    """Whether a code-like word that `holders` of all `chunks` hold is too common to name any of them.

    A word such as `2026` or `v2` in half of a corpus would put that half above everything else that the
    question says. A quoted phrase is looked up however common it is: somebody took the trouble to quote it.
    """
    return holders > COMMON_COUNT and holders > COMMON_SHARE * chunks


def word_share(words: Sequence[str], held: str) -> float:
    """Of `words`, each with a space on both sides, that stand in `held`."""
    spaced = f" {held} "
    return sum([word in spaced for word in words]) / len(words) if words else 0.0


def _standardised(scores: Mapping[Key, float]) -> dict[Key, float]:
    """Shifted z-scores, none below zero. Where all scores are equal each counts as the mean."""
    values = np.fromiter(scores.values(), np.float64, len(scores))
    mean, deviation = _mean_and_deviation(values)
    if deviation == 0.0:
        return dict.fromkeys(scores, SHIFT)
    standard = np.maximum(0.0, (values - mean) / deviation + SHIFT)
    return dict(zip(scores, standard.tolist(), strict=True))


def _mean_and_deviation(values: NDArray[np.float64]) -> tuple[float, float]:
    # Sorted, because the sum of floats depends a little on their order.
    values = np.sort(values)
    if len(values) == 0:
        return 0.0, 0.0
    # Scores that differ by rounding alone are one score; measured by it they would seem far apart.
    noise = 1e-6 * max(abs(values[0]), abs(values[-1]))
    deviation = float(values.std()) if values[-1] - values[0] > noise else 0.0
    return float(values.mean()), deviation
