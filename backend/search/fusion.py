"""Fuse the rankings of several variants into one ranking, and group its chunks into sections."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, TypeAlias

from backend.search.models import InferenceSection, VariantQuery
from indexing.index.protocols import Evidence, Hit, RankReason

RRF_K = 50


@dataclass(frozen=True, slots=True)
class VariantRanking:
    variant: VariantQuery
    hits: tuple[Hit, ...]
    """Best first."""


class _Placement(NamedTuple):
    """Where one variant ranks a chunk."""

    rank: int
    """Counted from 1."""
    order: int
    """Of the variant among the variants."""
    variant: VariantQuery
    hit: Hit


_SortKey: TypeAlias = tuple[int, float, int, int]
_HitAt: TypeAlias = tuple[int, Hit]
"""A hit and its place in the ranking."""


def weighted_reciprocal_rank_fusion(
    rankings: Sequence[VariantRanking], k: int = RRF_K
) -> list[Hit]:
    """Rank each chunk by the sum of weight / (k + rank) over the rankings that contain it.

    Chunks with more of the exact terms rank above those with fewer, whatever they score. Ties go
    to the better best rank, then to the earlier variant.

    Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank
    Learning Methods, SIGIR 2009; here with a weight for each ranking.
    """
    placements: dict[tuple[str, int], list[_Placement]] = {}
    for order, ranking in enumerate(rankings):
        for rank, hit in enumerate(ranking.hits, start=1):
            placement = _Placement(rank, order, ranking.variant, hit)
            placements.setdefault(hit.chunk.key, []).append(placement)
    fused = [_fuse_placements(of_chunk, k) for of_chunk in placements.values()]
    # No two keys are equal: only one chunk has a certain rank in a certain variant.
    return [hit for _, hit in sorted(fused)]


def _fuse_placements(placements: list[_Placement], k: int) -> tuple[_SortKey, Hit]:
    # fsum is exact: the score must not depend on the order in which variants arrived, else equal
    # chunks would be ordered by rounding errors instead of by rank.
    score = math.fsum(each.variant.weight / (k + each.rank) for each in placements)
    evidence = combine_evidence(each.hit.evidence for each in placements)
    why = tuple(reason for each in placements for reason in _explain(each))
    hit = Hit(placements[0].hit.chunk, score, evidence, why)
    first = min(placements)
    # The exact tier comes before the score: a rewritten query knows nothing of the code or phrase
    # that the user wrote, and must not outvote a chunk that contains it.
    return (-evidence.exact, -score, first.rank, first.order), hit


def _explain(placement: _Placement) -> Iterator[RankReason]:
    variant, evidence = placement.variant, placement.hit.evidence
    if evidence.exact_rank is not None:
        yield RankReason(variant.name, variant.text, "exact", evidence.exact_rank)
    if evidence.vector_rank is not None:
        yield RankReason(variant.name, variant.text, "vector", evidence.vector_rank)
    if evidence.keyword_rank is not None:
        yield RankReason(variant.name, variant.text, "keyword", evidence.keyword_rank)


def combine_evidence(evidences: Iterable[Evidence]) -> Evidence:
    """Take the best of each figure.

    Whether anything answers at all is decided on these raw figures: a fused score only
    compares chunks of one search.
    """
    return reduce(_combine_two, evidences)


def _combine_two(one: Evidence, other: Evidence) -> Evidence:
    return Evidence(
        cosine=_max_known(one.cosine, other.cosine),
        bm25=_max_known(one.bm25, other.bm25),
        word_share=max(one.word_share, other.word_share),
        exact=max(one.exact, other.exact),
        vector_rank=_min_known(one.vector_rank, other.vector_rank),
        keyword_rank=_min_known(one.keyword_rank, other.keyword_rank),
        exact_rank=_min_known(one.exact_rank, other.exact_rank),
    )


def _max_known(*figures: float | None) -> float | None:
    return max((figure for figure in figures if figure is not None), default=None)


def _min_known(*ranks: int | None) -> int | None:
    return min((rank for rank in ranks if rank is not None), default=None)


def merge_individual_chunks(hits: Iterable[Hit]) -> list[InferenceSection]:
    """Join consecutive chunks of a document into a section at its best chunk's place.

    `hits` are best first. Every chunk of them is in exactly one section.
    """
    places: dict[tuple[str, int], _HitAt] = {}
    for place, hit in enumerate(hits):
        places.setdefault(hit.chunk.key, (place, hit))
    in_reading_order = [places[key] for key in sorted(places)]
    sections = map(_join_run, _split_runs(in_reading_order))
    return [section for _, section in sorted(sections)]


def _split_runs(hits: Iterable[_HitAt]) -> Iterator[list[_HitAt]]:
    """Yield the longest runs of chunks of one document without gaps."""
    run: list[_HitAt] = []
    for place, hit in hits:
        document_id, position = hit.chunk.key
        if run and run[-1][1].chunk.key != (document_id, position - 1):
            yield run
            run = []
        run.append((place, hit))
    if run:
        yield run


def _join_run(run: list[_HitAt]) -> tuple[int, InferenceSection]:
    by_place = sorted(run)
    place, best = by_place[0]
    chunks = tuple(hit.chunk for _, hit in run)
    return place, InferenceSection(chunks, best, tuple(hit for _, hit in by_place))
