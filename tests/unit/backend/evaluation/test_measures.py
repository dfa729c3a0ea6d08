"""Measures that a reader can redo."""

from math import log2

import pytest

from backend.evaluation.measures import scores


def test_one_query() -> None:
    """Two relevant documents, found at ranks 2 and 3; the better one has grade 2."""
    means = scores({"q": {"a": 1, "b": 2, "c": 0}}, {"q": ["c", "a", "b"]})
    gain, best = 1 / log2(3) + 2 / log2(4), 2 / log2(2) + 1 / log2(3)
    assert means == pytest.approx({"nDCG@10": gain / best, "R@10": 1, "R@100": 1, "RR@10": 1 / 2})


def test_means_are_over_all_judged_queries() -> None:
    """One perfect, one that found nothing, one without a ranking: a third."""
    judgments = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}
    means = scores(judgments, {"q1": ["a"], "q2": []})
    third = 1 / 3
    assert means == pytest.approx({"nDCG@10": third, "R@10": third, "R@100": third, "RR@10": third})


def test_only_a_hundred_documents_count() -> None:
    others = [f"other{number}" for number in range(99)]
    judgments = {"q": {"a": 1, "b": 1}}
    assert scores(judgments, {"q": [*others, "a", "b"]})["R@100"] == 0.5
    assert scores(judgments, {"q": [*others[:9], "a", "b"]})["R@10"] == 0.5


def test_documents_without_a_judgment_are_not_relevant() -> None:
    assert scores({"q": {"a": 1}}, {"q": ["x", "a"]})["RR@10"] == 0.5
