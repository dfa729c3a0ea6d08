"""The arithmetic of the hybrid, by hand, and what holds for any candidates."""

import random
from collections.abc import Mapping
from statistics import pstdev
from types import MappingProxyType
from typing import TypeVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from indexing.embedding.language_support import CosineScale
from indexing.index.hybrid_ranking import (
    CANDIDATES,
    NEAR,
    Candidates,
    ExactMatch,
    RankedCandidate,
    Weighting,
    compute_word_share,
    is_too_common,
    order_by_evidence,
    pad_words,
    rank_candidates,
)
from indexing.index.protocols import Evidence

Value = TypeVar("Value")


SCALE = CosineScale(0.1, 0.5)
"""Unrelated texts have cosines up to .1, related ones usually .5."""


def rank(
    candidates: Candidates[str],
    alpha: float,
    size: int = 100,
    boosts: Mapping[str, float] = MappingProxyType({}),
) -> list[RankedCandidate[str]]:
    return rank_candidates(candidates, Weighting(alpha, SCALE), size, boosts)


def order(candidates: Candidates[str], alpha: float, size: int = 100) -> list[str]:
    return [place.key for place in rank(candidates, alpha, size)]


def test_scores_are_shares_of_the_best_weighted_by_alpha() -> None:
    # Words: 2 of 6. Vectors, from .1: .3 of .5.
    candidates = Candidates(keyword={"a": 2.0, "b": 6.0}, vector={"b": 0.4, "c": 0.6})
    places = rank(candidates, 0.25)
    assert [place.key for place in places] == ["b", "a", "c"]
    scores = [place.score for place in places]
    assert scores == pytest.approx([0.75 + 0.25 * 0.6, 0.75 / 3, 0.25])


def test_cosines_of_unrelated_texts_score_nothing_and_keep_their_order() -> None:
    places = rank(Candidates(vector={"a": 0.05, "b": 0.3, "c": 0.1, "d": -0.2}), 1.0)
    assert [(place.key, place.score) for place in places] == [
        ("b", 1.0),
        ("c", 0.0),
        ("a", 0.0),
        ("d", 0.0),
    ]
    assert order(Candidates(vector={"a": 0.05, "b": 0.09}), 1.0) == ["b", "a"]


def rank_by_evidence(
    candidates: Candidates[str], shares: Mapping[str, float], alpha: float = 0.5
) -> list[tuple[str, float]]:
    """Rank, and order anew where candidates hold these shares of the query's words."""
    found = [
        (place, place.evidence(None, shares.get(place.key, 0.0)))
        for place in rank(candidates, alpha)
    ]
    ordered = order_by_evidence(found, Weighting(alpha, SCALE))
    return [(place.key, round(place.score, 6)) for place, _ in ordered]


def test_the_leg_with_the_better_evidence_weighs_more() -> None:
    candidates = Candidates(keyword={"words": 9.0, "both": 4.5}, vector={"near": 0.3, "both": 0.2})
    # The nearest is half way to related texts. With all words held the legs weigh 1/3 and 2/3, with a quarter 2/3 and 1/3.
    assert rank_by_evidence(candidates, {"words": 1.0}) == [
        ("words", 0.666667),
        ("both", 0.5),
        ("near", 0.333333),
    ]
    assert rank_by_evidence(candidates, {"words": 0.25}) == [
        ("near", 0.666667),
        ("both", 0.5),
        ("words", 0.333333),
    ]


def test_equally_good_evidence_keeps_the_shares() -> None:
    candidates = Candidates(keyword={"words": 9.0}, vector={"near": 0.3})
    assert rank_by_evidence(candidates, {"words": 0.5}, 0.25) == [
        ("words", 0.75),
        ("near", 0.25),
    ]


def test_without_evidence_the_shares_stay() -> None:
    candidates = Candidates(keyword={"words": 9.0}, vector={"near": 0.05})
    assert rank_by_evidence(candidates, {}, 0.25) == [("words", 0.75), ("near", 0.0)]
    assert order_by_evidence([], Weighting(0.5, SCALE)) == []


@pytest.mark.parametrize(("alpha", "first"), [(0.0, "words"), (1.0, "near")])
def test_a_single_leg_stays_alone_whatever_the_evidence(alpha: float, first: str) -> None:
    candidates = Candidates(keyword={"words": 9.0}, vector={"near": 0.9})
    shares = {"words": 0.01 if alpha == 0.0 else 1.0}
    assert rank_by_evidence(candidates, shares, alpha)[0] == (first, 1.0)


def test_evidence_beyond_the_first_ten_changes_no_weight() -> None:
    keyword = {f"{n:02}": 100.0 - n for n in range(11)}
    candidates = Candidates(keyword=keyword, vector={"near": 0.5})
    early, late = (dict(rank_by_evidence(candidates, {key: 1.0}))["near"] for key in ("00", "10"))
    assert (early, late) == (0.5, 1.0)


def test_boosts_and_exact_matches_hold_after_ordering_by_evidence() -> None:
    candidates = Candidates(
        keyword={"words": 9.0, "code": 1.0},
        vector={"near": 0.5},
        exact={"code": ExactMatch(1, 1.0)},
    )
    places = rank(candidates, 0.5, boosts={"near": 3.0})
    found = [(place, place.evidence(None, 1.0)) for place in places]
    ordered = order_by_evidence(found, Weighting(0.5, SCALE))
    assert [(place.key, round(place.score, 6)) for place, _ in ordered] == [
        ("code", 0.055556),
        ("near", 1.5),
        ("words", 0.5),
    ]


def test_evidence_is_raw_and_ranks_count_from_one() -> None:
    candidates = Candidates(
        keyword={"a": 2.0, "b": 6.0}, vector={"b": 0.4, "c": 0.6}, exact={"d": ExactMatch(2, 1.0)}
    )
    evidence = {place.key: place.evidence(None, 0.0) for place in rank(candidates, 0.5, 10)}
    assert evidence == {
        "a": Evidence(bm25=2.0, keyword_rank=2),
        "b": Evidence(bm25=6.0, keyword_rank=1, cosine=0.4, vector_rank=2),
        "c": Evidence(cosine=0.6, vector_rank=1),
        "d": Evidence(exact=2, exact_rank=1),
    }


def test_equals_by_words_keep_their_order_where_cosines_are_near() -> None:
    # Deviation .18: "b" is a ninth of it nearer than "a".
    vector = {"b": 0.71, "a": 0.69, "c": 0.5, "d": 0.3, "e": 0.3}
    places = rank(Candidates(keyword={"a": 5.0, "b": 5.0}, vector=vector), 0.5, 2)
    assert [place.key for place in places] == ["a", "b"]
    assert places[0].score == places[1].score


def test_near_cosines_stay_apart_where_words_differ() -> None:
    keyword, vector = {"a": 5.0, "b": 5.5, "c": 1.0}, {"a": 0.71, "b": 0.70, "c": 0.1}
    places = rank(Candidates(keyword=keyword, vector=vector), 0.5, 3)
    scores = {place.key: place.score for place in places}
    # From .1, the nearest is at .61.
    by_hand = {"a": 5.0 / 5.5 + 1.0, "b": 1.0 + 0.60 / 0.61, "c": 1.0 / 5.5}
    assert scores == pytest.approx({key: score / 2 for key, score in by_hand.items()})


def test_the_weight_multiplies() -> None:
    candidates = Candidates(keyword={"a": 1.0, "b": 2.0})
    places = rank(candidates, 0.0, boosts={"a": 3.0, "not found": 9.0})
    assert [(place.key, place.score) for place in places] == [("a", 1.5), ("b", 1.0)]


def test_exact_matches_stand_above_any_score() -> None:
    candidates = Candidates(
        keyword={"best": 90.0, "middle": 50.0, "weak": 1.0},
        vector={"best": 0.9},
        exact={"weak": ExactMatch(1, 7.0), "only": ExactMatch(1, 9.0), "both": ExactMatch(2, 0.0)},
    )
    # "weak" has a score of its own; what no other leg found comes by the order of the exact leg.
    assert order(candidates, 0.5) == ["both", "weak", "only", "best", "middle"]


def test_equal_exact_matches_come_by_their_own_score_then_by_key() -> None:
    exact = {key: ExactMatch(1, score) for key, score in [("c", 1.0), ("b", 2.0), ("a", 1.0)]}
    assert order(Candidates(exact=exact), 0.5) == ["b", "a", "c"]


def test_nothing_found_is_nothing_ranked() -> None:
    nothing: Candidates[str] = Candidates()
    assert rank(nothing, 0.5, 10) == []


@pytest.mark.parametrize(
    ("holders", "chunks", "expected"),
    [
        (50, 60, "rare"),  # not more than 50
        (51, 60, "common"),
        (51, 1_020, "rare"),  # 5 % of 1,020 is 51: not more
        (52, 1_020, "common"),
        (5_000, 100_000, "rare"),
        (5_001, 100_000, "common"),
    ],
)
def test_a_word_is_common_above_both_bounds(holders: int, chunks: int, expected: str) -> None:
    assert is_too_common(holders, chunks) is (expected == "common")


# Scores a float32 engine may give, far enough apart not to be rounding errors.
SCORES = st.integers(0, 1_000).map(lambda n: n / 8)
KEYS = st.text("abcdef", min_size=1, max_size=3)
LEGS = st.dictionaries(KEYS, SCORES, max_size=12)
EXACT = st.dictionaries(KEYS, st.builds(ExactMatch, st.integers(1, 3), SCORES), max_size=3)
CANDIDATE_SETS = st.builds(
    lambda keyword, vector, exact: Candidates(keyword=keyword, vector=vector, exact=exact),
    LEGS,
    LEGS,
    EXACT,
)
ALPHAS = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])


@given(CANDIDATE_SETS, ALPHAS, st.randoms(use_true_random=False))
def test_the_order_of_candidates_means_nothing(
    candidates: Candidates[str], alpha: float, rng: random.Random
) -> None:
    other = Candidates(
        keyword=_shuffled(candidates.keyword, rng),
        vector=_shuffled(candidates.vector, rng),
        exact=_shuffled(candidates.exact, rng),
    )
    assert rank(other, alpha, 50) == rank(candidates, alpha, 50)


def _shuffled(leg: Mapping[str, Value], rng: random.Random) -> dict[str, Value]:
    items = list(leg.items())
    rng.shuffle(items)
    return dict(items)


@given(CANDIDATE_SETS, ALPHAS, st.sampled_from([0.25, 2.0, 1024.0]))
def test_scaling_the_scores_of_words_changes_no_ranking(
    candidates: Candidates[str], alpha: float, factor: float
) -> None:
    keyword = {key: factor * score for key, score in candidates.keyword.items()}
    other = Candidates(keyword=keyword, vector=candidates.vector, exact=candidates.exact)
    before, after = rank(candidates, alpha, 50), rank(other, alpha, 50)
    assert {place.key: place.score for place in after} == pytest.approx(
        {place.key: place.score for place in before}
    )


@given(
    CANDIDATE_SETS,
    ALPHAS,
    st.dictionaries(KEYS, st.sampled_from([0.0, 0.5, 1.0]), max_size=12),
)
def test_ordering_by_evidence_keeps_the_hits_and_the_exact_tier(
    candidates: Candidates[str], alpha: float, shares: dict[str, float]
) -> None:
    ordered = [key for key, _ in rank_by_evidence(candidates, shares, alpha)]
    assert sorted(ordered) == sorted(order(candidates, alpha))
    exact = candidates.exact
    terms = [exact[key].terms if key in exact else 0 for key in ordered]
    assert terms == sorted(terms, reverse=True)


@given(LEGS, LEGS)
def test_at_the_ends_of_alpha_one_leg_alone_decides(
    keyword: dict[str, float], vector: dict[str, float]
) -> None:
    candidates = Candidates(keyword=keyword, vector=vector)
    by_words = [place for place in rank(candidates, 0.0, 50) if place.score > 0.0]
    assert [place.evidence(None, 0.0).keyword_rank for place in by_words] == list(
        range(1, len(by_words) + 1)
    )
    by_vector = [place for place in rank(candidates, 1.0, 50) if place.score > 0.0]
    assert [place.evidence(None, 0.0).vector_rank for place in by_vector] == list(
        range(1, len(by_vector) + 1)
    )


@given(CANDIDATE_SETS, ALPHAS, ALPHAS)
def test_more_alpha_never_lowers_what_only_the_vectors_found(
    candidates: Candidates[str], one: float, other: float
) -> None:
    low, high = (
        {place.key: place.score for place in rank(candidates, alpha, 50)}
        for alpha in sorted((one, other))
    )
    assert all(low[key] <= high[key] for key in candidates.vector.keys() - candidates.keyword)


# Few different scores of words, so that many are equal; cosines so far apart that rounding decides nothing.
EQUAL_WORDS = st.dictionaries(
    KEYS, st.tuples(st.sampled_from([2.0, 4.0]), st.integers(0, 400)), min_size=2, max_size=12
)


@given(EQUAL_WORDS)
def test_of_equals_by_words_the_clearly_nearer_comes_first(
    both: dict[str, tuple[float, int]],
) -> None:
    keyword = {key: words for key, (words, _) in both.items()}
    vector = {key: cosine / 400 for key, (_, cosine) in both.items()}
    assume(len(set(vector.values())) > 1)
    places = {
        key: n for n, key in enumerate(order(Candidates(keyword=keyword, vector=vector), 0.5))
    }
    near = NEAR * pstdev(vector.values()) + 1e-6
    clearly = [
        (one, other)
        for one in both
        for other in both
        if keyword[one] == keyword[other] and vector[one] - vector[other] > near
    ]
    # Cosines of unrelated texts score nothing.
    assert all(
        places[one] < places[other] for one, other in clearly if vector[one] > SCALE.unrelated
    )


@given(EQUAL_WORDS)
def test_sharing_lowers_no_score(both: dict[str, tuple[float, int]]) -> None:
    keyword = {key: words for key, (words, _) in both.items()}
    vector = {key: cosine / 400 for key, (_, cosine) in both.items()}
    assume(len(set(vector.values())) > 1)
    nearest = max(vector.values()) - SCALE.unrelated
    for place in rank(Candidates(keyword=keyword, vector=vector), 0.5, 50):
        share = max(0.0, vector[place.key] - SCALE.unrelated) / nearest if nearest > 0 else 0.0
        words = keyword[place.key] / max(keyword.values())
        assert place.score >= 0.5 * (words + share) - 1e-9


@given(CANDIDATE_SETS, ALPHAS, st.integers(1, 20))
def test_a_smaller_size_is_the_beginning_of_a_larger(
    candidates: Candidates[str], alpha: float, size: int
) -> None:
    assert order(candidates, alpha, size) == order(candidates, alpha)[:size]


@given(CANDIDATE_SETS, ALPHAS)
def test_every_candidate_is_ranked_once_and_none_below_zero(
    candidates: Candidates[str], alpha: float
) -> None:
    places = rank(candidates, alpha, CANDIDATES)
    found = [place.key for place in places]
    assert sorted(found) == sorted({*candidates.keyword, *candidates.vector, *candidates.exact})
    assert all(place.score >= 0.0 for place in places)


@pytest.mark.parametrize(
    ("words", "held", "share"),
    [
        ([], "a b", 0.0),
        ([("a",)], "a b", 1.0),
        ([("a",), ("ab",)], "a b", 0.5),
        ([("b",)], "ab abc", 0.0),
        ([("a",)], "", 0.0),
        ([("hous", "de/haus"), ("a",)], "x de/haus", 0.5),  # one form is enough
        ([("hous", "de/haus")], "hous de/haus", 1.0),  # and two are one word
    ],
)
def test_the_share_of_words(words: list[tuple[str, ...]], held: str, share: float) -> None:
    assert compute_word_share(pad_words(words), held) == share
