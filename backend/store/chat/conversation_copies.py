"""Copies of messages into a conversation of somebody else, who may go on there."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, insert, update

from backend.store.chat import answer_texts
from backend.store.chat.messages import Message
from backend.store.chat.new_messages import insert_conversation
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import conversations, messages
from indexing.text.normalization import fold


def copy(
    database: Database,
    owner: ConversationOwner,
    title: str,
    path: Sequence[Message],
    now: datetime,
) -> str:
    """Make a conversation of these messages, each following the one before it, and return its id.

    What an answer rests on is copied with it, and what it was written without.
    """
    with database.writing() as connection:
        conversation_id = insert_conversation(connection, owner, title, now)
        last: int | None = None
        for message in path:
            last = _copy_message(connection, conversation_id, last, message)
        shown = update(conversations).where(conversations.c.id == conversation_id)
        connection.execute(shown.values(leaf_id=last))
    return conversation_id


def _copy_message(
    connection: Connection, conversation_id: str, parent_id: int | None, message: Message
) -> int:
    is_question = message.role == "user"
    row = {
        "conversation_id": conversation_id,
        "parent_id": parent_id,
        "role": message.role,
        "text": message.text,
        "folded_text": fold(message.text) if is_question else None,
        "filters": {} if is_question else None,
        "mode": message.mode and dict(message.mode),
        "created_at": message.created_at,
        "status": message.status,
        "answer": message.answer and dict(message.answer),
        "document_ids": list(message.document_ids),
        "losses": list(map(dict, message.losses)) or None,
    }
    added = insert(messages).values(row).returning(messages.c.id)
    copied: int = connection.execute(added).scalar_one()
    if not is_question:
        answer_texts.insert_text(connection, copied, message.text)
    return copied
