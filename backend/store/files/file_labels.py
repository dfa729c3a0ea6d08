"""In the index a file carries the ids of the projects and assistants that hold it, by which a search is restricted to their files.

They never decide who may read a file. A file whose labels in the index may be others than these is due: whoever changes what
holds it says so in the same transaction, and a sweep writes them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, Table, select, update

from backend.store.database import Database
from backend.store.files.file_source import FILES_SOURCE
from backend.store.files.user_files import IS_THERE
from backend.store.owner import ConversationOwner
from backend.store.schema.user_file_tables import assistant_files, project_files, user_files


@dataclass(frozen=True, slots=True)
class FileLabels:
    projects: frozenset[str] = frozenset()
    assistants: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DueFile:
    id: str
    document_id: str
    owner: ConversationOwner
    change: int
    """The number of its last change."""
    labels: FileLabels = field(default_factory=FileLabels)


def mark_due(connection: Connection, file_ids: Select[tuple[str]]) -> None:
    """Have the labels of files written anew; they stay locked until the end of the transaction."""
    query = select(user_files.c.id).where(user_files.c.id.in_(file_ids))
    # In one order, so that no two transactions deadlock.
    found = list(connection.scalars(query.order_by(user_files.c.id).with_for_update()))
    if found:
        _mark(connection, user_files.c.id.in_(found))


def mark_all_due(database: Database) -> None:
    """Have the labels of all files written anew that anything holds, because the index is about to be another one."""
    with database.writing() as connection:
        mark_due(connection, _select_held())


def _mark(connection: Connection, which: Any) -> None:
    changed = update(user_files).where(which)
    connection.execute(changed.values(labels_due=user_files.c.labels_due + 1))


def _select_held() -> Any:
    return select(project_files.c.file_id).union(select(assistant_files.c.file_id))


def list_due(database: Database, limit: int) -> list[DueFile]:
    """Return files whose labels are to be written, with these."""
    columns = user_files.c
    query = select(columns.id, columns.document_id, columns.person_id, columns.labels_due).where(
        columns.labels_due > 0, columns.status == "ready"
    )
    with database.reading() as connection:
        rows = connection.execute(query.limit(limit)).all()
        labels = _read(connection, [row.document_id for row in rows]) if rows else {}
    return [
        DueFile(
            row.id,
            row.document_id,
            ConversationOwner(row.person_id),
            row.labels_due,
            labels.get(row.document_id, FileLabels()),
        )
        for row in rows
    ]


def find_of_files(database: Database, document_ids: Collection[str]) -> Mapping[str, FileLabels]:
    """Return the labels of those of these documents that are files; those that nothing holds are absent."""
    files = [each for each in document_ids if each.startswith(f"{FILES_SOURCE}:")]
    if not files:
        return {}
    with database.reading() as connection:
        return _read(connection, files)


def finish(database: Database, file: DueFile) -> None:
    """Record that labels are written; if they were changed since, they are due once more."""
    which = (user_files.c.id == file.id, user_files.c.labels_due == file.change)
    with database.writing() as connection:
        finished = connection.execute(update(user_files).where(*which).values(labels_due=0))
        if not finished.rowcount:
            # Another process may have written the newer ones before these.
            _mark(connection, user_files.c.id == file.id)


def _read(connection: Connection, document_ids: Collection[str]) -> Mapping[str, FileLabels]:
    projects = _read_holders(connection, project_files, "project_id", document_ids)
    assistants = _read_holders(connection, assistant_files, "assistant_id", document_ids)
    return {
        each: FileLabels(projects.get(each, frozenset()), assistants.get(each, frozenset()))
        for each in projects.keys() | assistants.keys()
    }


def _read_holders(
    connection: Connection, table: Table, holder: str, document_ids: Collection[str]
) -> Mapping[str, frozenset[str]]:
    query = (
        select(user_files.c.document_id, table.c[holder])
        .join_from(table, user_files)
        .where(user_files.c.document_id.in_(document_ids), IS_THERE)
    )
    found: dict[str, frozenset[str]] = {}
    for document_id, holding in connection.execute(query):
        found[document_id] = found.get(document_id, frozenset()) | {holding}
    return found
