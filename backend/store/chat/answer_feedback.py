"""What people say of the answers that they were given: one opinion an answer, that of the owner of its conversation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from sqlalchemy import RowMapping, Select, delete, insert, select

from backend.store.chat.conversations import get as get_conversation
from backend.store.chat.conversations import of_owner
from backend.store.chat.messages import (
    MESSAGE_COLUMNS,
    Message,
    get_in,
    make_missing_message_error,
    read_message,
)
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import conversations, messages
from backend.store.schema.sharing_tables import answer_feedback
from backend.store.schema.tables import people
from indexing.text.normalization import is_storable

Rating: TypeAlias = Literal["good", "bad", "wrong_source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    rating: Rating
    comment: str
    source: int | None
    """The number of the source that is wrong, where that is the rating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFeedback:
    id: int
    """The newest has the highest."""
    given_at: datetime
    email: str | None
    """Whose it is; None: of the owner of the machine."""
    feedback: Feedback
    question: Message
    answer: Message


_FEEDBACK = (answer_feedback.c.rating, answer_feedback.c.comment, answer_feedback.c.source)


def put(
    database: Database,
    owner: ConversationOwner,
    conversation_id: str,
    message_id: int,
    feedback: Feedback,
    now: datetime,
) -> None:
    """Replace what was said of an answer.

    Raises:
        NotFoundError
    """
    row = {
        "message_id": message_id,
        "rating": feedback.rating,
        "comment": feedback.comment,
        "source": feedback.source,
        "given_at": now,
    }
    _replace(database, owner, conversation_id, message_id, row)


def remove(
    database: Database, owner: ConversationOwner, conversation_id: str, message_id: int
) -> None:
    """Take back what was said of an answer, if anything was.

    Raises:
        NotFoundError
    """
    _replace(database, owner, conversation_id, message_id, None)


def _replace(
    database: Database,
    owner: ConversationOwner,
    conversation_id: str,
    message_id: int,
    row: Mapping[str, object] | None,
) -> None:
    if not is_storable(conversation_id):
        raise make_missing_message_error()
    with database.writing() as connection:
        get_in(connection, owner, conversation_id, message_id)
        # Of two that are given at once, the later one waits, and counts.
        locked = select(messages.c.id).where(messages.c.id == message_id).with_for_update()
        connection.execute(locked)
        former = answer_feedback.c.message_id == message_id
        connection.execute(delete(answer_feedback).where(former))
        if row is not None:
            connection.execute(insert(answer_feedback).values(row))


def list_of_conversation(
    database: Database, owner: ConversationOwner, conversation_id: str
) -> list[GivenFeedback]:
    """Return what was said of the answers of a conversation.

    Raises:
        NotFoundError
    """
    get_conversation(database, owner, conversation_id)
    query = _select().where(conversations.c.id == conversation_id, of_owner(owner))
    return _read(database, query.order_by(answer_feedback.c.id))


def list_page(
    database: Database, rating: Rating | None, before: int | None, limit: int
) -> list[GivenFeedback]:
    """Return what everybody said, the newest first."""
    query = _select().order_by(answer_feedback.c.id.desc()).limit(limit)
    if rating is not None:
        query = query.where(answer_feedback.c.rating == rating)
    if before is not None:
        query = query.where(answer_feedback.c.id < before)
    return _read(database, query)


_ANSWER = "answer_"
_QUESTION = "question_"
_question = messages.alias()


def _select() -> Select[tuple[object, ...]]:
    answers = [each.label(f"{_ANSWER}{each.key}") for each in MESSAGE_COLUMNS]
    questions = [_question.c[each.key].label(f"{_QUESTION}{each.key}") for each in MESSAGE_COLUMNS]
    given = (answer_feedback.c.id, answer_feedback.c.given_at, people.c.email)
    query = select(*given, *_FEEDBACK, *answers, *questions).select_from(answer_feedback)
    query = query.join(messages, messages.c.id == answer_feedback.c.message_id)
    query = query.join(_question, _question.c.id == messages.c.parent_id)
    query = query.join(conversations, conversations.c.id == messages.c.conversation_id)
    return query.outerjoin(people, people.c.id == conversations.c.person_id)


def _read(database: Database, query: Select[tuple[object, ...]]) -> list[GivenFeedback]:
    with database.reading() as connection:
        return [_read_row(row) for row in connection.execute(query).mappings()]


def _read_row(row: RowMapping) -> GivenFeedback:
    return GivenFeedback(
        id=row["id"],
        given_at=row["given_at"],
        email=row["email"],
        feedback=Feedback(rating=row["rating"], comment=row["comment"], source=row["source"]),
        question=_read_message(row, _QUESTION),
        answer=_read_message(row, _ANSWER),
    )


def _read_message(row: RowMapping, prefix: str) -> Message:
    return read_message({each.key: row[f"{prefix}{each.key}"] for each in MESSAGE_COLUMNS})
