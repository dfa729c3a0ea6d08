"""Messages are a tree: every branch holds what was asked and answered on it, in order, once."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.store.chat import messages, new_messages
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.conversations import OWNER, ask, begin, finish, writer
from tests.support.databases import sqlite_in


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One for all examples of a property."""
    path: Path = tmp_path_factory.mktemp("kept")
    with closing(open_database(sqlite_in(path))) as opened:
        yield opened


def test_a_question_and_its_answer_are_a_path(database: Database) -> None:
    begun = begin(database, "How long?")
    path = messages.list_path(database, begun.answer.id, 50)
    assert [(one.role, one.text, one.parent_id) for one in path] == [
        ("user", "How long?", None),
        ("assistant", "", begun.question.id),
    ]
    assert path[1].status == "running"


def test_branches_share_what_stands_before_them(database: Database) -> None:
    first = begin(database, "one")
    conversation = first.question.conversation_id
    finish(database, first.answer.id)
    left = ask(database, conversation, first.answer.id, "left")
    right = ask(database, conversation, first.answer.id, "right")
    anew = ask(database, conversation, None, "another one")
    for begun, expected in ((left, ["one", "left"]), (right, ["one", "right"])):
        path = messages.list_path(database, begun.answer.id, 50)
        assert [one.text for one in path if one.role == "user"] == expected
        siblings = messages.find_siblings(database, path)
        assert siblings[begun.question.id] == (left.question.id, right.question.id)
        assert siblings[first.question.id] == (first.question.id, anew.question.id)
        assert siblings[begun.answer.id] == (begun.answer.id,)
    assert messages.find_newest_below(database, first.question) == right.answer.id
    assert messages.find_newest_below(database, left.question) == left.answer.id


def test_a_question_is_answered_again_beside_its_answer(database: Database) -> None:
    first = begin(database)
    conversation = first.question.conversation_id
    finish(database, first.answer.id)
    by_question, by_answer = (
        new_messages.regenerate(database, OWNER, conversation, one, writer())
        for one in (first.question.id, first.answer.id)
    )
    assert by_question.question == by_answer.question == first.question
    path = messages.list_path(database, by_answer.answer.id, 50)
    assert messages.find_siblings(database, path)[by_answer.answer.id] == (
        first.answer.id,
        by_question.answer.id,
        by_answer.answer.id,
    )


def test_a_long_path_is_read_from_its_end(database: Database) -> None:
    begun = begin(database, "0")
    finish(database, begun.answer.id)
    for number in range(1, 6):
        begun = ask(database, begun.question.conversation_id, begun.answer.id, str(number))
        finish(database, begun.answer.id)
    path = messages.list_path(database, begun.answer.id, 4)
    assert [one.text for one in path] == ["4", "26 weeks.", "5", "26 weeks."]


def test_three_answers_of_a_conversation_are_written_at_once_and_no_more(
    database: Database,
) -> None:
    first = begin(database)
    conversation = first.question.conversation_id
    ask(database, conversation, None, "two")
    ask(database, conversation, None, "three")
    with pytest.raises(ConflictError, match="3 answers"):
        ask(database, conversation, None, "four")
    begin(database, "another conversation")
    finish(database, first.answer.id)
    ask(database, conversation, None, "four")


def test_a_question_follows_an_answer_that_has_ended(database: Database) -> None:
    first, other = begin(database), begin(database)
    conversation = first.question.conversation_id
    with pytest.raises(InvalidInputError, match="follows an answer"):
        ask(database, conversation, first.question.id, "?")
    with pytest.raises(ConflictError, match="still being written"):
        ask(database, conversation, first.answer.id, "?")
    finish(database, first.answer.id)
    finish(database, other.answer.id)
    for parent in (other.answer.id, 99_999):
        with pytest.raises(NotFoundError, match="no such message"):
            ask(database, conversation, parent, "?")


def test_somebody_elses_message_does_not_exist(database: Database) -> None:
    begun = begin(database)
    stranger = ConversationOwner(1)
    conversation, message = begun.question.conversation_id, begun.question.id
    assert messages.get(database, OWNER, conversation, message) == begun.question
    for owner, named in ((stranger, conversation), (OWNER, "x"), (OWNER, "\0")):
        with pytest.raises(NotFoundError):
            messages.get(database, owner, named, message)


@settings(max_examples=10)
@given(
    st.lists(st.tuples(st.sampled_from(["ask", "again", "anew"]), st.integers(0, 99)), max_size=8)
)
def test_each_branch_holds_exactly_what_was_posted_on_it(
    kept: Database, steps: list[tuple[str, int]]
) -> None:
    begun = begin(kept, "first")
    conversation = begun.question.conversation_id
    expected = {begun.answer.id: ["first", "answer 0"]}
    finish(kept, begun.answer.id, "answer 0")
    for number, (step, choice) in enumerate(steps, start=1):
        parent = sorted(expected)[choice % len(expected)]
        match step:
            case "ask":
                added = ask(kept, conversation, parent, f"question {number}")
                before = [*expected[parent], f"question {number}"]
            case "again":
                added = new_messages.regenerate(kept, OWNER, conversation, parent, writer())
                before = expected[parent][:-1]
            case _:
                added = ask(kept, conversation, None, f"question {number}")
                before = [f"question {number}"]
        finish(kept, added.answer.id, f"answer {number}")
        expected[added.answer.id] = [*before, f"answer {number}"]
    for leaf, texts in expected.items():
        path = messages.list_path(kept, leaf, 100)
        assert [one.text for one in path] == texts
        assert len({one.id for one in path}) == len(path)
        newest = messages.find_newest_below(kept, path[-1])
        assert leaf in [one.id for one in messages.list_path(kept, newest, 100)]
        assert not [one for one in expected if one > newest and _is_below(kept, one, leaf)]


def _is_below(database: Database, message: int, top: int) -> bool:
    return top in [one.id for one in messages.list_path(database, message, 100)]
