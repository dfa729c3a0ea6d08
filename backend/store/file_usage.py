"""Where files are used: in how many conversations, projects and assistants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, Table, distinct, func, select

from backend.store.conversation_tables import messages
from backend.store.database import Database
from backend.store.user_file_tables import assistant_files, message_files, project_files


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUsage:
    conversations: int
    projects: int
    assistants: int


def count_uses(database: Database, file_ids: Sequence[str]) -> Mapping[str, FileUsage]:
    """Return how often each of these files is used."""
    asked = select(message_files.c.file_id, func.count(distinct(messages.c.conversation_id)))
    asked = asked.join(messages, messages.c.id == message_files.c.message_id)
    with database.reading() as connection:
        conversations = _count(connection, asked, message_files, file_ids)
        projects = _count_holders(connection, project_files, file_ids)
        assistants = _count_holders(connection, assistant_files, file_ids)
    return {
        one: FileUsage(
            conversations=conversations.get(one, 0),
            projects=projects.get(one, 0),
            assistants=assistants.get(one, 0),
        )
        for one in file_ids
    }


def _count_holders(
    connection: Connection, table: Table, file_ids: Sequence[str]
) -> Mapping[str, int]:
    return _count(connection, select(table.c.file_id, func.count()), table, file_ids)


def _count(
    connection: Connection, query: Select[Any], table: Table, file_ids: Sequence[str]
) -> Mapping[str, int]:
    of_files = query.where(table.c.file_id.in_(file_ids)).group_by(table.c.file_id)
    return dict(connection.execute(of_files).all())
