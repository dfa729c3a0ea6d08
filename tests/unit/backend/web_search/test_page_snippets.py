"""Parts of long pages: where they stand, that they fit, and that the one which answers is among them."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web_search.page_snippets import (
    MAX_CHARACTERS,
    MAX_WINDOWS,
    Snippet,
    SnippetBudget,
    choose_snippets,
)
from connectors.document import Span
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, EmbedderWithLanguages, LanguageSupport
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.models import minilm
from tests.support.search import ENGLISH_ONLY

FILLER = (
    "The committee met on Tuesday and talked about the garden and the colour of the walls. "
    "Nothing was decided, and everybody went home early. "
)
ANSWER = "Refunds are paid out fourteen days after the returned goods have arrived."
BUDGET = SnippetBudget(2_000, 3)


@dataclass(frozen=True)
class RecordingEmbedder(HashingEmbedder):
    batches: list[int] = field(default_factory=list)
    """How many passages each call has embedded."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(len(texts))
        return super().embed_passages(texts)


class FailingEmbedder(HashingEmbedder):
    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise TemporarilyUnavailableError(f"{len(texts)} texts are too many", timedelta())


class LateEmbedder(HashingEmbedder):
    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        raise DeadlineExceededError(f"{len(texts)} {deadline}")


class HangingEmbedder(HashingEmbedder):
    released = threading.Event()

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.released.wait()
        return super().embed_passages(texts)


def choose(
    page: str,
    question: str,
    embedder: Embedder | None = None,
    budget: SnippetBudget = BUDGET,
    understanding: LanguageSupport = EVERYTHING,
    seconds: float = 3_600,
) -> list[Snippet]:
    model = EmbedderWithLanguages(embedder or HashingEmbedder(), understanding)
    return choose_snippets(page, question, model, budget, Deadline.after(seconds))


def check(page: str, snippets: Sequence[Snippet], budget: SnippetBudget) -> None:
    assert len(snippets) <= budget.snippets
    assert sum(len(one.text) for one in snippets) <= budget.characters
    for one in snippets:
        assert one.text == page[one.span.start : one.span.end] == one.text.strip()
        assert one.text
    places = sorted(one.span for one in snippets)
    assert all(first.end <= second.start for first, second in pairwise(places))
    scores = [one.score for one in snippets]
    assert scores == sorted(scores, reverse=True)


pages = st.lists(
    st.one_of(
        st.sampled_from(
            [FILLER, ANSWER, "\n\n", "- " * 90, "请假需要主管批准。", "x" * 300, " " * 50]
        ),
        st.text(max_size=60),
    ),
    max_size=30,
).map("".join)


@given(pages, st.text(max_size=60), st.integers(1, 3_000), st.integers(1, 5))
def test_snippets_stand_in_the_page_do_not_overlap_and_fit(
    page: str, question: str, characters: int, count: int
) -> None:
    budget = SnippetBudget(characters, count)
    for understanding in (EVERYTHING, LanguageSupport({})):
        found = choose(page, question, budget=budget, understanding=understanding)
        check(page, found, budget)


@given(st.integers(0, 30), st.sampled_from(["meaning", "words", "failing", "late"]))
def test_the_sentence_that_answers_is_in_the_best_snippet(place: int, way: str) -> None:
    sentences = [FILLER] * 30
    page = " ".join([*sentences[:place], ANSWER, *sentences[place:]])
    embedder = {"failing": FailingEmbedder(), "late": LateEmbedder()}.get(way, HashingEmbedder())
    understanding = LanguageSupport({}) if way == "words" else EVERYTHING
    found = choose(page, "When are refunds of goods paid?", embedder, understanding=understanding)
    assert ANSWER in found[0].text
    check(page, found, BUDGET)


def test_the_real_model_finds_what_shares_no_word_with_the_question() -> None:
    page = FILLER * 20 + ANSWER + " " + FILLER * 20
    found = choose(page, "How soon do I get my money back?", minilm(), understanding=ENGLISH_ONLY)
    assert ANSWER in found[0].text


def test_a_passage_about_the_question_beats_a_sentence_that_sounds_like_it() -> None:
    lone = "Who pays for the parking permit? "
    about = (
        "The parking permit costs forty euros. Employees pay half of the parking permit. "
        "Whoever shares a car pays nothing for the parking permit of both. "
        "A parking permit is paid with the salary of March, and a second parking permit in full. "
    )
    page = FILLER * 8 + lone + FILLER * 8 + about * 4 + FILLER * 8
    found = choose(page, "Who pays for the parking permit?", budget=SnippetBudget(1_200, 1))
    assert about in found[0].text


def test_a_page_in_a_language_that_the_model_does_not_know_is_compared_by_words() -> None:
    filler = "会议在星期二举行，大家谈论了花园和墙的颜色。没有作出决定。"
    answer = "退货到达仓库后十四天内退款。"
    page = filler * 60 + answer + filler * 60
    found = choose(page, "退款要几天？", FailingEmbedder(), understanding=ENGLISH_ONLY)
    assert answer in found[0].text


def test_blank_windows_are_in_no_snippet() -> None:
    rule = "| --- | --- |\n" * 100
    page = FILLER * 4 + rule + ANSWER + rule + FILLER * 4
    found = choose(page, "When are refunds of goods paid?", budget=SnippetBudget(3_000, 5))
    assert ANSWER in found[0].text
    # A window that the rule shares with words may begin or end with some of its hundred lines.
    assert all(one.text.count("\n") < 20 for one in found)
    assert all("committee" in one.text or "Refunds" in one.text for one in found)


def test_a_page_that_fits_is_returned_whole_and_a_blank_one_not_at_all() -> None:
    embedder = RecordingEmbedder()
    assert choose(f"\n {ANSWER} \n", "refunds", embedder) == [
        Snippet(ANSWER, Span(2, 2 + len(ANSWER)), 1.0)
    ]
    assert choose(" \n\t ", "refunds", embedder) == []
    assert embedder.batches == []


def test_a_window_that_does_not_fit_is_cut() -> None:
    budget = SnippetBudget(20, 1)
    (one,) = choose(FILLER + ANSWER, "refunds", budget=budget)
    check(FILLER + ANSWER, [one], budget)


@pytest.mark.parametrize("times", [40, 400, 4_000])
def test_however_long_a_page_is_one_bounded_batch_is_embedded(times: int) -> None:
    embedder = RecordingEmbedder()
    page = FILLER * times + ANSWER + FILLER * times
    found = choose(page, "When are refunds of goods paid?", embedder)
    assert len(embedder.batches) == 1
    assert embedder.batches[0] <= MAX_WINDOWS
    assert (ANSWER in found[0].text) == (page.index(ANSWER) < MAX_CHARACTERS)


def test_an_embedder_that_hangs_is_not_waited_for() -> None:
    embedder = HangingEmbedder()
    page = FILLER * 20 + ANSWER + FILLER * 20
    found = choose(page, "When are refunds of goods paid?", embedder, seconds=0.4)
    embedder.released.set()
    assert ANSWER in found[0].text
    assert choose(page, "When are refunds of goods paid?", FailingEmbedder(), seconds=0) == found


@pytest.mark.parametrize("unit", [FILLER, ".", "x", "请", "\n", "a. ", "- "])
def test_time_is_linear(unit: str) -> None:
    def seconds(size: int) -> float:
        page = unit * (size // len(unit)) + ANSWER
        started = time.process_time()
        choose(page, "When are refunds of goods paid?", FailingEmbedder())
        return time.process_time() - started

    small = min(seconds(10_000) for _ in range(3))
    large = min(seconds(80_000) for _ in range(2))
    # Eight times the text: linear is a ratio of 8, quadratic one of 64.
    assert large < 30 * small + 0.01
