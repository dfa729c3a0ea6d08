"""Combine a keyword leg and a vector leg into one ranking; pure, and the same for every index.

Each leg's raw scores become z-scores over the leg's own candidates, shifted by 3 and cut at 0; what a
leg did not find counts 0 there. The ranking is by the sum weighted with `alpha`, times the weight of the
candidate (its boost). Above this sum stands a tier: what holds exactly what was asked for comes first,
more of the exact terms before fewer. Fusing z-scores follows the standardised CombSUM of Montague and
Aslam, "Relevance score normalization for metasearch" (CIKM 2001).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from indexing.index.protocols import Evidence

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
    legs: "_Legs[Key]"

    @property
    def cosine(self) -> float | None:
        """`None` where the vector leg did not find it."""
        return self.legs.found.vector.get(self.key)

    def evidence(self, cosine: float | None, word_share: float) -> Evidence:
        """What the legs tell of it; `cosine` is for what the vector leg did not find."""
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


def candidates(size: int) -> int:
    """How many each leg is asked for, where `size` hits are wanted."""
    return max(CANDIDATES, size)


def ranked(
    found: Candidates[Key], alpha: float, size: int, weights: Mapping[Key, float]
) -> list[Placed[Key]]:
    """The best `size` candidates, best first; equals by the rank of the exact leg, then by key.

    `weights` multiply the scores of the candidates that they name; 1 is neutral.
    """
    scores = _combined(found, alpha)
    for key in weights.keys() & scores.keys():
        scores[key] *= weights[key]
    legs = _Legs(found, _Ranks.of(found))
    best = sorted(_leading(found, scores, size), key=legs.order(scores))
    return [Placed(key, scores[key], legs) for key in best[:size]]


def _combined(found: Candidates[Key], alpha: float) -> dict[Key, float]:
    """The weighted sum of what each leg says of a candidate."""
    scores = dict.fromkeys(found.exact, 0.0)
    for share, leg in ((1.0 - alpha, found.keyword), (alpha, found.vector)):
        for key, score in zip(leg, _standardised(leg.values()), strict=True):
            scores[key] = scores.get(key, 0.0) + share * score
    return scores


def _leading(found: Candidates[Key], scores: Mapping[Key, float], size: int) -> list[Key]:
    """The `size` best of the sum with their equals, and all of the exact leg; to sort all takes longer."""
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
    def of(cls, found: Candidates[Key]) -> "_Ranks[Key]":
        return cls(
            _ranks(found.keyword),
            _ranks(found.vector),
            _ranks({key: (match.terms, match.score) for key, match in found.exact.items()}),
        )


def _ranks(leg: Mapping[Key, float] | Mapping[Key, tuple[int, float]]) -> dict[Key, int]:
    """Counted from 1, equals by key."""
    # To sort by key takes longer than all the rest, and mostly there are no equals.
    keys = leg if len(set(leg.values())) == len(leg) else sorted(leg)
    order = sorted(keys, key=leg.__getitem__, reverse=True)
    return dict(zip(order, range(1, len(order) + 1), strict=True))


@dataclass(frozen=True, slots=True)
class _Legs(Generic[Key]):
    """What all places of one ranking share."""

    found: Candidates[Key]
    ranks: _Ranks[Key]

    def order(self, scores: Mapping[Key, float]) -> Callable[[Key], tuple[int, float, int, Key]]:
        """To sort by: more exact terms, the higher score, the better match of the terms, the key."""
        exact, ranks, last = self.found.exact, self.ranks.exact, len(scores)
        if not exact:
            return lambda key: (0, -scores[key], last, key)
        return lambda key: (
            -exact[key].terms if key in exact else 0,
            -scores[key],
            ranks.get(key, last),
            key,
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
    return sum(map(spaced.__contains__, words)) / len(words) if words else 0.0


def _standardised(scores: Iterable[float]) -> list[float]:
    """Shifted z-scores, none below zero. Where all scores are equal each counts as the mean."""
    scores = list(scores)
    mean, deviation = _mean_and_deviation(scores)
    if deviation == 0.0:
        return [SHIFT] * len(scores)
    standard = [(score - mean) / deviation + SHIFT for score in scores]
    return [each if each > 0.0 else 0.0 for each in standard]


def _mean_and_deviation(scores: Iterable[float]) -> tuple[float, float]:
    # Sorted, because the sum of floats depends a little on their order.
    ordered = sorted(scores)
    if not ordered:
        return 0.0, 0.0
    mean, least, most = sum(ordered) / len(ordered), ordered[0], ordered[-1]
    # Scores that differ by rounding alone are one score; measured by it they would seem far apart.
    if most - least <= 1e-6 * max(abs(least), abs(most)):
        return mean, 0.0
    return mean, math.dist(ordered, [mean] * len(ordered)) / math.sqrt(len(ordered))
