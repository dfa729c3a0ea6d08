"""Rankings of several variants to one ranking."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, TypeAlias

from backend.search.events import VariantQuery
from backend.search.models import RankedChunk, Why
from indexing.index.protocols import Evidence, Hit

RRF_K = 50


@dataclass(frozen=True, slots=True)
class VariantRanking:
    variant: VariantQuery
    hits: tuple[Hit, ...]
    """Best first."""


class _Place(NamedTuple):
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
    evidence = strongest(place.hit.evidence for place in places)
    why = tuple(reason for place in places for reason in _reasons(place))
    ranked = RankedChunk(places[0].hit.chunk, score, evidence, why)
    first = min(places, key=lambda place: (place.rank, place.order))
    return (-evidence.exact, -score, first.rank, first.order), ranked


def _reasons(place: _Place) -> Iterator[Why]:
    name, query, evidence = place.variant.name, place.variant.text, place.hit.evidence
    if evidence.exact_rank is not None:
        yield Why(name, query, "exact", evidence.exact_rank)
    if evidence.vector_rank is not None:
        yield Why(name, query, "vector", evidence.vector_rank)
    if evidence.keyword_rank is not None:
        yield Why(name, query, "keyword", evidence.keyword_rank)


def strongest(evidences: Iterable[Evidence]) -> Evidence:
    """The best of each figure: the raw grounds on which "nothing answers this" is decided."""
    return reduce(_stronger, evidences)


def _stronger(one: Evidence, other: Evidence) -> Evidence:
    return Evidence(
        cosine=_higher(one.cosine, other.cosine),
        bm25=_higher(one.bm25, other.bm25),
        word_share=max(one.word_share, other.word_share),
        exact=max(one.exact, other.exact),
        vector_rank=_earlier(one.vector_rank, other.vector_rank),
        keyword_rank=_earlier(one.keyword_rank, other.keyword_rank),
        exact_rank=_earlier(one.exact_rank, other.exact_rank),
    )


def _higher(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _earlier(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
