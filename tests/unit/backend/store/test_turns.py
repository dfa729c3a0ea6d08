"""The events of a turn are stored in portions; what was ended by others takes no more."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from backend.conversations.turn_events import NumberedEvent, decode_portions
from backend.store.chat import messages, turns
from backend.store.chat.turns import EVENTS_KEPT, LEASE, Ending, FollowedTurn, Portion, TurnState
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import turns as turn_rows
from tests.support.conversations import ELSEWHERE, OWNER, START, begin, finish, store, text_portion
from tests.support.databases import Databases

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def _follow(database: Database, conversation: str, message: int, after: int) -> FollowedTurn:
    found = turns.follow(database, OWNER, conversation, message, after)
    assert found
    return found


def test_events_come_behind_any_number(database: Database) -> None:
    begun = begin(database)
    message, conversation = begun.answer.id, begun.answer.conversation_id
    for first, texts in ((1, "abc"), (4, "d"), (5, "ef")):
        portion = text_portion(message, first, *texts)
        assert store(database, message, portion, None, NOW) is TurnState.RUNNING
    for after in range(8):
        found = _follow(database, conversation, message, after)
        events = list(decode_portions(found.payloads, after))
        assert events == [
            NumberedEvent(number, "text", {"text": text})
            for number, text in enumerate("abcdef", start=1)
            if number > after
        ]


def test_a_portion_whose_storing_was_not_confirmed_is_stored_once_more(database: Database) -> None:
    begun = begin(database)
    message, conversation = begun.answer.id, begun.answer.conversation_id
    for texts in ("ab", "abc"):
        store(database, message, text_portion(message, 1, *texts), None, NOW)
    found = _follow(database, conversation, message, 0)
    assert [one.number for one in decode_portions(found.payloads)] == [1, 2, 3]
    assert [one.number for one in decode_portions(found.payloads, 2)] == [3]


def test_what_an_answer_rests_on_is_stored_with_its_events(database: Database) -> None:
    begun = begin(database)
    message, conversation = begun.answer.id, begun.answer.conversation_id
    portion = text_portion(message, 1, "a", documents=("wiki:a", "wiki:b"))
    store(database, message, portion, None, NOW)
    assert _follow(database, conversation, message, 0).document_ids == ("wiki:a", "wiki:b")
    store(database, message, text_portion(message, 2, "b"), None, NOW)
    assert _follow(database, conversation, message, 1).document_ids == ("wiki:a", "wiki:b")


def test_a_turn_that_has_ended_takes_no_more(database: Database) -> None:
    begun = begin(database)
    message, conversation = begun.answer.id, begun.answer.conversation_id
    finish(database, message, "the answer")
    late = Ending(message_id=message, status="failed", text="")
    portion = text_portion(message, 2, "late")
    assert store(database, message, portion, late, NOW) is TurnState.ENDED
    assert store(database, message, None, None, NOW) is TurnState.ENDED
    found = _follow(database, conversation, message, 0)
    assert (found.status, len(found.payloads)) == ("finished", 1)
    assert messages.get(database, OWNER, conversation, message).text == "the answer"
    assert turns.list_open(database) == []


def test_the_writer_and_its_lease_are_known(database: Database) -> None:
    begun = begin(database)
    (turn,) = turns.list_open(database)
    assert (turn.message_id, turn.holder, turn.lease_until) == (
        begun.answer.id,
        ELSEWHERE,
        START + LEASE,
    )
    assert store(database, begun.answer.id, None, None, NOW) is TurnState.RUNNING
    assert turns.list_open(database)[0].lease_until == NOW + LEASE


def test_a_stop_is_asked_of_what_runs_alone(database: Database) -> None:
    running, ended = begin(database).answer.id, begin(database).answer.id
    finish(database, ended)

    def states() -> list[TurnState]:
        return [store(database, one, None, None, NOW) for one in (running, ended, 99)]

    assert states() == [TurnState.RUNNING, TurnState.ENDED, TurnState.ENDED]
    for message in (running, ended, 99):
        turns.ask_to_stop(database, message, NOW)
    assert states() == [TurnState.STOPPING, TurnState.ENDED, TurnState.ENDED]


def test_of_two_that_take_a_turn_over_one_ends_it(database: Database) -> None:
    begun = begin(database)
    message, conversation = begun.answer.id, begun.answer.conversation_id
    store(database, message, text_portion(message, 1, *"abc"), None, NOW)
    seen: list[tuple[int, int]] = []

    def end(last: int, payloads: tuple[str, ...]) -> tuple[Portion, Ending]:
        seen.append((last, len(payloads)))
        ending = Ending(message_id=message, status="interrupted", text="abc")
        return text_portion(message, last + 1, "end"), ending

    (found,) = turns.list_open(database)
    assert turns.take_over(database, found, end, NOW)
    assert not turns.take_over(database, found, end, NOW)
    assert seen == [(3, 1)]
    assert _follow(database, conversation, message, 3).status == "interrupted"


def test_a_turn_whose_lease_was_renewed_meanwhile_is_not_taken_over(database: Database) -> None:
    message = begin(database).answer.id
    (found,) = turns.list_open(database)
    store(database, message, None, None, NOW)

    def end(last: int, payloads: tuple[str, ...]) -> tuple[Portion, Ending]:
        raise AssertionError((last, payloads))

    assert not turns.take_over(database, found, end, NOW)
    assert store(database, message, None, None, NOW) is TurnState.RUNNING


def test_events_are_forgotten_an_hour_after_the_end_and_the_answer_is_not(
    database: Database,
) -> None:
    begun = begin(database)
    message, conversation = begun.answer.id, begun.answer.conversation_id
    ending = Ending(message_id=message, status="finished", text="kept")
    store(database, message, text_portion(message, 1, "a"), ending, START - EVENTS_KEPT)
    assert _follow(database, conversation, message, 0).payloads
    begin(database, minute=1)
    found = _follow(database, conversation, message, 0)
    assert (found.status, found.payloads) == ("finished", ())
    assert messages.get(database, OWNER, conversation, message).text == "kept"


def test_turns_that_others_are_about_to_delete_are_not_waited_for(postgresql: Databases) -> None:
    """Who deletes a conversation locks its turns in another order: to wait for them could be a deadlock."""
    with postgresql.new() as url, closing(open_database(url)) as database:
        message = begin(database).answer.id
        ending = Ending(message_id=message, status="finished", text="kept")
        store(database, message, None, ending, START - EVENTS_KEPT)
        with database.writing() as deleting:
            deleting.execute(select(turn_rows.c.message_id).with_for_update()).all()
            begin(database, minute=1)
        begin(database, minute=2)
        with database.reading() as connection:
            kept = connection.scalars(select(turn_rows.c.message_id)).all()
        assert message not in kept


def test_others_follow_nothing(database: Database) -> None:
    begun = begin(database)
    message, conversation = begun.answer.id, begun.answer.conversation_id
    assert turns.follow(database, ConversationOwner(7), conversation, message, 0) is None
    assert turns.follow(database, OWNER, "x", message, 0) is None
    assert turns.follow(database, OWNER, conversation, begun.question.id, 0) is None
