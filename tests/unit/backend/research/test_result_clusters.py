"""Clusters of search results, and what is learned of them."""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.research.cluster_insights import (
    LONGEST_INSIGHT,
    LONGEST_QUESTION,
    learn_from_clusters,
)
from backend.research.knowledge.messages import write_item
from backend.research.knowledge_items import KnowledgeType
from backend.research.result_clusters import (
    MOST_RESULTS,
    Cluster,
    cluster_results,
    compare_words,
    link_groups,
)
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.web_search.results import WebResult
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, EmbedderWithLanguages
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.models import minilm

BY_HASH = EmbedderWithLanguages(HashingEmbedder(), EVERYTHING)
POOL = ("The tidal pool of the harbour opened in June", "Sea water fills the harbour's tidal pool")
TAX = ("Property tax rises by two percent next year", "The council votes on the property tax")
TRAINS = ("Night trains return to the coast line", "Railway adds sleeper trains at night")


def make_result(title: str, number: int, summary: str = "") -> WebResult:
    published = datetime(2024, 6, number % 28 + 1, tzinfo=UTC)
    return WebResult(title, f"https://a.example/{number:02}", summary or title, published, "p")


MIXED = [make_result(title, at) for at, title in enumerate((*TAX, *POOL, *TRAINS))]


class CountingEmbedder(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.calls.append(len(texts))
        return super().embed_queries(texts, deadline)


class BrokenEmbedder(HashingEmbedder):
    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        raise TemporarilyUnavailableError(f"{len(texts)} texts until {deadline}", timedelta())


BY_WORDS = EmbedderWithLanguages(BrokenEmbedder(), EVERYTHING)
MODELS = (BY_HASH, BY_WORDS)


def cluster(
    results: Sequence[WebResult], model: EmbedderWithLanguages = BY_HASH
) -> list[list[str]]:
    found = cluster_results(results, model, Deadline.after(60))
    return [[one.title for one in group] for group in found]


def test_results_that_say_alike_things_are_together() -> None:
    by_meaning = EmbedderWithLanguages(minilm(), EVERYTHING)
    shuffled = [MIXED[at] for at in (4, 0, 2, 5, 3, 1)]
    expected = [list(TRAINS), list(TAX), list(POOL)]
    assert cluster(shuffled, by_meaning) == expected


def test_words_decide_where_the_embedder_fails() -> None:
    assert cluster(MIXED, BY_WORDS) == [
        list(TAX),
        list(POOL),
        list(TRAINS),
    ]


def test_all_results_are_embedded_by_one_call() -> None:
    embedder = CountingEmbedder()
    cluster(MIXED, EmbedderWithLanguages(embedder, EVERYTHING))
    assert embedder.calls == [len(MIXED)]


def test_an_address_counts_once_and_what_is_alone_is_no_cluster() -> None:
    twice = [make_result(POOL[0], 1), make_result(POOL[0], 1), make_result(TAX[0], 2)]
    assert cluster(twice) == []
    assert cluster([]) == cluster([MIXED[0]]) == []
    blank = [make_result("\u200b", at) for at in range(3)]
    assert cluster(blank) == []


def test_after_the_deadline_nothing_is_compared() -> None:
    with pytest.raises(DeadlineExceededError):
        cluster_results(MIXED, BY_HASH, Deadline.after(0))


titles = st.lists(
    st.lists(
        st.sampled_from(("pool", "tax", "train", "sea", "city", "old", "new")), max_size=5
    ).map(" ".join),
    max_size=12,
)


@given(titles, st.randoms(use_true_random=False), st.sampled_from(MODELS))
def test_the_order_of_results_changes_no_cluster(
    given_titles: list[str], chance: random.Random, model: EmbedderWithLanguages
) -> None:
    results = [make_result(title, at) for at, title in enumerate(given_titles)]
    shuffled = list(results)
    chance.shuffle(shuffled)
    found = cluster_results(results, model, Deadline.after(60))
    other = cluster_results(shuffled, model, Deadline.after(60))
    assert {frozenset(one.url for one in group) for group in found} == {
        frozenset(one.url for one in group) for group in other
    }
    for groups, order in ((found, results), (other, shuffled)):
        together = [one for group in groups for one in group]
        assert len({one.url for one in together}) == len(together), "each is in one cluster"
        assert all(len(group) > 1 for group in groups)
        assert all(list(group) == sorted(group, key=order.index) for group in groups)
        firsts = [order.index(group[0]) for group in groups]
        assert firsts == sorted(firsts)


def test_no_more_than_fifty_addresses_are_compared() -> None:
    results = [make_result(POOL[at % 2], at) for at in range(MOST_RESULTS + 20)]
    found = cluster_results([*results, *results], BY_WORDS, Deadline.after(60))
    assert {one.url for group in found for one in group} <= {
        one.url for one in results[:MOST_RESULTS]
    }


@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_groups_are_linked_as_the_definition_says(size: int, seed: int) -> None:
    half = np.random.default_rng(seed).uniform(0, 2, (size, size))
    likeness = (half + half.T) / 2
    groups = link_groups(likeness)
    assert sorted(at for group in groups for at in group) == list(range(size))

    def mean(first: list[int], second: list[int]) -> float:
        return float(likeness[np.ix_(first, second)].mean())

    pairs = [(one, other) for one in groups for other in groups if one is not other]
    assert all(mean(one, other) < 1 + 1e-9 for one, other in pairs), "none is left to be joined"


def test_words_that_all_texts_hold_make_nothing_alike() -> None:
    likeness = compare_words(["harbour pool opened", "harbour tax rises", "harbour pool closed"])
    assert likeness[0, 1] == pytest.approx(0)
    assert likeness[0, 2] > 0.1
    assert np.allclose(likeness, likeness.T)


CLUSTERS: list[Cluster] = [
    (make_result("A", 1, "The pool\nopened."), make_result("B", 9, "It is cold.")),
    (make_result("C", 3, "Tax rises."), make_result("D", 4, "\u200b")),
]


class Answering:
    """A language model that answers this, and keeps what it was asked."""

    def __init__(self, text: str | None) -> None:
        self._text = text
        self.asked: list[Sequence[ChatMessage]] = []

    def __call__(self, messages: Sequence[ChatMessage], deadline: Deadline) -> str:
        deadline.check()
        self.asked.append(messages)
        if self._text is None:
            raise CompletionError("It does not answer.")
        return self._text


def test_a_model_writes_question_and_insight_of_each_cluster_by_one_call() -> None:
    written = [
        {"group": 1, "question": "When did it open?", "insight": "It opened,\nand is cold."},
        {"group": 2, "question": "q" * 1_000, "insight": "i" * 10_000},
        {"group": 1, "question": "Again?", "insight": "Again."},
        {"group": "1", "question": 5},
        "nothing",
    ]
    model = Answering(f"```json\n{json.dumps(written)}\n```")
    first, second = learn_from_clusters("pool", CLUSTERS, model, Deadline.after(60))
    assert (first.question, first.answer) == ("When did it open?", "It opened, and is cold.")
    assert first.type is KnowledgeType.URL
    assert first.updated == CLUSTERS[0][1].published
    assert [one.url for one in first.references] == [one.url for one in CLUSTERS[0]]
    for one in first.references:
        assert one.answer_chunk_position.of(first.answer) == one.answer_chunk == first.answer
    assert first.references[0].exact_quote == "The pool opened."
    assert (len(second.question), len(second.answer)) == (LONGEST_QUESTION, LONGEST_INSIGHT)
    assert [one.url for one in second.references] == [CLUSTERS[1][0].url]
    ((system, user),) = model.asked
    assert system.role == "system"
    assert "Group 1\n- A: The pool opened.\n- B: It is cold.\n\nGroup 2" in user.text


@pytest.mark.parametrize(
    "answer", [None, "", "I cannot.", "[]", "5", '[{"group": 1, "question": "", "insight": "x"}]']
)
def test_without_an_insight_the_summaries_are_the_answer(answer: str | None) -> None:
    first, second = learn_from_clusters("pool", CLUSTERS, Answering(answer), Deadline.after(60))
    assert first.question == "What do 2 sources say about “A”?"
    assert first.answer == "The pool opened.\n\nIt is cold."
    assert [one.answer_chunk for one in first.references] == ["The pool opened.", "It is cold."]
    assert second.answer == "Tax rises."


def test_no_clusters_cost_no_call_and_silent_ones_are_not_known() -> None:
    model = Answering("[]")
    assert learn_from_clusters("pool", [], model, Deadline.after(60)) == []
    assert model.asked == []
    silent: Cluster = (make_result("A", 1, "\u200b"), make_result("B", 2, "\u200b"))
    assert learn_from_clusters("pool", [silent], model, Deadline.after(60)) == []


def test_a_model_reads_the_first_address_of_a_cluster_alone() -> None:
    item, _ = learn_from_clusters("pool", CLUSTERS, Answering(None), Deadline.after(60))
    assert len({one.url for one in item.references}) == 2
    text = write_item(item)[1].text
    assert "<url>\nhttps://a.example/01\n</url>" in text
    assert "https://a.example/09" not in text
