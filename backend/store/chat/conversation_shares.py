"""Conversations that their owners share by a link. A link that leads nowhere any more is as one that never was."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from backend.store.chat import conversations as repository
from backend.store.chat.conversations import TitleBy
from backend.store.chat.messages import get_in
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.random_ids import make_random_id
from backend.store.schema.conversation_tables import conversations
from backend.store.schema.sharing_tables import conversation_shares as shares
from backend.store.schema.tables import people
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from indexing.text.normalization import is_storable


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    id: str
    message_id: int
    """The path to this answer is shared; nothing that follows it."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedConversation:
    """What a link leads to."""

    message_id: int
    title: str
    title_by: TitleBy
    shared_at: datetime


_COLUMNS = (shares.c.id, shares.c.message_id, shares.c.created_at)


def make_missing_share_error() -> NotFoundError:
    """Return the error for what is missing, the same as for what was taken back, deleted or disabled."""
    return NotFoundError("Nothing is shared under this link, or sharing has ended.")


def share(
    database: Database,
    owner: ConversationOwner,
    conversation_id: str,
    message_id: int,
    now: datetime,
) -> Share:
    """Share the path to an answer. A conversation that is shared already keeps its link, which leads to this path now.

    Raises:
        NotFoundError
        InvalidInputError: the message is a question.
        ConflictError: the answer is being written.
    """
    with database.writing() as connection:
        repository.lock(connection, owner, conversation_id)
        _check_answer(connection, owner, conversation_id, message_id)
        moved = update(shares).where(shares.c.conversation_id == conversation_id)
        moved = moved.values(message_id=message_id, created_at=now)
        if not connection.execute(moved).rowcount:
            row = {
                "id": make_random_id(),
                "conversation_id": conversation_id,
                "message_id": message_id,
                "created_at": now,
            }
            connection.execute(insert(shares).values(row))
        query = select(*_COLUMNS).where(shares.c.conversation_id == conversation_id)
        return Share(**connection.execute(query).mappings().one())


def _check_answer(
    connection: Connection, owner: ConversationOwner, conversation_id: str, message_id: int
) -> None:
    message = get_in(connection, owner, conversation_id, message_id)
    if message.role != "assistant":
        raise InvalidInputError("This message is a question. Give the id of an answer.")
    if message.status == "running":
        raise ConflictError("This answer is still being written. Share it when it is complete.")


def find(database: Database, owner: ConversationOwner, conversation_id: str) -> Share | None:
    """Return how a conversation is shared; None if it is not.

    Raises:
        NotFoundError: the owner has no such conversation.
    """
    repository.get(database, owner, conversation_id)
    query = select(*_COLUMNS).where(shares.c.conversation_id == conversation_id)
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    return None if row is None else Share(**row)


def remove(database: Database, owner: ConversationOwner, conversation_id: str) -> None:
    """Take a link back: it leads nowhere for ever. Does nothing where the conversation is not shared.

    Raises:
        NotFoundError: the owner has no such conversation.
    """
    with database.writing() as connection:
        repository.lock(connection, owner, conversation_id)
        connection.execute(delete(shares).where(shares.c.conversation_id == conversation_id))


def get_shared(database: Database, share_id: str, reader: ConversationOwner) -> SharedConversation:
    """Return what a link leads to, for somebody who is signed in or owns the machine.

    Raises:
        NotFoundError: it never led anywhere, was taken back, its conversation was deleted, or its owner was disabled.
    """
    if not is_storable(share_id):
        raise make_missing_share_error()
    query = select(
        shares.c.message_id,
        conversations.c.title,
        conversations.c.title_by,
        shares.c.created_at.label("shared_at"),
    )
    query = query.join_from(shares, conversations).outerjoin(people)
    query = query.where(shares.c.id == share_id, _is_open_to(reader))
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise make_missing_share_error()
    return SharedConversation(**row)


def _is_open_to(reader: ConversationOwner) -> ColumnElement[bool]:
    """Return whether a share is for a reader: a person's is for people, a machine owner's for the owner alone."""
    if reader.person_id is None:
        return conversations.c.person_id.is_(None)
    return people.c.id.is_not(None) & people.c.disabled_at.is_(None)
