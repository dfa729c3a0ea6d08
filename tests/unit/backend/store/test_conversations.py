"""Conversations belong to somebody, and to nobody else; they are listed, found by words, and deleted with all they hold."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Literal

import pytest
from sqlalchemy import func, select

from backend.access.roles import Role
from backend.store.chat import conversations, new_messages
from backend.store.chat.conversations import Conversation, ListPosition, ModelTitle
from backend.store.chat.turns import TurnState
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import answer_texts as answer_table
from backend.store.schema.conversation_tables import messages as message_table
from backend.store.schema.conversation_tables import turn_events as event_table
from backend.store.schema.conversation_tables import turns as turn_table
from connectors.errors import NotFoundError
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, START, ask, begin, finish, store, writer


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def _list(
    database: Database,
    *words: str,
    owner: ConversationOwner = OWNER,
    state: Literal["archived", "active"] = "active",
    before: ListPosition | None = None,
    limit: int = 50,
) -> list[Conversation]:
    return conversations.list_page(
        database, owner, state=state, words=words, before=before, limit=limit
    )


def test_the_list_has_pages_that_leave_out_and_repeat_nothing(database: Database) -> None:
    begun = [begin(database, f"{number}", minute=number // 2) for number in range(7)]
    found: list[Conversation] = []
    before = None
    while page := _list(database, before=before, limit=2):
        found += page
        before = ListPosition(page[-1].updated_at, page[-1].id)
    assert sorted(one.id for one in found) == sorted(one.question.conversation_id for one in begun)
    assert [one.updated_at for one in found] == sorted(
        (one.updated_at for one in found), reverse=True
    )


def test_what_is_asked_again_comes_first_and_says_that_it_runs(database: Database) -> None:
    old, new = begin(database, "old", minute=-5), begin(database, "new", minute=-4)
    finish(database, old.answer.id)
    finish(database, new.answer.id)
    assert [(one.title, one.running) for one in _list(database)] == [("new", False), ("old", False)]
    ask(database, old.question.conversation_id, old.answer.id, "more")
    assert [(one.title, one.running) for one in _list(database)] == [("old", True), ("new", False)]


def test_each_word_is_looked_for_in_titles_and_questions(database: Database) -> None:
    begun = begin(database, "Wie lange ist Élternzeit?")
    finish(database, begun.answer.id, "a secret answer")
    ask(database, begun.question.conversation_id, begun.answer.id, "50 % of what_ÜBER?")
    begin(database, "travel")

    # Answers are found by `answer_texts`, whose hits are checked.
    def finds(*words: str) -> int:
        return len(_list(database, *words))

    assert finds("elternzeit") == finds("LANGE", "über?") == finds("50", "%") == finds("t_ü") == 1
    assert finds("lange", "travel") == finds("secret") == finds("5_") == finds("\0") == 0
    conversations.set_title(database, OWNER, begun.question.conversation_id, "Renamed")
    assert finds("renamed") == 1


def test_a_model_names_what_nobody_has_named(database: Database) -> None:
    begun, renamed = begin(database), begin(database)
    identity = begun.question.conversation_id
    assert conversations.is_named_by_words(database, identity)
    assert conversations.set_model_title(database, identity, ModelTitle("Élan vital"))
    assert [one.id for one in _list(database, "elan")] == [identity]
    assert not conversations.set_model_title(database, identity, ModelTitle("Again"))
    mine = renamed.question.conversation_id
    conversations.set_title(database, OWNER, mine, "Mine")
    assert not conversations.is_named_by_words(database, mine)
    assert not conversations.set_model_title(database, mine, ModelTitle("Of a model"))
    found = {one.id: (one.title, one.title_by) for one in _list(database)}
    assert found == {identity: ("Élan vital", "model"), mine: ("Mine", "person")}


def test_archived_ones_are_listed_by_themselves(database: Database) -> None:
    begun = begin(database)
    identity = begun.question.conversation_id
    conversations.set_archived(database, OWNER, identity, START)
    assert _list(database) == []
    assert [one.id for one in _list(database, state="archived")] == [identity]
    conversations.set_archived(database, OWNER, identity, None)
    assert [one.id for one in _list(database)] == [identity]


def test_one_that_is_used_again_leaves_the_archive(database: Database) -> None:
    begun = begin(database)
    identity = begun.question.conversation_id
    finish(database, begun.answer.id)
    conversations.set_archived(database, OWNER, identity, START)
    ask(database, identity, begun.answer.id, "And for adoptions?")
    assert [one.id for one in _list(database)] == [identity]
    conversations.set_archived(database, OWNER, identity, START)
    new_messages.regenerate(database, OWNER, identity, begun.answer.id, writer())
    assert [one.id for one in _list(database)] == [identity]


def test_nobody_reads_or_changes_those_of_others(database: Database) -> None:
    ann = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    bob = ConversationOwner(add_person(database, "bob@example.com").id)
    identity = begin(database, owner=ann).question.conversation_id
    for stranger in (bob, OWNER):
        assert _list(database, owner=stranger) == []
        for change in _changes(database, stranger, identity):
            with pytest.raises(NotFoundError, match="no such conversation"):
                change()
    assert [one.title for one in _list(database, owner=ann)] == ["How long is leave?"]


def _changes(
    database: Database, owner: ConversationOwner, identity: str
) -> list[Callable[[], object]]:
    named = (database, owner, identity)
    return [
        lambda: conversations.get(*named),
        lambda: conversations.set_title(*named, "mine"),
        lambda: conversations.set_archived(*named, START),
        lambda: conversations.set_leaf(*named, 1),
        lambda: conversations.remove(*named),
    ]


def test_nothing_is_left_of_a_conversation_that_is_deleted(database: Database) -> None:
    kept, gone = begin(database), begin(database)
    for begun in (kept, gone):
        finish(database, begun.answer.id)
    follow_up = ask(database, gone.question.conversation_id, gone.answer.id, "more")
    conversations.remove(database, OWNER, gone.question.conversation_id)
    with database.reading() as connection:
        held = [
            connection.scalar(select(func.count()).select_from(table))
            for table in (message_table, answer_table, turn_table, event_table)
        ]
    assert held == [2, 1, 1, 1]
    assert store(database, follow_up.answer.id, None, None, START) is TurnState.ENDED
