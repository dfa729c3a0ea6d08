"""Conversations are moved into a project, and out of it."""

from sqlalchemy import select, update

from backend.store.chat.conversations import is_owned, make_missing_conversation_error
from backend.store.chat.projects import make_missing_project_error
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import conversations
from backend.store.schema.project_tables import projects


def move(
    database: Database, owner: ConversationOwner, conversation_id: str, project_id: str | None
) -> None:
    """Move a conversation into a project, or out of the one that it is in.

    Raises:
        NotFoundError: the owner has no such conversation, or the project was deleted meanwhile.
    """
    moved = update(conversations).where(is_owned(owner, conversation_id))
    with database.writing() as connection:
        if project_id is not None:
            # It is not deleted before the conversation is in it.
            kept = select(projects.c.id).where(projects.c.id == project_id)
            if connection.scalar(kept.with_for_update(read=True, key_share=True)) is None:
                raise make_missing_project_error()
        if not connection.execute(moved.values(project_id=project_id)).rowcount:
            raise make_missing_conversation_error()
