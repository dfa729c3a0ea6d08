"""Which memories a question is answered with; a broken embedder costs the order, never the turn."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.memories import (
    MOST_CHARACTERS,
    MOST_CHOSEN,
    MOST_EMBEDDED,
    choose_memories,
)
from backend.chat.text_nearness import SentenceModel
from backend.store.memories import Memory
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError
from indexing.embedding.embedder import QueryEmbedder, Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, Understanding
from indexing.embedding.vector_cache import VectorCache
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import is_visible
from tests.support.models import minilm
from tests.support.search import ENGLISH_ONLY

START = datetime(2026, 3, 2, tzinfo=UTC)
OTHERS = tuple(f"Meeting number {number} takes place in the garden room." for number in range(30))


@dataclass(frozen=True)
class RecordingEmbedder(HashingEmbedder):
    batches: list[int] = field(default_factory=list)
    """How many texts each call has embedded."""

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.batches.append(len(texts))
        return super().embed_queries(texts, deadline)


@dataclass(frozen=True)
class FailingEmbedder(HashingEmbedder):
    error: Exception = field(default_factory=TimeoutError)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        del texts, deadline
        raise self.error


@dataclass(frozen=True)
class SlowEmbedder(HashingEmbedder):
    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        time.sleep(5)
        return super().embed_queries(texts, deadline)


def _make(*texts: str) -> list[Memory]:
    """The first one is the newest."""
    return [
        Memory(
            id=f"m{number}", text=text, created_at=(at := START - timedelta(number)), updated_at=at
        )
        for number, text in enumerate(texts)
    ]


def _choose(
    memories: Sequence[Memory],
    question: str,
    embedder: QueryEmbedder | None = None,
    understanding: Understanding = EVERYTHING,
    seconds: float = 60,
) -> list[str]:
    model = SentenceModel(embedder or HashingEmbedder(), understanding)
    chosen = choose_memories(memories, question, model, MOST_CHOSEN, Deadline.after(seconds))
    return [memory.text for memory in chosen]


def test_few_short_ones_are_all_taken_in_their_order_without_the_embedder() -> None:
    embedder = RecordingEmbedder()
    few = [f"Fact {number}." for number in range(MOST_CHOSEN)]
    assert _choose(_make(*few), "Which fact?", embedder) == few
    assert _choose([], "Which fact?", embedder) == []
    assert embedder.batches == []


def test_few_long_ones_come_nearest_first() -> None:
    long = ["garden " * 200, "My locker is number forty. " + "x" * MOST_CHARACTERS]
    chosen = _choose(_make(*long), "Which locker?")
    assert chosen == long[::-1]


def test_of_many_the_nearest_by_meaning_come_first() -> None:
    embedder = minilm()
    texts = (*OTHERS, "My spouse is called Robin.", "I am allergic to peanuts.")
    chosen = _choose(_make(*texts), "What must I not eat at lunch?", embedder, ENGLISH_ONLY)
    assert chosen[0] == "I am allergic to peanuts."
    assert len(chosen) == MOST_CHOSEN


def test_what_the_embedder_does_not_understand_is_compared_by_words() -> None:
    embedder = RecordingEmbedder()
    texts = (
        *(f"第{number}次会议在花园房间举行。" for number in range(30)),
        "我的储物柜号码是四十。",
    )
    for question in ("我的储物柜是几号？", "储物柜"):
        chosen = _choose(_make(*texts), question, embedder, ENGLISH_ONLY)
        assert chosen[0] == "我的储物柜号码是四十。"
    assert embedder.batches == []


@pytest.mark.parametrize(
    "embedder",
    [
        FailingEmbedder(error=TemporarilyUnavailableError("away", timedelta())),
        FailingEmbedder(error=NotConfiguredError("no key")),
        FailingEmbedder(error=TimeoutError()),
        SlowEmbedder(),
    ],
)
def test_an_embedder_that_fails_or_is_late_costs_no_turn(embedder: QueryEmbedder) -> None:
    began = time.monotonic()
    texts = (*OTHERS, "My locker is number forty.")
    chosen = _choose(_make(*texts), "Which locker is mine?", embedder, seconds=1)
    assert chosen[0] == "My locker is number forty."
    # Equally near ones: the newest first.
    assert chosen[1:] == list(OTHERS[: MOST_CHOSEN - 1])
    assert time.monotonic() - began < 3


def test_no_time_left_is_no_reason_to_wait() -> None:
    embedder = RecordingEmbedder()
    assert len(_choose(_make(*OTHERS), "Which room?", embedder, seconds=0)) == MOST_CHOSEN
    assert embedder.batches == []


def test_of_very_many_those_nearest_by_words_are_embedded_once() -> None:
    embedder = RecordingEmbedder()
    texts = [f"Visit {number} was to the quarry at Graz." for number in range(499)]
    memories = _make(*texts, "My locker is number forty.")
    cache = VectorCache(embedder)
    assert _choose(memories, "Which locker?", cache)[0] == "My locker is number forty."
    assert _choose(memories, "Which locker?", cache)[0] == "My locker is number forty."
    assert embedder.batches == [MOST_EMBEDDED + 1]


@given(
    # Nothing blank is ever remembered.
    st.lists(st.text(min_size=1, max_size=300).filter(is_visible), max_size=40),
    st.text(max_size=50),
    st.integers(0, 12),
)
def test_whatever_is_remembered_and_asked_some_of_it_is_chosen(
    texts: list[str], question: str, limit: int
) -> None:
    memories = _make(*texts)
    model = SentenceModel(HashingEmbedder(), EVERYTHING)
    chosen = choose_memories(memories, question, model, limit, Deadline.after(60))
    assert len(chosen) == min(len(texts), limit, MOST_CHOSEN)
    assert len({memory.id for memory in chosen}) == len(chosen)
    assert all(memory in memories for memory in chosen)
