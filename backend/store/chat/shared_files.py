"""Files that projects and assistants hold. Whoever is in a project reads its files, whoever may use an assistant reads those of the
assistant; each stays its uploader's.

Only files of people who are in the project and whose account is active, or of the assistant's owner, count.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Literal, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    delete,
    exists,
    func,
    or_,
    select,
)

from backend.store.accounts.people import SHOWN_NAME
from backend.store.chat.assistants import DEFAULT_ID, Visibility
from backend.store.chat.project_membership import is_in_project
from backend.store.database import Database, exclusive, inserting, select_texts
from backend.store.files import file_labels, file_source
from backend.store.files.user_files import (
    FILE_COLUMNS,
    IS_THERE,
    UserFile,
    is_of,
    make_missing_file_error,
)
from backend.store.owner import ConversationOwner
from backend.store.schema.assistant_tables import assistant_groups, assistants
from backend.store.schema.project_tables import project_members, projects
from backend.store.schema.tables import groups, people
from backend.store.schema.user_file_tables import assistant_files, project_files, user_files
from connectors.errors import ConflictError, InvalidInputError
from indexing.text.normalization import is_storable

HolderKind: TypeAlias = Literal["project", "assistant"]


@dataclass(frozen=True, slots=True)
class FileHolder:
    kind: HolderKind
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHolders:
    """Whose files an answer may draw on besides those of its question."""

    project_id: str | None = None
    assistant_id: str | None = None


NO_HOLDERS = FileHolders()


@dataclass(frozen=True, slots=True)
class SharedFile:
    file: UserFile
    added_at: datetime
    uploader: ConversationOwner
    uploader_name: str
    """The name or the address of a person; nothing for the owner of the machine."""
    is_labelled: bool
    """Whether a search that is restricted to the files of its holder finds it."""


@dataclass(frozen=True, slots=True)
class HoldingAssistant:
    """An assistant with files: for whom it is."""

    id: str
    owner: ConversationOwner
    visibility: Visibility
    groups: frozenset[str]
    """The names of those whose members may use it, where the visibility says so."""


def list_holding_assistants(
    database: Database, assistant_id: str | None = None
) -> list[HoldingAssistant]:
    """Return the assistants that hold files: all, or this one if it does."""
    query = _select_holding()
    if assistant_id is not None:
        query = query.where(assistants.c.id == assistant_id)
    found: dict[str, HoldingAssistant] = {}
    with database.reading() as connection:
        for row in connection.execute(query):
            named = found[row.id].groups if row.id in found else frozenset[str]()
            owner, visibility = ConversationOwner(row.person_id), Visibility(row.visibility)
            more = frozenset() if row.name is None else {row.name}
            found[row.id] = HoldingAssistant(row.id, owner, visibility, named | more)
    return list(found.values())


# To build this query and the next takes longer than to run them, which each look at a document does.
@cache
def _select_holding() -> Select[Any]:
    of_shared = and_(
        assistant_groups.c.assistant_id == assistants.c.id,
        assistants.c.visibility == Visibility.GROUPS,
    )
    return (
        select(assistants.c.id, assistants.c.person_id, assistants.c.visibility, groups.c.name)
        .outerjoin_from(assistants, assistant_groups, of_shared)
        .outerjoin(groups, groups.c.id == assistant_groups.c.group_id)
        .where(exists().where(assistant_files.c.assistant_id == assistants.c.id))
    )


@lru_cache(maxsize=256)
def _select_ids_in_projects(owner: ConversationOwner) -> Select[Any]:
    return _select_of_projects(owner, user_files.c.id)


def list_ids_in_projects(
    database: Database, owner: ConversationOwner, project_id: str | None = None
) -> frozenset[str]:
    """Return the files of the projects that somebody is in: of all of them, or of this one."""
    query = _select_ids_in_projects(owner)
    if project_id is not None:
        query = query.where(projects.c.id == project_id)
    with database.reading() as connection:
        return frozenset(connection.scalars(query))


def count_in_projects(database: Database, owner: ConversationOwner) -> Mapping[str, int]:
    """Return how many files each project has that somebody is in and that has some."""
    query = _select_of_projects(owner, projects.c.id, func.count()).group_by(projects.c.id)
    with database.reading() as connection:
        return dict(connection.execute(query).all())


def list_ids_in_assistants(database: Database, assistant_ids: Collection[str]) -> frozenset[str]:
    """Return the files of these assistants."""
    if not assistant_ids:
        return frozenset()
    with database.reading() as connection:
        named = select_texts(connection.dialect.name, assistant_ids)
        query = _select_of_assistants(user_files.c.id).where(assistants.c.id.in_(named))
        return frozenset(connection.scalars(query))


def list_of(
    database: Database, holder: FileHolder, owner: ConversationOwner | None
) -> list[SharedFile]:
    """Return the files of a project that somebody is in, or of an assistant, in the order in which they were added.

    Args:
        owner: who asks; whether they may use an assistant is decided before.
    """
    query = _select_of(holder, owner)
    if query is None or not is_storable(holder.id):
        return []
    with database.reading() as connection:
        return [_to_shared(row) for row in connection.execute(query)]


def _select_of(holder: FileHolder, owner: ConversationOwner | None) -> Select[Any] | None:
    columns = (*FILE_COLUMNS, user_files.c.person_id, user_files.c.labels_due)
    named = SHOWN_NAME.label("uploader_name")
    match holder.kind:
        case "project" if owner is not None:
            added = project_files.c.added_at
            query = _select_of_projects(owner, *columns, added, named)
            query = query.where(projects.c.id == holder.id)
        case "assistant":
            added = assistant_files.c.added_at
            query = _select_of_assistants(*columns, added, named)
            query = query.where(assistants.c.id == holder.id)
        case _:
            return None
    joined = query.outerjoin(people, people.c.id == user_files.c.person_id)
    return joined.order_by(added, user_files.c.name, user_files.c.id)


def _to_shared(row: Any) -> SharedFile:
    values = {name: getattr(row, name) for name in UserFile.__dataclass_fields__}
    uploader = ConversationOwner(row.person_id)
    return SharedFile(
        UserFile(**values), row.added_at, uploader, row.uploader_name or "", row.labels_due == 0
    )


def name_source(database: Database, owner: ConversationOwner | None, document_id: str) -> str:
    """Return what the source of a file is called to somebody who may read it: their own, or what holds it."""
    of_file = user_files.c.document_id == document_id
    with database.reading() as connection:
        if owner is not None:
            own = select(user_files.c.id).where(is_of(owner), of_file)
            if connection.scalar(own) is not None:
                return file_source.FILES_SOURCE
            held = _select_of_projects(owner, user_files.c.id).where(of_file)
            if connection.scalar(held.limit(1)) is not None:
                return file_source.FILES_OF_SOME_PROJECT
    return file_source.FILES_OF_SOME_ASSISTANT


def add(
    database: Database, owner: ConversationOwner, holder: FileHolder, file_id: str, most: int
) -> bool:
    """Add a file of somebody to their project or assistant, and return whether it was not in it already.

    Raises:
        NotFoundError: it is not theirs, or the holder is gone.
        ConflictError: it holds as many as allowed.
        InvalidInputError: the file could not be read.
    """
    if not is_storable(file_id):
        raise make_missing_file_error()
    table, column = _table_of(holder.kind)
    with database.writing() as connection:
        exclusive(connection)
        if not _may_add(connection, owner, holder):
            raise make_missing_file_error()
        which = select(user_files.c.name, user_files.c.status).where(user_files.c.id == file_id)
        row = connection.execute(which.where(is_of(owner)).with_for_update()).one_or_none()
        if row is None:
            raise make_missing_file_error()
        if row.status == "failed":
            raise InvalidInputError(f"{row.name} could not be read. Choose another file.")
        held = select(table.c.file_id).where(column == holder.id)
        ids = set(connection.scalars(held))
        if file_id in ids:
            return False
        if len(ids) >= most:
            raise ConflictError(f"The limit of {most:,} files is reached. Remove some first.")
        added = {column.name: holder.id, "file_id": file_id, "added_at": datetime.now(UTC)}
        connection.execute(inserting(connection, table).values(added))
        file_labels.mark_due(connection, select(user_files.c.id).where(user_files.c.id == file_id))
        return True


def _may_add(connection: Connection, owner: ConversationOwner, holder: FileHolder) -> bool:
    """Return whether the holder is there, and somebody's; it stays so until the end of the transaction."""
    match holder.kind:
        case "project":
            query = select(projects.c.id).where(projects.c.id == holder.id, is_in_project(owner))
            locked = query.with_for_update(of=projects, read=True)
        case "assistant":
            mine = _is_same(assistants.c.person_id, owner)
            is_made = assistants.c.id != DEFAULT_ID
            query = select(assistants.c.id).where(assistants.c.id == holder.id, mine, is_made)
            locked = query.with_for_update(read=True)
    return connection.execute(locked).one_or_none() is not None


def remove(database: Database, holder: FileHolder, file_id: str) -> None:
    """Take a file from a holder, and mark its labels as due. Raises NotFoundError."""
    table, column = _table_of(holder.kind)
    with database.writing() as connection:
        file_labels.mark_due(connection, select(user_files.c.id).where(user_files.c.id == file_id))
        gone = delete(table).where(column == holder.id, table.c.file_id == file_id)
        if not connection.execute(gone).rowcount:
            raise make_missing_file_error()


def _table_of(kind: HolderKind) -> tuple[Table, ColumnElement[str]]:
    if kind == "project":
        return project_files, project_files.c.project_id
    return assistant_files, assistant_files.c.assistant_id


def _select_of_projects(owner: ConversationOwner, *columns: Any) -> Select[Any]:
    """Select files in projects that somebody is in, of uploaders who are in them too and whose account is active."""
    uploader_is_member = exists().where(
        project_members.c.project_id == projects.c.id,
        project_members.c.person_id == user_files.c.person_id,
    )
    uploader_is_disabled = (
        exists()
        .where(people.c.id == user_files.c.person_id, people.c.disabled_at.is_not(None))
        .correlate(user_files)
    )
    owner_uploaded = or_(
        projects.c.person_id == user_files.c.person_id,
        and_(projects.c.person_id.is_(None), user_files.c.person_id.is_(None)),
    )
    return (
        select(*columns)
        .select_from(project_files)
        .join(projects, projects.c.id == project_files.c.project_id)
        .join(user_files, user_files.c.id == project_files.c.file_id)
        .where(IS_THERE, is_in_project(owner), or_(owner_uploaded, uploader_is_member))
        .where(~uploader_is_disabled)
    )


def _select_of_assistants(*columns: Any) -> Select[Any]:
    """Select files of assistants, which are their owners'."""
    owner_uploaded = or_(
        assistants.c.person_id == user_files.c.person_id,
        and_(assistants.c.person_id.is_(None), user_files.c.person_id.is_(None)),
    )
    return (
        select(*columns)
        .select_from(assistant_files)
        .join(assistants, assistants.c.id == assistant_files.c.assistant_id)
        .join(user_files, user_files.c.id == assistant_files.c.file_id)
        .where(IS_THERE, owner_uploaded)
    )


def _is_same(column: ColumnElement[Any], owner: ConversationOwner) -> ColumnElement[bool]:
    return column.is_(None) if owner.person_id is None else column == owner.person_id
