"""The messages of a conversation: a tree of questions and answers."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NewType, TypeAlias

from sqlalchemy import Connection, RowMapping, literal, or_, select

from backend.store.chat.conversations import is_owned
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import conversations, messages
from connectors.errors import NotFoundError
from indexing.text.normalization import is_storable

Role: TypeAlias = Literal["user", "assistant"]
AnswerStatus: TypeAlias = Literal["running", "finished", "stopped", "failed", "interrupted"]
SearchScope: TypeAlias = Literal["files", "everything"]
"""What is searched where the files of a question are too long to be read whole."""
Json: TypeAlias = Mapping[str, Any]
QuestionText = NewType("QuestionText", str)
"""What an asker wrote, which rests on no document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    id: int
    conversation_id: str
    parent_id: int | None
    """The message that it follows; None for a first question."""
    role: Role
    text: str
    """Of an answer that is being written: nothing yet."""
    filters: Json | None
    """What a question is narrowed to."""
    search_scope: SearchScope | None
    """Of a question with files; None for an answer."""
    mode: Json | None = None
    """How the sources of a question are found, as it was asked for; None for the default, and for an answer."""
    created_at: datetime
    status: AnswerStatus | None
    """None for a question."""
    answer: Json | None
    """A finished answer, as it is sent; of one that is not complete, what was said, in the same form, where it cites something."""
    problem: Json | None
    """Why an answer failed."""
    document_ids: tuple[str, ...]
    """All documents that an answer rests on: the model was given them, or it quotes or cites them."""
    losses: tuple[Json, ...]
    """Steps that an answer was written without: `step` and `reason` of each."""


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """Where a message stands in the tree."""

    id: int
    parent_id: int | None


def read_question_text(message: Message) -> QuestionText:
    """Return what its asker wrote.

    Raises:
        ValueError: it is an answer.
    """
    if message.role != "user":
        raise ValueError(f"message {message.id} is no question")
    return QuestionText(message.text)


MESSAGE_COLUMNS = (
    messages.c.id,
    messages.c.conversation_id,
    messages.c.parent_id,
    messages.c.role,
    messages.c.text,
    messages.c.filters,
    messages.c.search_scope,
    messages.c.mode,
    messages.c.created_at,
    messages.c.status,
    messages.c.answer,
    messages.c.problem,
    messages.c.document_ids,
    messages.c.losses,
)


def make_missing_message_error() -> NotFoundError:
    return NotFoundError("There is no such message in this conversation.")


def get(
    database: Database, owner: ConversationOwner, conversation_id: str, message_id: int
) -> Message:
    """Return a message of a conversation of this owner.

    Raises:
        NotFoundError
    """
    if not is_storable(conversation_id):
        raise make_missing_message_error()
    with database.reading() as connection:
        return get_in(connection, owner, conversation_id, message_id)


def get_in(
    connection: Connection, owner: ConversationOwner, conversation_id: str, message_id: int
) -> Message:
    query = select(*MESSAGE_COLUMNS).join(conversations)
    query = query.where(is_owned(owner, conversation_id), messages.c.id == message_id)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise make_missing_message_error()
    return read_message(row)


def list_path(database: Database, message_id: int, limit: int) -> list[Message]:
    """Return the last messages of the path from the first question to this one, in their order."""
    columns = (messages.c.id, messages.c.parent_id)
    end = select(*columns, literal(0).label("depth")).where(messages.c.id == message_id)
    path = end.cte("path", recursive=True)
    above = select(*columns, (path.c.depth + 1).label("depth"))
    path = path.union_all(above.where(messages.c.id == path.c.parent_id, path.c.depth < limit - 1))
    query = select(*MESSAGE_COLUMNS).join(path, messages.c.id == path.c.id)
    with database.reading() as connection:
        rows = connection.execute(query.order_by(path.c.depth.desc()))
        return [read_message(row) for row in rows.mappings()]


def find_newest_below(database: Database, message: Message) -> int:
    """Return the newest message among this one and all that follow it; nothing follows that one.

    The tree is walked here: a recursive query could scan the table once for every step.
    """
    query = select(messages.c.id, messages.c.parent_id).order_by(messages.c.id)
    of_conversation = messages.c.conversation_id == message.conversation_id
    newest, below = message.id, {message.id}
    with database.reading() as connection:
        # A message is newer than the one that it follows.
        for row in connection.execute(query.where(of_conversation, messages.c.id > message.id)):
            if row.parent_id in below:
                below.add(row.id)
                newest = row.id
    return newest


def list_newer(database: Database, conversation_id: str, message_id: int) -> list[MessagePlace]:
    """Return where the messages of a conversation stand that were made after one, in the order in which they were made."""
    query = select(messages.c.id, messages.c.parent_id).order_by(messages.c.id)
    newer = (messages.c.conversation_id == conversation_id) & (messages.c.id > message_id)
    with database.reading() as connection:
        return [
            MessagePlace(row.id, row.parent_id) for row in connection.execute(query.where(newer))
        ]


def find_siblings(database: Database, path: Sequence[Message]) -> dict[int, tuple[int, ...]]:
    """Return, by the id of each message, those that stand in its place, in the order in which they were made."""
    parents = [one.parent_id for one in path if one.parent_id is not None]
    roots = [one.conversation_id for one in path if one.parent_id is None]
    first = messages.c.parent_id.is_(None) & messages.c.conversation_id.in_(roots)
    query = select(messages.c.id, messages.c.parent_id)
    query = query.where(or_(messages.c.parent_id.in_(parents), first)).order_by(messages.c.id)
    children = defaultdict[int | None, list[int]](list)
    with database.reading() as connection:
        for row in connection.execute(query):
            children[row.parent_id].append(row.id)
    return {one.id: tuple(children[one.parent_id]) for one in path}


def read_message(row: Mapping[str, Any] | RowMapping) -> Message:
    lists = {"document_ids": tuple(row["document_ids"]), "losses": tuple(row["losses"] or ())}
    return Message(**{**row, **lists})
