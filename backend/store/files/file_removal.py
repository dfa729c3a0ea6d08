"""Mark files for removal, in the transaction that makes them superfluous; a sweep removes them from the index, then their rows.

So whatever process dies in between, nothing that is marked is shown or given to a question, and the next sweep goes on.
"""

from collections.abc import Collection

from sqlalchemy import Connection, exists, or_, select, update

from backend.store.schema.conversation_tables import messages
from backend.store.schema.user_file_tables import (
    assistant_files,
    message_files,
    project_files,
    user_files,
)

MARKED = "given up"
DELETED = "deleted"
"""Of a file that is gone, but that a question had: nothing else is kept of it."""
IS_USED = or_(
    *(
        exists().where(table.c.file_id == user_files.c.id).correlate(user_files)
        for table in (message_files, project_files, assistant_files)
    )
)


def list_attached(connection: Connection, conversation_id: str) -> list[str]:
    """Return the files of a conversation, locked until the end of the transaction: no question takes one of them meanwhile."""
    of_conversation = (
        select(message_files.c.file_id)
        .join(messages, messages.c.id == message_files.c.message_id)
        .where(messages.c.conversation_id == conversation_id)
    )
    query = select(user_files.c.id).where(user_files.c.id.in_(of_conversation))
    return list(connection.scalars(query.order_by(user_files.c.id).with_for_update()))


def mark_unused(connection: Connection, file_ids: Collection[str]) -> None:
    """Mark those of the files that no question, project or assistant has."""
    marked = update(user_files).where(user_files.c.id.in_(file_ids), ~IS_USED)
    connection.execute(marked.values(status=MARKED, picture=None))
