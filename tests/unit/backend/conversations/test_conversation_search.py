"""Conversations found by words of answers: exactly those whose answers their asker may read at that moment."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from backend.access.roles import Role
from backend.conversations import conversation_search
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.conversation_search import ConversationSearch, read_words
from backend.store.chat import answer_texts
from backend.store.chat.conversations import ListPosition
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, ask, begin, finish

LIMIT = 50


@dataclass
class Shelf:
    """An index of documents by their ids, of which one person may read some; it notes what it is asked for."""

    readable: set[str] = field(default_factory=set)
    asked: list[list[str]] = field(default_factory=list)

    def chunks(self, ranges: list[ChunkRange], readers: Readers, deadline: Deadline) -> list[Any]:
        del readers, deadline
        self.asked.append([one.document_id for one in ranges])
        return [["a chunk"] if one.document_id in self.readable else [] for one in ranges]


@dataclass
class Desk:
    database: Database
    shelf: Shelf = field(default_factory=Shelf)
    memories: frozenset[str] = frozenset()
    """Those that the asker has now."""

    def answered(self, text: str, *documents: str, question: str = "How?", minute: int = 0) -> str:
        begun = begin(self.database, question, minute=minute)
        finish(self.database, begun.answer.id, text, documents)
        return begun.question.conversation_id

    def search(self, owner: ConversationOwner = OWNER) -> ConversationSearch:
        gate = AnswerGate(
            index=cast("Index", self.shelf),
            readers=Readers.of(),
            own_memories=self.memories.intersection,
            deadline=Deadline.after(60),
        )
        return ConversationSearch(database=self.database, owner=owner, gate=gate)

    def find(
        self, *words: str, before: ListPosition | None = None, limit: int = LIMIT
    ) -> list[str]:
        return [one.id for one in self.search().list_page("active", words, before, limit)]

    def find_by_pages(self, words: Sequence[str], size: int) -> list[str]:
        found: list[str] = []
        before = None
        while page := self.search().list_page("active", words, before, size):
            found += [one.id for one in page]
            before = page[-1].position
        return found


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    with closing(open_database(database_url)) as opened:
        yield Desk(opened)


def test_an_answer_is_found_while_all_its_sources_may_be_read(desk: Desk) -> None:
    told = desk.answered("The torque is 12 Nm.", "wiki:a", "wiki:b")
    desk.shelf.readable = {"wiki:a", "wiki:b"}
    assert desk.find("TORQUE") == [told]
    desk.shelf.readable = {"wiki:a"}
    assert desk.find("torque") == desk.find("torque", "how") == []
    assert desk.find("how") == [told]
    desk.shelf.readable = {"wiki:a", "wiki:b"}
    assert desk.find("torque", "how") == [told]


def test_each_word_counts_where_it_may_be_read(desk: Desk) -> None:
    begun = begin(desk.database, "How tight?")
    conversation = begun.question.conversation_id
    finish(desk.database, begun.answer.id, "The torque is secret.", ("wiki:secret",))
    again = ask(desk.database, conversation, None, "How loose?")
    finish(desk.database, again.answer.id, "The torque is open.", ("wiki:open",))
    desk.shelf.readable = {"wiki:open"}
    assert desk.find("torque") == desk.find("torque", "tight", "open") == [conversation]
    assert desk.find("secret") == desk.find("torque", "secret") == desk.find("secret", "open") == []


def test_an_answer_that_rests_on_nothing_is_found_by_who_asked(desk: Desk) -> None:
    other = ConversationOwner(add_person(desk.database, "ann@example.com", Role.ADMIN).id)
    told = desk.answered("The torque of a planet.")
    assert desk.find("planet") == [told]
    assert desk.search(other).list_page("active", ["planet"], None, LIMIT) == []


def test_an_answer_that_rests_on_a_memory_is_found_while_there_is_one(desk: Desk) -> None:
    told = desk.answered("The torque for Ann.", "memory/m1")
    assert desk.find("torque") == []
    desk.memories = frozenset({"m1"})
    assert desk.find("torque") == [told]


def test_titles_and_questions_are_found_without_the_index(desk: Desk) -> None:
    asked = [
        desk.answered("Of the torque.", "wiki:a", question="torque?", minute=minute)
        for minute in range(3)
    ]
    assert desk.find("torque") == asked[::-1]
    assert desk.find() == asked[::-1]
    assert desk.find("torque", "\0") == []
    assert desk.shelf.asked == []


def test_both_kinds_of_hits_are_one_list_in_pages(desk: Desk) -> None:
    chance = random.Random(5)
    expected: list[tuple[int, str]] = []
    for _ in range(40):
        document = chance.choice(("wiki:open", "wiki:secret"))
        question = chance.choice(("torque?", "How?"))
        minute = chance.randrange(10)
        made = desk.answered("The torque.", document, question=question, minute=minute)
        if document == "wiki:open" or question == "torque?":
            expected.append((minute, made))
    desk.shelf.readable = {"wiki:open"}
    found = desk.find("torque")
    assert sorted(found) == sorted(one for _, one in expected)
    minutes = {one: minute for minute, one in expected}
    assert [minutes[one] for one in found] == sorted(minutes.values(), reverse=True)
    for size in (1, 3, 7, 40):
        assert desk.find_by_pages(["torque"], size) == found


def test_what_is_withheld_ends_no_page_early(desk: Desk) -> None:
    """How long a page is, and whether others follow, says nothing of answers that may not be read."""
    shown = [desk.answered("The torque.", "wiki:open", minute=minute) for minute in range(3)]
    for minute in range(3, 9):
        desk.answered("The torque.", "wiki:secret", minute=minute)
    desk.shelf.readable = {"wiki:open"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversation_search, "_CHECKED_AT_ONCE", 2)
        assert desk.find("torque", limit=2) == shown[:0:-1]
        assert desk.find_by_pages(["torque"], 2) == shown[::-1]


def test_answers_are_checked_together_and_each_document_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_search, "_CHECKED_AT_ONCE", 4)
    documents = ("wiki:a", "wiki:b")
    for minute in range(12):
        desk.answered("The torque.", documents[minute % 2], f"wiki:{minute}", minute=minute)
    desk.answered("Nothing.", "wiki:other", minute=13)
    desk.shelf.readable = {*documents, *(f"wiki:{minute}" for minute in range(12))}
    assert len(desk.find("torque", limit=3)) == 3
    assert desk.shelf.asked == [sorted({*documents, *(f"wiki:{one}" for one in range(8, 12))})]
    desk.shelf.asked.clear()
    assert len(desk.find("torque")) == 12
    assert len(desk.shelf.asked) == 3
    every = [one for call in desk.shelf.asked for one in call]
    assert sorted(every) == sorted(desk.shelf.readable)


def test_the_answers_of_conversations_used_long_ago_are_left_out(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_texts, "MOST_SEARCHED", 2)
    asked = desk.answered("No.", question="torque?")
    desk.answered("The torque.", minute=1)
    newer = desk.answered("The torque.", minute=2)
    desk.answered("No.", minute=3)
    assert desk.find("torque") == [newer, asked]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", ()),
        ("paid  leave\npaid", ("paid", "leave")),
        ('"goodwill"', ("goodwill",)),
        ('"paid leave" bob', ("paid leave", "bob")),
        ("“paid  leave” «Élan» 「休假」", ("paid leave", "Élan", "休假")),
        ('"good', ("good",)),
        ('bob "paid lea', ("bob", "paid", "lea")),
        ('"', ()),
        ('""', ()),
        ("the company's", ("the", "company's")),
    ],
)
def test_quotation_marks_hold_words_together_and_are_not_looked_for(
    query: str, words: Sequence[str]
) -> None:
    assert read_words(query) == words


def test_a_quoted_phrase_is_found_as_it_stands(desk: Desk) -> None:
    told = desk.answered("The torque is 12 Nm.", question="How tight is it?")
    other = desk.answered("Is it the torque?", question="Tight how?", minute=1)
    assert desk.find(*read_words('"torque"')) == [other, told]
    assert desk.find(*read_words('"the torque is" tight')) == [told]
    assert desk.find(*read_words('"how tight"')) == [told]
