"""Questions of Slack: taken once, and found by their threads."""

import threading
from datetime import UTC, datetime, timedelta

from backend.store.chat import slack_questions
from backend.store.chat.conversations import remove
from backend.store.chat.slack_questions import NewSlackQuestion, SlackMessage, StoredAnswer
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from tests.support.conversations import ELSEWHERE, begin, finish
from tests.support.store import Store

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def question(
    ts: str, thread: str = "1.0", user: str = "U1", channel: str = "C1"
) -> NewSlackQuestion:
    return NewSlackQuestion(message=SlackMessage("T1", channel, ts), thread_ts=thread, user_id=user)


def take(database: Database, asked: NewSlackQuestion, day: int = 0) -> bool:
    return slack_questions.take(database, asked, ELSEWHERE, NOW + timedelta(days=day))


def answer(database: Database, asked: NewSlackQuestion, text: str = "Leave?") -> StoredAnswer:
    """Take a question, and answer it."""
    assert take(database, asked)
    begun = begin(database, text)
    finish(database, begun.answer.id)
    stored = StoredAnswer(begun.answer.conversation_id, begun.answer.id)
    slack_questions.set_answer(database, asked.message, stored)
    slack_questions.end(database, asked.message, NOW)
    return stored


def test_of_those_who_take_a_question_at_once_one_is_the_first(store: Store) -> None:
    taken: list[bool] = []
    threads = [
        threading.Thread(target=lambda: taken.append(take(store.database, question("1.1"))))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False] * 5 + [True]
    assert take(store.database, question("1.1", channel="C2"))


def test_what_is_not_ended_is_listed_until_it_is(store: Store) -> None:
    first, second = question("1.1"), question("1.2")
    assert take(store.database, first)
    assert take(store.database, second, day=1)
    slack_questions.set_reply(store.database, first.message, "9.9")
    listed = slack_questions.list_unended(store.database)
    assert [(one.question, one.reply_ts, one.answer) for one in listed] == [
        (first, "9.9", None),
        (second, None, None),
    ]
    assert listed[0].holder == ELSEWHERE
    slack_questions.end(store.database, first.message, NOW)
    assert [one.question for one in slack_questions.list_unended(store.database)] == [second]


def test_the_last_answer_of_a_person_in_a_thread_is_found(store: Store) -> None:
    database = store.database
    answer(database, question("1.1"))
    last = answer(database, question("1.2"))
    answer(database, question("1.3", user="U2"))
    answer(database, question("1.4", thread="2.0"))
    answer(database, question("1.5", channel="C2"))
    assert take(database, question("1.6"))
    assert slack_questions.find_last_answer(database, question("1.7")) == last
    assert slack_questions.find_last_answer(database, question("1.7", user="U3")) is None


def test_what_others_asked_in_a_thread_is_listed_with_the_answers(store: Store) -> None:
    database = store.database
    answer(database, question("1.1", user="U2"), "one")
    answer(database, question("1.2"), "own")
    answer(database, question("1.3", user="U3"), "two")
    answer(database, question("1.4", user="U3", thread="2.0"), "elsewhere")

    def told(limit: int) -> list[str]:
        found = slack_questions.list_of_others(database, question("1.9"), limit)
        return [one.text for one in found]

    assert told(9) == ["one", "26 weeks.", "two", "26 weeks."]
    assert told(1) == ["two", "26 weeks."]


def test_a_deleted_conversation_is_no_answer_any_more_and_the_question_stays_taken(
    store: Store,
) -> None:
    kept = answer(store.database, question("1.1"))
    remove(store.database, ConversationOwner(None), kept.conversation_id)
    found = slack_questions.find(store.database, question("1.1").message)
    assert found is not None
    assert found.answer is None
    assert not take(store.database, question("1.1"))
    assert slack_questions.find(store.database, question("7.7").message) is None


def test_what_is_old_is_forgotten(store: Store) -> None:
    assert take(store.database, question("1.1"))
    assert take(store.database, question("1.2"), day=2)
    slack_questions.forget_before(store.database, NOW + timedelta(days=1))
    assert [one.question.message.ts for one in slack_questions.list_unended(store.database)] == [
        "1.2"
    ]
