"""Rankings of several variants to one ranking."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from backend.search.events import VariantQuery
from backend.search.sections import Leg, RankedChunk, Why
from indexing.index import Evidence, Hit

RRF_K = 50


@dataclass(frozen=True, slots=True)
class VariantRanking:
    variant: VariantQuery
    hits: tuple[Hit, ...]
    """Best first."""


@dataclass(frozen=True, slots=True)
class _Place:
    rank: int
    """Counted from 1."""
    order: int
    """Of the variant among the variants."""
    variant: VariantQuery
    hit: Hit


_Order: TypeAlias = tuple[int, float, int, int]


def weighted_reciprocal_rank_fusion(
    rankings: Sequence[VariantRanking], k: int = RRF_K
) -> list[RankedChunk]:
    """Each chunk scores the sum of weight / (k + rank) over the rankings that hold it.

    Chunks with more of the exact terms stand above those with fewer, whatever they score. Ties go
    to the better best rank, then to the earlier variant.

    Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank
    Learning Methods, SIGIR 2009; here with a weight for each ranking.
    """
    places: dict[tuple[str, int], list[_Place]] = {}
    for order, ranking in enumerate(rankings):
        for rank, hit in enumerate(ranking.hits, start=1):
            place = _Place(rank, order, ranking.variant, hit)
            places.setdefault(hit.chunk.key, []).append(place)
    fused = [_fused(of_chunk, k) for of_chunk in places.values()]
    fused.sort(key=lambda pair: pair[0])
    return [ranked for _, ranked in fused]


def _fused(places: list[_Place], k: int) -> tuple[_Order, RankedChunk]:
    # fsum is exact: the score must not depend on the order in which variants arrived.
    score = math.fsum(place.variant.weight / (k + place.rank) for place in places)
    evidence = strongest([place.hit.evidence for place in places])
    why = tuple(reason for place in places for reason in _reasons(place))
    best_rank, first_order = min((place.rank, place.order) for place in places)
    ranked = RankedChunk(places[0].hit.chunk, score, evidence, why)
    return (-evidence.exact, -score, best_rank, first_order), ranked


def _reasons(place: _Place) -> Iterable[Why]:
    evidence, variant = place.hit.evidence, place.variant
    ranks: tuple[tuple[Leg, int | None], ...] = (
        ("exact", evidence.exact_rank),
        ("vector", evidence.vector_rank),
        ("keyword", evidence.keyword_rank),
    )
    for leg, rank in ranks:
        if rank is not None:
            yield Why(variant.name, variant.text, leg, rank)


def strongest(evidences: Sequence[Evidence]) -> Evidence:
    """The best of each figure: the raw grounds on which "nothing answers this" is decided."""
    if len(evidences) == 1:
        return evidences[0]
    return Evidence(
        cosine=_most(one.cosine for one in evidences),
        bm25=_most(one.bm25 for one in evidences),
        word_share=max(one.word_share for one in evidences),
        exact=max(one.exact for one in evidences),
        vector_rank=_first(one.vector_rank for one in evidences),
        keyword_rank=_first(one.keyword_rank for one in evidences),
        exact_rank=_first(one.exact_rank for one in evidences),
    )


def _most(figures: Iterable[float | None]) -> float | None:
    return max((figure for figure in figures if figure is not None), default=None)


def _first(ranks: Iterable[int | None]) -> int | None:
    return min((rank for rank in ranks if rank is not None), default=None)
