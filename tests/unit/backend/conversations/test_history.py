"""The history fits its window: newest messages whole, older ones summarized once, and nothing that may not be read."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from backend.conversations.answer_gate import AnswerGate
from backend.conversations.fast_model import FastModel
from backend.conversations.history import MOST_WHOLE, HistoryMaker, TurnHistory
from backend.conversations.summaries import LONGEST_SUMMARY
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.store.chat import messages, summaries
from backend.store.chat.messages import Message
from backend.store.database import Database, open_database
from connectors.access import Readers
from indexing.chunking.chunk import ChunkRange
from indexing.runtime.deadline import Deadline
from tests.support.conversations import OWNER, ask, begin, finish, own_no_memories

SOON = 30.0


@dataclass
class Shelf:
    """An index of documents by their ids, some of which may not be read."""

    hidden: set[str] = field(default_factory=set)

    def chunks(self, ranges: list[ChunkRange], readers: Readers, deadline: Deadline) -> list[Any]:
        del readers, deadline
        return [[] if one.document_id in self.hidden else ["a chunk"] for one in ranges]


@dataclass
class Writer:
    """A model that says how often it was asked; its prompts are kept."""

    asked: list[str] = field(default_factory=list)
    reply: str | None = None
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    def complete(self, prompt: Sequence[ChatMessage], deadline: Deadline) -> str:
        del deadline
        self.asked.append(prompt[-1].text)
        assert self.may_answer.wait(SOON)
        if self.reply == "":
            raise CompletionError("The language model did not answer.")
        return self.reply or f"summary {len(self.asked)}"

    def model(self, window: int = 400) -> FastModel:
        return FastModel(
            complete=self.complete,
            count_tokens=lambda text: len(text.split()),
            window=20_000,
            answering_window=window,
        )


@dataclass
class Talk:
    """A conversation, each answer of which rests on a document of its own."""

    database: Database
    shelf: Shelf = field(default_factory=Shelf)
    writer: Writer = field(default_factory=Writer)

    def __post_init__(self) -> None:
        self.maker = HistoryMaker(lambda: self.database)

    def write(self, count: int, words: int = 10, parent: Message | None = None) -> Message:
        """Add so many questions with their answers, and return the last answer."""
        for _ in range(count):
            if parent is None:
                begun = begin(self.database, "question")
            else:
                begun = ask(self.database, parent.conversation_id, parent.id, "question")
            number = begun.answer.id
            text = f"answer {number} " + "word " * (words - 2) + f"[[1]](https://w/{number})"
            finish(self.database, number, text, documents=(f"wiki:{number}",))
            parent = messages.get(
                self.database, OWNER, begun.answer.conversation_id, begun.answer.id
            )
        assert parent is not None
        return parent

    def make(self, leaf: Message, model: FastModel | None) -> TurnHistory:
        gate = AnswerGate(
            index=self.shelf,  # type: ignore[arg-type]
            readers=Readers.of("public"),
            own_memories=own_no_memories,
            deadline=Deadline.after(SOON),
        )
        return self.maker.make(messages.list_path(self.database, leaf.id, 100), gate, model)

    def answers_in(self, history: TurnHistory) -> list[str]:
        return [" ".join(one.text.split()[:2]) for one in history.messages[1::2]]


@pytest.fixture
def talk(database_url: str) -> Iterator[Talk]:
    with closing(open_database(database_url)) as database:
        yield Talk(database)


def test_what_fits_is_told_whole(talk: Talk) -> None:
    history = talk.make(talk.write(4), talk.writer.model())
    assert len(history.messages) == 8
    assert (history.summary, history.loss, talk.writer.asked) == ("", "", [])


def test_older_messages_are_summarized_once(talk: Talk) -> None:
    leaf = talk.write(10)
    history = talk.make(leaf, talk.writer.model())
    assert history.summary == "summary 1"
    assert history.messages[0].role == "user"
    newest = [f"answer {number}" for number in (leaf.id - 2, leaf.id)]
    assert talk.answers_in(history) == newest
    # It rests on all that it tells of, and so does what the model writes next.
    assert history.document_ids == {f"wiki:{number}" for number in range(2, leaf.id + 1, 2)}
    assert "answer 2 " in talk.writer.asked[0]
    assert "https://w/" not in talk.writer.asked[0]
    assert f"answer {leaf.id - 2}" not in talk.writer.asked[0]
    again = talk.make(leaf, talk.writer.model())
    assert again == history
    assert len(talk.writer.asked) == 1


def test_the_newest_turn_stays_whole_though_it_needs_most_of_the_room(talk: Talk) -> None:
    leaf = talk.write(1, words=90, parent=talk.write(6))
    talk.writer.reply = "long " * 100
    # Of 400 tokens, 140 are for the history: with its question the last turn takes 100 of them.
    history = talk.make(leaf, talk.writer.model(window=400))
    assert talk.answers_in(history) == [f"answer {leaf.id}"]
    assert 30 <= len(history.summary.split()) <= 41


def test_the_next_summary_goes_on_from_the_last_one(talk: Talk) -> None:
    leaf = talk.write(10)
    talk.make(leaf, talk.writer.model())
    leaf = talk.write(1, parent=leaf)
    assert talk.make(leaf, talk.writer.model()).summary == "summary 1"
    leaf = talk.write(6, parent=leaf)
    history = talk.make(leaf, talk.writer.model())
    assert history.summary == "summary 2"
    assert '"summary":"summary 1"' in talk.writer.asked[1].replace(": ", ":")
    assert "answer 2 " not in talk.writer.asked[1]
    assert "wiki:2" in history.document_ids


def test_a_branch_has_its_own_summary_only_where_its_path_differs(talk: Talk) -> None:
    stem = talk.write(8)
    first, second = talk.write(2, parent=stem), talk.write(2, parent=stem)
    assert talk.make(first, talk.writer.model()).summary == "summary 1"
    # Both branches begin behind what is summarized.
    assert talk.make(second, talk.writer.model()).summary == "summary 1"
    early = talk.write(10, parent=messages.get(talk.database, OWNER, stem.conversation_id, 2))
    assert talk.make(early, talk.writer.model()).summary == "summary 2"
    assert talk.make(first, talk.writer.model()).summary == "summary 1"


def test_a_summary_of_what_may_not_be_read_is_made_anew_without_it(talk: Talk) -> None:
    leaf = talk.write(10)
    talk.make(leaf, talk.writer.model())
    talk.shelf.hidden = {"wiki:4"}
    history = talk.make(leaf, talk.writer.model())
    assert history.summary == "summary 2"
    assert "answer 4 " not in talk.writer.asked[1]
    assert "summary 1" not in talk.writer.asked[1]
    assert "answer 6 " in talk.writer.asked[1]
    assert "wiki:4" not in history.document_ids
    kept = summaries.list_of(talk.database, range(100))
    assert [(one.text, "wiki:4" in one.document_ids) for one in kept] == [("summary 2", False)]


def test_without_a_summary_the_asker_is_told(talk: Talk) -> None:
    leaf, talk.writer.reply = talk.write(10), ""
    history = talk.make(leaf, talk.writer.model())
    assert history.loss == "The language model did not answer."
    assert history.summary == ""
    assert len(history.messages) == 20
    talk.writer.reply = None
    assert talk.make(leaf, talk.writer.model()).loss == ""


def test_without_a_model_nothing_is_summarized(talk: Talk) -> None:
    history = talk.make(talk.write(10), None)
    assert (len(history.messages), history.summary, history.loss) == (20, "", "")


def test_many_short_messages_are_summarized_before_any_is_forgotten(talk: Talk) -> None:
    leaf = talk.write(MOST_WHOLE // 2, words=2)
    history = talk.make(leaf, talk.writer.model(window=100_000))
    assert history.summary == "summary 1"
    assert len(history.messages) == MOST_WHOLE // 2


def test_a_long_summary_and_long_messages_are_cut(talk: Talk) -> None:
    leaf, talk.writer.reply = talk.write(3, words=9_000), "x" * (2 * LONGEST_SUMMARY)
    history = talk.make(leaf, talk.writer.model())
    assert len(history.summary) == LONGEST_SUMMARY
    assert history.summary.endswith("…")
    assert len(talk.writer.asked[0].split()) < 20_000
    assert history.messages == ()


def test_a_summary_is_cut_for_a_smaller_window(talk: Talk) -> None:
    leaf, talk.writer.reply = talk.write(10), "longer " * 100
    told = talk.make(leaf, talk.writer.model(window=400)).summary
    assert 50 <= len(told.split()) <= 61
    assert told.endswith("…")
    smaller = talk.make(leaf, talk.writer.model(window=300)).summary
    assert len(smaller.split()) <= 46


def test_two_turns_do_not_summarize_the_same_twice(talk: Talk) -> None:
    leaf = talk.write(10)
    talk.writer.may_answer.clear()
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.append(talk.make(leaf, talk.writer.model()).summary))
        for _ in range(3)
    ]
    for each in threads:
        each.start()
    talk.writer.may_answer.set()
    for each in threads:
        each.join(SOON)
    assert made == ["summary 1"] * 3
    assert len(talk.writer.asked) == 1
