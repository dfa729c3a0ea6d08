"""In how many conversations files are used."""

from collections.abc import Mapping, Sequence

from sqlalchemy import distinct, func, select

from backend.store.conversation_tables import messages
from backend.store.database import Database
from backend.store.user_file_tables import message_files


def count_conversations(database: Database, file_ids: Sequence[str]) -> Mapping[str, int]:
    """Return in how many conversations each file is; files that are in none are left out."""
    number = func.count(distinct(messages.c.conversation_id))
    query = select(message_files.c.file_id, number).join(
        messages, messages.c.id == message_files.c.message_id
    )
    query = query.where(message_files.c.file_id.in_(file_ids)).group_by(message_files.c.file_id)
    with database.reading() as connection:
        return dict(connection.execute(query).all())
