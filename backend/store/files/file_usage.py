"""Where files are used: in which conversations, projects and assistants, and in how many."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, Table, distinct, func, select

from backend.store.database import Database
from backend.store.schema.assistant_tables import assistants
from backend.store.schema.conversation_tables import conversations, messages
from backend.store.schema.project_tables import projects
from backend.store.schema.user_file_tables import assistant_files, message_files, project_files


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUsage:
    conversations: int
    projects: int
    assistants: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUses:
    """What has a file, by name; only its owner is shown it."""

    conversations: tuple[str, ...]
    """Their titles, the last used one first."""
    projects: tuple[str, ...]
    assistants: tuple[str, ...]


def list_uses(database: Database, file_ids: Sequence[str]) -> Mapping[str, FileUses]:
    """Return what has each of these files."""
    asked = select(message_files.c.file_id, conversations.c.title)
    asked = asked.join(messages, messages.c.id == message_files.c.message_id)
    asked = asked.join(conversations, conversations.c.id == messages.c.conversation_id)
    asked = asked.group_by(message_files.c.file_id, conversations.c.id)
    asked = asked.order_by(conversations.c.updated_at.desc(), conversations.c.id)
    with database.reading() as connection:
        in_conversations = _name(connection, asked, message_files, file_ids)
        in_projects = _name_holders(connection, project_files, projects, file_ids)
        in_assistants = _name_holders(connection, assistant_files, assistants, file_ids)
    return {
        one: FileUses(
            conversations=tuple(in_conversations.get(one, ())),
            projects=tuple(in_projects.get(one, ())),
            assistants=tuple(in_assistants.get(one, ())),
        )
        for one in file_ids
    }


def _name_holders(
    connection: Connection, table: Table, holders: Table, file_ids: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    query = select(table.c.file_id, holders.c.name).join(holders)
    ordered = query.order_by(func.lower(holders.c.name), holders.c.id)
    return _name(connection, ordered, table, file_ids)


def _name(
    connection: Connection, query: Select[Any], table: Table, file_ids: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    found = defaultdict[str, list[str]](list)
    for file_id, name in connection.execute(query.where(table.c.file_id.in_(file_ids))):
        found[file_id].append(name)
    return found


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
