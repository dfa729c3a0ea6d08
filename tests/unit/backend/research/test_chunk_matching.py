"""Chunks are paired as a comparison of everything with everything would pair them, block by block."""

import tracemalloc
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backend.research.references import chunk_matching
from backend.research.references.chunk_matching import (
    Match,
    Scores,
    choose_matches,
    match_vectors,
    match_words,
)
from indexing.embedding.embedder import Vectors
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError

SOON = Deadline.after(86_400)
_WORDS = st.frozensets(st.sampled_from("abcdefgh"), max_size=5)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_matching, "BLOCK_VALUES", 40)


def choose_naively(scores: NDArray[np.float64], least: float, most: int) -> list[Match]:
    """Take the best pair of those left, until none is good enough."""
    left, chosen = scores.copy(), list[Match]()
    while left.size and left.max() >= least and len(chosen) < most:
        answer, source = (int(at) for at in np.unravel_index(left.argmax(), left.shape))
        chosen.append(Match(answer, source, float(left[answer, source])))
        left[answer, :] = left[:, source] = -np.inf
    return sorted(chosen, key=lambda one: one.answer)


def draw_vectors(seed: int, count: int) -> Vectors:
    drawn = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    vectors: Vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return vectors


@given(st.integers(0, 1_000), st.integers(0, 14), st.integers(0, 60), st.sampled_from((-1.0, 0.5)))
def test_vectors_are_paired_as_by_the_whole_matrix(
    seed: int, answers: int, sources: int, least: float
) -> None:
    left, right = draw_vectors(seed, answers), draw_vectors(seed + 1, sources)
    chosen = choose_matches(match_vectors(left, right, least, SOON))
    wanted = choose_naively((left @ right.T).astype(np.float64), least, 10)
    assert [(one.answer, one.source) for one in chosen] == [
        (one.answer, one.source) for one in wanted
    ]
    assert [one.score for one in chosen] == pytest.approx([one.score for one in wanted], abs=1e-6)


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / len(left | right) if left | right else 0.0


@given(st.lists(_WORDS, max_size=6), st.lists(_WORDS, max_size=30))
def test_words_are_compared_by_the_jaccard_index(
    answers: Sequence[frozenset[str]], sources: Sequence[frozenset[str]]
) -> None:
    found = match_words(answers, sources, 0.5, SOON)
    for one in found:
        assert one.score == pytest.approx(jaccard(answers[one.answer], sources[one.source]))
    for at, answer in enumerate(answers):
        best = max((jaccard(answer, source) for source in sources), default=0.0)
        scores = [one.score for one in found if one.answer == at]
        assert max(scores, default=0.0) == pytest.approx(best if best >= 0.5 else 0.0)


def test_memory_does_not_grow_with_the_words_of_a_long_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunk_matching, "BLOCK_VALUES", 100_000)
    answers = [frozenset(f"{at} {word}" for word in range(20)) for at in range(2_000)]
    tracemalloc.start()
    try:
        found = match_words(answers, answers[:500], 0.5, SOON)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(one.answer, one.source) for one in found] == [(at, at) for at in range(500)]
    assert used < 20_000_000


def test_matching_ends_between_two_blocks_once_nobody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token, blocks = CancelToken(), list[int]()

    def take(scores: Scores, *_: object) -> Iterator[Match]:
        blocks.append(len(scores))
        token.cancel()
        return iter(())

    monkeypatch.setattr(chunk_matching, "_take_best", take)
    vectors, words = draw_vectors(1, 30), [frozenset("ab")] * 30
    with pytest.raises(DeadlineExceededError):
        match_vectors(vectors, vectors, -1.0, Deadline.after(600, token))
    assert len(blocks) == 1
    token = CancelToken()
    with pytest.raises(DeadlineExceededError):
        match_words(words, words, 0.5, Deadline.after(600, token))
    assert len(blocks) == 2


def test_ties_go_to_what_comes_first() -> None:
    same = [Match(1, 0, 0.9), Match(0, 1, 0.9), Match(0, 0, 0.9), Match(1, 1, 0.9)]
    assert choose_matches(same) == [Match(0, 0, 0.9), Match(1, 1, 0.9)]
    assert choose_matches(same, most=1) == [Match(0, 0, 0.9)]
