"""Links to conversations and opinions of answers: whose they are, whom they outlive."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from backend.access.roles import Role
from backend.store.chat import (
    answer_feedback,
    conversation_copies,
    conversation_shares,
    conversations,
)
from backend.store.chat.answer_feedback import Feedback
from backend.store.chat.messages import list_path
from backend.store.chat.new_messages import Begun
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.store.schema.sharing_tables import answer_feedback as feedback_table
from backend.store.schema.sharing_tables import conversation_shares as share_table
from connectors.errors import NotFoundError
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, START, ask, begin, finish, make_answer

GOOD = Feedback(rating="good", comment="Right.", source=None)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def _finished(database: Database, owner: ConversationOwner = OWNER) -> Begun:
    begun = begin(database, owner=owner)
    finish(database, begun.answer.id, documents=("a",), answer=make_answer("26 weeks.", "a"))
    return begun


def _share(database: Database, begun: Begun, owner: ConversationOwner = OWNER) -> str:
    named = (begun.question.conversation_id, begun.answer.id)
    return conversation_shares.share(database, owner, *named, START).id


def test_what_people_share_is_for_people_and_what_the_machine_shares_for_its_owner(
    database: Database,
) -> None:
    of_machine = _share(database, _finished(database))
    ann = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    bob = ConversationOwner(add_person(database, "bob@example.com").id)
    of_ann = _share(database, _finished(database, ann), ann)
    assert conversation_shares.get_shared(database, of_ann, bob).title == "How long is leave?"
    assert conversation_shares.get_shared(database, of_machine, OWNER).title_by == "words"
    for link, reader in ((of_machine, bob), (of_ann, OWNER), ("x", bob), ("\0", bob)):
        with pytest.raises(NotFoundError, match="Nothing is shared under this link"):
            conversation_shares.get_shared(database, link, reader)


def test_two_who_share_at_once_get_one_link(database: Database) -> None:
    begun = _finished(database)
    found: list[str] = []

    def share() -> None:
        found.append(_share(database, begun))

    threads = [threading.Thread(target=share) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(found)) == 1
    assert len(found) == 4


def test_two_who_say_something_at_once_leave_one_opinion(database: Database) -> None:
    begun = _finished(database)
    named = (begun.question.conversation_id, begun.answer.id)

    def say(number: int) -> None:
        said = replace(GOOD, comment=f"{number}")
        answer_feedback.put(database, OWNER, *named, said, START)

    threads = [threading.Thread(target=say, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    (left,) = answer_feedback.list_page(database, None, None, 10)
    assert left.feedback.comment in set("0123")


def test_feedback_comes_with_the_question_and_the_answer_that_it_is_about(
    database: Database,
) -> None:
    ann = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    begun = _finished(database, ann)
    answer_feedback.put(database, ann, begun.question.conversation_id, begun.answer.id, GOOD, START)
    (given,) = answer_feedback.list_page(database, "good", None, 10)
    assert (given.email, given.given_at, given.feedback) == ("ann@example.com", START, GOOD)
    assert given.question == begun.question
    assert (given.answer.id, given.answer.document_ids) == (begun.answer.id, ("a",))
    assert answer_feedback.list_page(database, "bad", None, 10) == []
    assert answer_feedback.list_page(database, None, given.id, 10) == []


def test_nobody_shares_or_judges_what_is_not_theirs(database: Database) -> None:
    ann = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    begun = _finished(database)
    of_machine = (begun.question.conversation_id, begun.answer.id)
    tried: list[Callable[[], object]] = [
        lambda: conversation_shares.share(database, ann, *of_machine, START),
        lambda: conversation_shares.find(database, ann, of_machine[0]),
        lambda: conversation_shares.remove(database, ann, of_machine[0]),
        lambda: conversation_shares.remove(database, ann, "\0"),
        lambda: answer_feedback.put(database, ann, *of_machine, GOOD, START),
        lambda: answer_feedback.remove(database, ann, *of_machine),
        lambda: answer_feedback.list_of_conversation(database, ann, of_machine[0]),
    ]
    for one in tried:
        with pytest.raises(NotFoundError):
            one()


def test_nothing_outlives_the_conversation(database: Database) -> None:
    kept, gone = _finished(database), _finished(database)
    for begun in (kept, gone):
        _share(database, begun)
        named = (begun.question.conversation_id, begun.answer.id)
        answer_feedback.put(database, OWNER, *named, GOOD, START)
    conversations.remove(database, OWNER, gone.question.conversation_id)
    with database.reading() as connection:
        held = [
            connection.scalar(select(func.count()).select_from(table))
            for table in (share_table, feedback_table)
        ]
    assert held == [1, 1]


def test_a_copy_is_a_path_of_its_own(database: Database) -> None:
    begun = _finished(database)
    conversation = begun.question.conversation_id
    more = ask(database, conversation, begun.answer.id, "And for adoptions?")
    loss = {"step": "rewriting", "reason": "The language model is busy."}
    finish(database, more.answer.id, "As long.", documents=("a", "b"), losses=(loss,))
    path = list_path(database, more.answer.id, 10)
    ann = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    copied = conversation_copies.copy(database, ann, "Leave", path, START)
    found = conversations.get(database, ann, copied)
    assert (found.title, found.running) == ("Leave", False)
    assert found.leaf_id is not None
    own = list_path(database, found.leaf_id, 10)
    shown = [(one.role, one.text, one.answer, one.document_ids) for one in own]
    assert shown == [(one.role, one.text, one.answer, one.document_ids) for one in path]
    assert [one.losses for one in own] == [(), (), (), (loss,)]
    assert {one.conversation_id for one in own} == {copied}
    assert own[0].parent_id is None
    conversations.remove(database, OWNER, conversation)
    assert list_path(database, found.leaf_id, 1)[0].document_ids == ("a", "b")
