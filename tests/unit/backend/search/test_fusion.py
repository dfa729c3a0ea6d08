"""Fusion: the arithmetic, the ties, the exact tier, and what a chunk says of its rank."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.search.models import VariantQuery
from backend.search.retrieval import (
    VariantRanking,
    combine_evidence,
    weighted_reciprocal_rank_fusion,
)
from indexing.index.protocols import Evidence, Hit, RankReason, VariantName
from tests.support.search import chunk


def ranking(
    documents: str, weight: float = 1.0, name: VariantName = "original", exact: str = ""
) -> VariantRanking:
    """One hit for each letter; those of `exact` hold one exact term."""
    hits = tuple(Hit(chunk(one, 0), 0.0, Evidence(exact=int(one in exact))) for one in documents)
    return VariantRanking(VariantQuery(name, f"{name} query", weight), hits)


def order(ranked: list[Hit]) -> str:
    return "".join(one.chunk.document_id for one in ranked)


def test_the_arithmetic() -> None:
    fused = weighted_reciprocal_rank_fusion([ranking("ab", 2.0), ranking("bc", 1.25, "keyword")])
    scores = {one.chunk.document_id: one.score for one in fused}
    assert scores == {
        "a": pytest.approx(2.0 / 51),
        "b": pytest.approx(2.0 / 52 + 1.25 / 51),  # .0385 + .0245: two places beat one
        "c": pytest.approx(1.25 / 52),
    }
    assert order(fused) == "bac"


def test_with_another_k() -> None:
    fused = weighted_reciprocal_rank_fusion([ranking("a", 3.0)], k=2)
    assert fused[0].score == 1.0  # 3 / (2 + 1)


def test_nothing_fused_is_nothing() -> None:
    assert weighted_reciprocal_rank_fusion([]) == []
    assert weighted_reciprocal_rank_fusion([ranking(""), ranking("")]) == []


def test_a_tie_goes_to_the_better_best_rank() -> None:
    # With k = 0: a scores 1/2 + 1/2 = 1, b scores 1/1 = 1.
    fused = weighted_reciprocal_rank_fusion([ranking("xa"), ranking("ya"), ranking("b")], k=0)
    assert order(fused) == "xyba"


def test_a_tie_of_best_ranks_goes_to_the_earlier_variant() -> None:
    assert order(weighted_reciprocal_rank_fusion([ranking("b"), ranking("a")])) == "ba"


def test_of_equal_chunks_the_earlier_variant_counts_that_ranks_them_best() -> None:
    # a is seen first, in variant 0, but is ranked best in variant 2; b in variant 1.
    rankings = [ranking("xa"), ranking("b"), ranking("a"), ranking("yb")]
    assert order(weighted_reciprocal_rank_fusion(rankings)) == "baxy"


def test_exact_matches_stand_first_whatever_they_score() -> None:
    fused = weighted_reciprocal_rank_fusion([ranking("abc", 2.0, exact="c"), ranking("ab", 2.0)])
    assert order(fused) == "cab"


def test_more_exact_terms_stand_above_fewer() -> None:
    both = Hit(chunk("both", 0), 0.0, Evidence(exact=2))
    one = Hit(chunk("one", 0), 9.0, Evidence(exact=1))
    query = VariantQuery("original", "E-12 E-13", 2.0)
    fused = weighted_reciprocal_rank_fusion([VariantRanking(query, (one, both))])
    assert [ranked.chunk.document_id for ranked in fused] == ["both", "one"]


def test_every_leg_of_every_variant_is_a_reason() -> None:
    seen = Hit(chunk("a", 0), 0.0, Evidence(vector_rank=4, keyword_rank=1))
    again = Hit(chunk("a", 0), 0.0, Evidence(exact_rank=1, keyword_rank=9))
    fused = weighted_reciprocal_rank_fusion(
        [
            VariantRanking(VariantQuery("original", "long", 2.0), (seen,)),
            VariantRanking(VariantQuery("keyword", "short", 1.25), (again,)),
        ]
    )
    assert fused[0].why == (
        RankReason("original", "long", "vector", 4),
        RankReason("original", "long", "keyword", 1),
        RankReason("keyword", "short", "exact", 1),
        RankReason("keyword", "short", "keyword", 9),
    )


def test_the_strongest_of_each_figure_is_kept_raw() -> None:
    first = Evidence(cosine=0.3, bm25=None, word_share=0.5, exact=1, vector_rank=7)
    second = Evidence(cosine=None, bm25=4.5, word_share=0.25, vector_rank=2, keyword_rank=3)
    assert combine_evidence([first, second]) == Evidence(
        cosine=0.3, bm25=4.5, word_share=0.5, exact=1, vector_rank=2, keyword_rank=3
    )


@pytest.mark.parametrize(
    ("strong", "weak"),
    [
        (Evidence(cosine=0.7), Evidence(cosine=0.3)),
        (Evidence(bm25=4.5), Evidence(bm25=0.5)),
        (Evidence(word_share=0.5), Evidence(word_share=0.25)),
        (Evidence(exact=2), Evidence(exact=1)),
        (Evidence(vector_rank=2), Evidence(vector_rank=7)),
        (Evidence(keyword_rank=1), Evidence(keyword_rank=3)),
        (Evidence(exact_rank=4), Evidence(exact_rank=5)),
    ],
)
def test_the_best_of_a_figure_counts_wherever_it_stands(strong: Evidence, weak: Evidence) -> None:
    for evidences in ([strong, weak], [weak, strong], [strong, Evidence()], [Evidence(), strong]):
        assert combine_evidence(evidences) == strong


def test_an_unknown_figure_stays_unknown() -> None:
    assert combine_evidence([Evidence(), Evidence()]) == Evidence()


rankings = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abcdefgh"), unique=True).map("".join),
        st.sampled_from([2.0, 1.75, 1.5, 1.25]),
    ),
    max_size=6,
)


@given(rankings, st.sampled_from(["", "d", "ag"]), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_variants(
    given_rankings: list[tuple[str, float]], exact: str, shuffle: random.Random
) -> None:
    inputs = [ranking(documents, weight, exact=exact) for documents, weight in given_rankings]
    shuffled = shuffle.sample(inputs, len(inputs))
    fused = weighted_reciprocal_rank_fusion(inputs)
    again = weighted_reciprocal_rank_fusion(shuffled)
    assert {one.chunk.key: one.score for one in fused} == {
        one.chunk.key: one.score for one in again
    }
    tiers = [(one.evidence.exact, one.score) for one in fused]
    assert tiers == [(one.evidence.exact, one.score) for one in again]
    assert tiers == sorted(tiers, reverse=True)


@given(rankings, st.integers(1, 4))
def test_equal_rankings_are_interchangeable(
    given_rankings: list[tuple[str, float]], copies: int
) -> None:
    once = [ranking(documents, weight) for documents, weight in given_rankings]
    fused = weighted_reciprocal_rank_fusion(once)
    repeated = weighted_reciprocal_rank_fusion([one for one in once for _ in range(copies)])
    for one, many in zip(
        sorted(fused, key=lambda one: one.chunk.key),
        sorted(repeated, key=lambda one: one.chunk.key),
        strict=True,
    ):
        assert many.score == pytest.approx(copies * one.score)
