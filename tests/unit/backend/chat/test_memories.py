"""Which memories a question is answered with; a broken embedder costs the order, never the turn."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.memories import (
    MOST_CHOSEN,
    MOST_EMBEDDED,
    choose_memories,
)
from backend.chat.text_nearness import SentenceModel
from backend.store.chat.memories import Memory
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError
from indexing.embedding.embedder import QueryEmbedder, Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, LanguageSupport
from indexing.embedding.vector_cache import VectorCache
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import is_visible
from tests.support.memory_questions import MEMORIES, QUESTIONS
from tests.support.models import minilm
from tests.support.search import ENGLISH_ONLY

START = datetime(2026, 3, 2, tzinfo=UTC)
MEASURED = LanguageSupport({"English": 1.0}, floor=0.3)
"""As MiniLM is measured."""
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
class HangingEmbedder(HashingEmbedder):
    released: threading.Event = field(default_factory=threading.Event)
    has_ended: threading.Event = field(default_factory=threading.Event)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.released.wait(60)
        self.has_ended.set()
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
    understanding: LanguageSupport = EVERYTHING,
    seconds: float = 60,
) -> list[str]:
    model = SentenceModel(embedder or HashingEmbedder(), understanding)
    chosen = choose_memories(memories, question, model, MOST_CHOSEN, Deadline.after(seconds))
    return [memory.text for memory in chosen]


@dataclass(frozen=True)
class _Counts:
    """How many questions got which memories, of the set of questions."""

    found: int
    """Memories that belong to their question."""
    missed: int
    foreign: int
    """Memories that do not."""
    unrelated_with_any: int
    """Questions that are answered with no memory, and got one."""


def _count(embedder: QueryEmbedder, understanding: LanguageSupport) -> _Counts:
    names = {text: name for name, text in MEMORIES.items()}
    found = missed = foreign = unrelated = 0
    for question, wanted in QUESTIONS:
        chosen = _choose(_make(*MEMORIES.values()), question, embedder, understanding)
        got = {names[text] for text in chosen}
        found, missed = found + len(got & wanted), missed + len(wanted - got)
        foreign, unrelated = foreign + len(got - wanted), unrelated + bool(got and not wanted)
    return _Counts(found, missed, foreign, unrelated)


@pytest.mark.soak("slow")
def test_only_what_is_about_the_question_is_chosen_by_meaning() -> None:
    counts = _count(minilm(), MEASURED)
    assert counts.missed <= 1
    assert counts.unrelated_with_any <= 1
    assert counts.foreign <= 8


def test_only_what_shares_a_word_with_the_question_is_chosen_by_words() -> None:
    counts = _count(FailingEmbedder(), MEASURED)
    assert counts.missed <= 5
    assert counts.unrelated_with_any <= 2


def test_an_unrelated_question_is_answered_with_none_of_a_few() -> None:
    few = ("I work in Leeds.", "My locker is number forty.")
    assert _choose(_make(*few), "How many days of leave are there?") == []
    assert _choose(_make(*few), "Where is my locker?") == ["My locker is number forty."]
    assert _choose([], "Which fact?") == []


@pytest.mark.parametrize(
    "preference",
    [
        "Answer me in three sentences at most.",
        "请用英文回答。",
        "Bitte antworte in Stichpunkten.",
        "Call me Robin.",
    ],
)
def test_how_somebody_wants_to_be_answered_counts_for_every_question(preference: str) -> None:
    memories = _make("My locker is number forty.", preference)
    assert _choose(memories, "What is the capital of Mongolia?", minilm(), MEASURED) == [preference]


def test_of_many_the_nearest_by_meaning_come_first() -> None:
    embedder = minilm()
    texts = (*OTHERS, "My spouse is called Robin.", "I am allergic to peanuts.")
    chosen = _choose(_make(*texts), "Which peanuts must I not eat at lunch?", embedder, MEASURED)
    assert chosen[0] == "I am allergic to peanuts."
    assert "My spouse is called Robin." not in chosen


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
    ],
)
def test_an_embedder_that_fails_costs_no_turn(embedder: QueryEmbedder) -> None:
    texts = (*OTHERS, "My locker is number forty.")
    chosen = _choose(_make(*texts), "Which locker is mine?", embedder)
    assert chosen == ["My locker is number forty."]


def test_an_embedder_that_is_late_is_not_waited_for() -> None:
    embedder = HangingEmbedder()
    texts = (*OTHERS, "My locker is number forty.")
    chosen = _choose(_make(*texts), "Which locker is mine?", embedder, seconds=0.2)
    assert not embedder.has_ended.is_set()
    embedder.released.set()
    assert chosen == ["My locker is number forty."]
    assert embedder.has_ended.wait(30)


def test_no_time_left_is_no_reason_to_wait() -> None:
    embedder = RecordingEmbedder()
    # Equally near ones: the newest first.
    chosen = _choose(_make(*OTHERS), "Which room?", embedder, seconds=0)
    assert chosen == list(OTHERS[:MOST_CHOSEN])
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
def test_whatever_is_remembered_and_asked_each_is_chosen_once_and_no_more_than_asked_for(
    texts: list[str], question: str, limit: int
) -> None:
    memories = _make(*texts)
    model = SentenceModel(HashingEmbedder(), EVERYTHING)
    chosen = choose_memories(memories, question, model, limit, Deadline.after(60))
    assert len(chosen) <= min(len(texts), limit, MOST_CHOSEN)
    assert len({memory.id for memory in chosen}) == len(chosen)
    assert all(memory in memories for memory in chosen)
