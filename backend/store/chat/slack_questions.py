"""The messages of Slack that ask something: each is taken once, by whichever process, and kept until it is forgotten."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, or_, select, update

from backend.store.chat.messages import MESSAGE_COLUMNS, Message, read_message
from backend.store.database import Database, inserting
from backend.store.schema.conversation_tables import messages
from backend.store.schema.slack_tables import slack_questions as questions
from backend.store.sync.runs import Process, holder_columns, read_holder


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """A message as Slack names it."""

    team_id: str
    channel_id: str
    ts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSlackQuestion:
    message: SlackMessage
    thread_ts: str
    user_id: str


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """Where the answer to a question of Slack is kept."""

    conversation_id: str
    message_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenQuestion:
    question: NewSlackQuestion
    reply_ts: str | None
    """The message of the bot that says how far the answer is."""
    answer: StoredAnswer | None
    holder: Process
    """The process that took it."""
    taken_at: datetime


def take(database: Database, question: NewSlackQuestion, holder: Process, now: datetime) -> bool:
    """Take a question, and return whether nobody has before; of several at once, one is the first."""
    row = {
        **_key(question.message),
        "thread_ts": question.thread_ts,
        "user_id": question.user_id,
        "taken_at": now,
        **holder_columns(holder),
    }
    with database.writing() as connection:
        added = inserting(connection, questions).on_conflict_do_nothing()
        taken = added.values(row).returning(questions.c.message_ts)
        return connection.scalar(taken) is not None


def set_reply(database: Database, message: SlackMessage, reply_ts: str) -> None:
    _update(database, message, reply_ts=reply_ts)


def set_answer(database: Database, message: SlackMessage, answer: StoredAnswer) -> None:
    _update(
        database,
        message,
        conversation_id=answer.conversation_id,
        answer_id=answer.message_id,
    )


def end(database: Database, message: SlackMessage, now: datetime) -> None:
    """Record that nothing more is to be said to a question."""
    _update(database, message, ended_at=now)


def _update(database: Database, message: SlackMessage, **values: object) -> None:
    with database.writing() as connection:
        connection.execute(update(questions).where(_is(message)).values(values))


def find(database: Database, message: SlackMessage) -> TakenQuestion | None:
    with database.reading() as connection:
        row = connection.execute(select(questions).where(_is(message))).one_or_none()
    return None if row is None else _read(row)


def list_unended(database: Database) -> Sequence[TakenQuestion]:
    """Return the questions that are being answered, or were when their process died, oldest first."""
    query = select(questions).where(questions.c.ended_at.is_(None)).order_by(questions.c.taken_at)
    with database.reading() as connection:
        return [_read(row) for row in connection.execute(query)]


def find_last_answer(database: Database, question: NewSlackQuestion) -> StoredAnswer | None:
    """Return the last answer that the same person was given in the thread of a question."""
    query = select(questions).where(
        _is_answered_in(question), questions.c.user_id == question.user_id
    )
    with database.reading() as connection:
        row = connection.execute(
            query.order_by(questions.c.answer_id.desc()).limit(1)
        ).one_or_none()
    return None if row is None else _read(row).answer


def list_of_others(database: Database, question: NewSlackQuestion, limit: int) -> list[Message]:
    """Return the last questions of others in the thread of a question with their answers, oldest first."""
    answers = select(questions.c.answer_id).where(
        _is_answered_in(question), questions.c.user_id != question.user_id
    )
    answers = answers.order_by(questions.c.answer_id.desc()).limit(limit)
    asked = select(messages.c.parent_id).where(messages.c.id.in_(answers))
    both = or_(messages.c.id.in_(answers), messages.c.id.in_(asked))
    query = select(*MESSAGE_COLUMNS).where(both).order_by(messages.c.id)
    with database.reading() as connection:
        return [read_message(row) for row in connection.execute(query).mappings()]


def _is_answered_in(question: NewSlackQuestion) -> ColumnElement[bool]:
    return and_(
        questions.c.team_id == question.message.team_id,
        questions.c.channel_id == question.message.channel_id,
        questions.c.thread_ts == question.thread_ts,
        questions.c.answer_id.is_not(None),
        questions.c.ended_at.is_not(None),
    )


def forget_before(database: Database, moment: datetime) -> None:
    """Forget what was taken before then: nothing asks of it any more."""
    with database.writing() as connection:
        connection.execute(delete(questions).where(questions.c.taken_at < moment))


def _key(message: SlackMessage) -> dict[str, str]:
    return {
        "team_id": message.team_id,
        "channel_id": message.channel_id,
        "message_ts": message.ts,
    }


def _is(message: SlackMessage) -> ColumnElement[bool]:
    return and_(*(questions.c[name] == value for name, value in _key(message).items()))


def _read(row: Row[Any]) -> TakenQuestion:
    has_answer = row.conversation_id is not None and row.answer_id is not None
    question = NewSlackQuestion(
        message=SlackMessage(row.team_id, row.channel_id, row.message_ts),
        thread_ts=row.thread_ts,
        user_id=row.user_id,
    )
    return TakenQuestion(
        question=question,
        reply_ts=row.reply_ts,
        answer=StoredAnswer(row.conversation_id, row.answer_id) if has_answer else None,
        holder=read_holder(row),
        taken_at=row.taken_at,
    )
