"""Let go of files, in the transaction that removes what holds them; they stay their uploaders'."""

from typing import Any

from sqlalchemy import Connection, Table, delete, select

from backend.store.files.file_labels import mark_due
from backend.store.schema.user_file_tables import assistant_files, project_files, user_files


def release_of_project(connection: Connection, project_id: str) -> None:
    _release(connection, project_files, project_files.c.project_id == project_id)


def release_of_assistant(connection: Connection, assistant_id: str) -> None:
    _release(connection, assistant_files, assistant_files.c.assistant_id == assistant_id)


def release_of_member(connection: Connection, project_id: str, person_id: int) -> None:
    """Let go of the files of somebody who leaves a project."""
    own = select(user_files.c.id).where(user_files.c.person_id == person_id)
    held = project_files.c
    _release(connection, project_files, held.project_id == project_id, held.file_id.in_(own))


def _release(connection: Connection, table: Table, *which: Any) -> None:
    mark_due(connection, select(table.c.file_id).where(*which))
    connection.execute(delete(table).where(*which))
