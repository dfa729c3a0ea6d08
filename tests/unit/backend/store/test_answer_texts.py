"""Answers are searched by what they say: within one's own conversations, those that were used last."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from backend.access.roles import Role
from backend.store.chat import answer_texts, conversation_copies, conversations, messages
from backend.store.chat.answer_texts import ListSpan, MatchingAnswer, list_candidates, list_matches
from backend.store.chat.conversations import ListState
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, START, ask, begin, finish

EVERYWHERE = ListSpan(None, None)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def _answered(
    database: Database,
    text: str,
    *documents: str,
    owner: ConversationOwner = OWNER,
    question: str = "How?",
    minute: int = 0,
) -> str:
    begun = begin(database, question, owner, minute)
    finish(database, begun.answer.id, text, documents)
    return begun.question.conversation_id


def _find(
    database: Database,
    *words: str,
    owner: ConversationOwner = OWNER,
    state: ListState = "active",
    span: ListSpan = EVERYWHERE,
) -> list[str]:
    return list_candidates(database, owner, state, words, span)


def test_each_word_is_looked_for_in_answers_too(database: Database) -> None:
    told = _answered(database, "Das Drehmoment ist **12 Nm** im Élan.", question="Wie fest?")
    other = _answered(database, "Nothing of it.", minute=1)
    assert _find(database, "drehMOMENT") == _find(database, "elan", "12", "FEST") == [told]
    assert _find(database, "drehmoment", "nothing") == []
    assert _find(database, "n") == [other, told]


def test_signs_of_patterns_are_letters_like_others(database: Database) -> None:
    percent = _answered(database, "It is 50% of it/them.")
    _answered(database, "It is 500 of xthem.")
    underlined = _answered(database, "Set max_size.", minute=1)
    _answered(database, "Set maxisize.")
    assert _find(database, "50%") == _find(database, "/them") == [percent]
    assert _find(database, "max_size") == [underlined]
    assert _find(database, "%") == [percent]
    assert _find(database, "_") == [underlined]


def test_the_addresses_of_links_are_not_searched(database: Database) -> None:
    cited = _answered(database, "Tight [[1]](https://wiki.test/torque). See [the list](/rotor).")
    assert _find(database, "torque") == _find(database, "rotor") == _find(database, "https") == []
    assert _find(database, "[[1]].", "list") == [cited]


def test_an_answer_is_found_once_it_has_ended(database: Database) -> None:
    begun = begin(database)
    assert _find(database, "weeks") == []
    finish(database, begun.answer.id, "26 weeks.")
    assert _find(database, "weeks") == [begun.question.conversation_id]


def test_an_answer_that_was_copied_is_found_in_its_copy(database: Database) -> None:
    ann = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    begun = begin(database)
    finish(database, begun.answer.id, "26 weeks.", ("wiki:leave",))
    path = messages.list_path(database, begun.answer.id, 2)
    copied = conversation_copies.copy(database, ann, "Leave", path, START)
    assert _find(database, "weeks", owner=ann) == [copied]
    (match,) = list_matches(database, [copied], ["weeks"])
    assert match.answers == (MatchingAnswer(frozenset({"weeks"}), ("wiki:leave",)),)


def test_nothing_of_others_is_found(database: Database) -> None:
    ann = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    bob = ConversationOwner(add_person(database, "bob@example.com").id)
    mine = _answered(database, "The torque.", owner=ann)
    _answered(database, "The torque.", owner=bob)
    assert _find(database, "torque", owner=ann) == [mine]
    assert _find(database, "torque") == []


def test_the_archive_is_searched_by_itself(database: Database) -> None:
    kept = _answered(database, "The torque.")
    archived = _answered(database, "The torque.", minute=1)
    conversations.set_archived(database, OWNER, archived, datetime.now(UTC))
    assert _find(database, "torque") == [kept]
    assert _find(database, "torque", state="archived") == [archived]


def test_a_span_of_the_list_is_searched_by_itself(database: Database) -> None:
    found = [_answered(database, "The torque.", minute=minute // 2) for minute in range(6)]
    everywhere = _find(database, "torque")
    assert sorted(everywhere) == sorted(found)
    positions = [conversations.get(database, OWNER, one).position for one in everywhere]
    span = ListSpan(positions[1], positions[4])
    assert _find(database, "torque", span=span) == everywhere[2:5]


def test_those_used_last_are_searched_whatever_they_say(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_texts, "MOST_SEARCHED", 2)
    _answered(database, "The torque.")
    newer = _answered(database, "The torque.", minute=1)
    _answered(database, "Something else.", minute=2)
    assert _find(database, "torque") == [newer]


def test_matches_say_where_each_word_stands(database: Database) -> None:
    begun = begin(database, "How tight?")
    conversation = begun.question.conversation_id
    finish(database, begun.answer.id, "The torque is 12 Nm.", ("wiki:a", "wiki:b"))
    following = ask(database, conversation, begun.answer.id, "And the rotor?")
    finish(database, following.answer.id, "12 as well.", ("wiki:c",))
    ask(database, conversation, None, "Another?")
    (match,) = list_matches(database, [conversation], ["12", "torque", "tight", "rotor"])
    assert match.id == conversation
    assert match.asked == {"tight", "rotor"}
    assert {(each.words, each.document_ids) for each in match.answers} == {
        (frozenset({"12", "torque"}), ("wiki:a", "wiki:b")),
        (frozenset({"12"}), ("wiki:c",)),
    }


def test_a_query_may_have_many_words(database: Database) -> None:
    found = _answered(database, " ".join(f"w{number}" for number in range(500)))
    words = [f"w{number}" for number in range(500)]
    assert _find(database, *words) == [found]
    (match,) = list_matches(database, [found], words)
    assert match.answers[0].words == set(words)
