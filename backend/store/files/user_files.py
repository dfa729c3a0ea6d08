"""Files that people upload. Each belongs to a person, or to the owner of a machine without accounts; everybody else's do not exist."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from backend.store.database import Database, exclusive
from backend.store.files import waiting_uploads
from backend.store.files.file_removal import DELETED, IS_USED, MARKED
from backend.store.owner import ConversationOwner
from backend.store.schema.user_file_tables import (
    assistant_files,
    message_files,
    project_files,
    user_files,
)
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from indexing.text.normalization import is_storable

FileStatus: TypeAlias = Literal["reading", "ready", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFile:
    id: str
    name: str
    media_type: str
    size: int
    """Bytes."""
    text_length: int | None
    """Characters; None until it is read."""
    status: FileStatus
    problem: str | None
    """Why it could not be read."""
    document_id: str
    created_at: datetime
    used: bool
    """Whether a question, a project or an assistant has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    document_id: str
    data: bytes


FILE_COLUMNS = (
    user_files.c.id,
    user_files.c.name,
    user_files.c.media_type,
    user_files.c.size,
    user_files.c.text_length,
    user_files.c.status,
    user_files.c.problem,
    user_files.c.document_id,
    user_files.c.created_at,
    IS_USED.label("used"),
)


def make_missing_file_error() -> NotFoundError:
    """Return the error for a file that is missing, the same as for another person's."""
    return NotFoundError("There is no such file.")


def add(database: Database, owner: ConversationOwner, file: NewFile, most: int) -> UserFile:
    """Add a file that is to be read; one that the owner has already, of this name and content, is returned instead.

    Raises:
        ConflictError: the owner has as many files as allowed.
        TemporarilyUnavailableError: too much waits to be read already, of the owner or of all.
    """
    row = {
        "id": file.id,
        "person_id": owner.person_id,
        "name": file.name,
        "media_type": file.media_type,
        "size": file.size,
        "sha256": file.sha256,
        "status": "reading",
        "document_id": file.document_id,
        "created_at": datetime.now(UTC),
    }
    with database.writing() as connection:
        exclusive(connection)
        same = and_(user_files.c.name == file.name, user_files.c.sha256 == file.sha256)
        query = select(*FILE_COLUMNS).where(is_of(owner), same, user_files.c.status != "failed")
        if (held := connection.execute(query.limit(1)).one_or_none()) is not None:
            return read_file_row(held)
        count = select(func.count()).select_from(user_files).where(is_of(owner))
        if (connection.scalar(count) or 0) >= most:
            raise ConflictError(
                f"You have reached the limit of {most:,} files. Delete some that you no longer need."
            )
        connection.execute(insert(user_files).values(row))
        waiting_uploads.keep(connection, owner, file.id, file.data)
        return read_file_row(connection.execute(_select(owner, file.id)).one())


def find(database: Database, owner: ConversationOwner, file_id: str) -> UserFile:
    """Return a file of this owner. Raises NotFoundError."""
    if not is_storable(file_id):
        raise make_missing_file_error()
    with database.reading() as connection:
        row = connection.execute(_select(owner, file_id)).one_or_none()
    if row is None:
        raise make_missing_file_error()
    return read_file_row(row)


def list_files(database: Database, owner: ConversationOwner, limit: int) -> list[UserFile]:
    """Return the files of an owner, the newest first."""
    query = select(*FILE_COLUMNS).where(is_of(owner))
    query = query.order_by(user_files.c.created_at.desc(), user_files.c.id).limit(limit)
    with database.reading() as connection:
        return list(map(read_file_row, connection.execute(query)))


def mark_for_removal(database: Database, owner: ConversationOwner, file_id: str) -> None:
    """Mark a file for removal; from now on it does not exist for its owner.

    Raises:
        NotFoundError
    """
    if not is_storable(file_id):
        raise make_missing_file_error()
    marked = update(user_files).where(is_of(owner), user_files.c.id == file_id)
    with database.writing() as connection:
        changed = connection.execute(marked.values(status=MARKED, picture=None))
        if not changed.rowcount:
            raise make_missing_file_error()
        waiting_uploads.remove(connection, file_id)


def mark_if_unused(database: Database, owner: ConversationOwner, file_id: str) -> bool:
    """Mark a file for removal, as `mark_for_removal`; False where something has it.

    Raises:
        NotFoundError
    """
    if not is_storable(file_id):
        raise make_missing_file_error()
    one = select(user_files.c.id).where(is_of(owner), user_files.c.id == file_id)
    unused = update(user_files).where(user_files.c.id == file_id, ~IS_USED)
    with database.writing() as connection:
        # Locked before it is looked at: no question takes it in between.
        if connection.execute(one.with_for_update()).one_or_none() is None:
            raise make_missing_file_error()
        changed = connection.execute(unused.values(status=MARKED, picture=None))
        if changed.rowcount:
            waiting_uploads.remove(connection, file_id)
    return bool(changed.rowcount)


def finish(
    database: Database,
    file_id: str,
    text_length: int,
    picture: bytes | None,
) -> bool:
    """Record that a file is read; False if it was marked for removal meanwhile."""
    with database.writing() as connection:
        waiting_uploads.remove(connection, file_id)
        return _end(connection, file_id, status="ready", text_length=text_length, picture=picture)


def fail(database: Database, file_id: str, tries: int, problem: str) -> bool:
    """Record that a file cannot be read; False if it was marked for removal, or claimed by another since this try."""
    with database.writing() as connection:
        is_own = waiting_uploads.give_up(connection, file_id, tries)
        return is_own and _end(connection, file_id, status="failed", problem=problem)


def _end(connection: Connection, file_id: str, **values: object) -> bool:
    ended = update(user_files).where(user_files.c.id == file_id, user_files.c.status == "reading")
    return bool(connection.execute(ended.values(values)).rowcount)


def list_marked(database: Database) -> dict[str, str]:
    """Return the documents of the files that are to be removed, by the ids of the files."""
    query = select(user_files.c.id, user_files.c.document_id)
    with database.reading() as connection:
        return dict(connection.execute(query.where(user_files.c.status == MARKED)).all())


def remove(database: Database, file_ids: Sequence[str]) -> None:
    """Remove what is kept of files that are no longer in the index; of those of questions it stays known that there was one."""
    marked = and_(user_files.c.id.in_(file_ids), user_files.c.status == MARKED)
    emptied = {"name": "", "media_type": "", "size": 0, "sha256": "", "text_length": None}
    emptied |= {"problem": None, "picture": None, "labels_due": 0, "status": DELETED}
    # In the order in which a conversation that is deleted locks its files, so that no two transactions deadlock.
    locked = select(user_files.c.id).where(marked).order_by(user_files.c.id).with_for_update()
    with database.writing() as connection:
        connection.execute(locked)
        connection.execute(delete(user_files).where(marked, ~_IS_OF_QUESTION))
        for table in (project_files, assistant_files):
            gone = select(user_files.c.id).where(marked)
            connection.execute(delete(table).where(table.c.file_id.in_(gone)))
        connection.execute(update(user_files).where(marked, _IS_OF_QUESTION).values(emptied))


def attach(
    connection: Connection, owner: ConversationOwner, message_id: int, file_ids: Sequence[str]
) -> None:
    """Give files to a question.

    Raises:
        NotFoundError, ConflictError, InvalidInputError
    """
    distinct = list(dict.fromkeys(file_ids))
    if not distinct:
        return
    if not all(map(is_storable, distinct)):
        raise make_missing_file_error()
    # Locked in one order, so that no two transactions deadlock, and none of them is marked for removal meanwhile.
    query = select(user_files.c.id, user_files.c.name, user_files.c.status).where(
        is_of(owner), user_files.c.id.in_(distinct)
    )
    found = connection.execute(query.order_by(user_files.c.id).with_for_update()).all()
    if len(found) < len(distinct):
        raise make_missing_file_error()
    for row in found:
        _check_ready(row.name, row.status)
    rows = [
        {"message_id": message_id, "file_id": each, "place": place}
        for place, each in enumerate(distinct)
    ]
    connection.execute(insert(message_files), rows)


def _check_ready(name: str, status: FileStatus) -> None:
    if status == "reading":
        raise ConflictError(f"{name} is still being read. Ask again in a moment.")
    if status == "failed":
        raise InvalidInputError(f"{name} could not be read. Remove it, then ask again.")


def list_of_messages(
    database: Database, message_ids: Sequence[int]
) -> Mapping[int, tuple[UserFile, ...]]:
    """Return the files of each of these questions, in the order in which they were given."""
    query = (
        select(*FILE_COLUMNS, message_files.c.message_id)
        .join(user_files, user_files.c.id == message_files.c.file_id)
        .where(message_files.c.message_id.in_(message_ids), IS_THERE)
        .order_by(message_files.c.message_id, message_files.c.place)
    )
    found = defaultdict[int, list[UserFile]](list)
    with database.reading() as connection:
        for row in connection.execute(query):
            found[row.message_id].append(read_file_row(row))
    return {message: tuple(of_message) for message, of_message in found.items()}


def count_deleted(database: Database, message_ids: Sequence[int]) -> Mapping[int, int]:
    """Return how many files of each of these questions were deleted, of those that have any."""
    query = select(message_files.c.message_id, func.count()).join(user_files)
    query = query.where(message_files.c.message_id.in_(message_ids), ~IS_THERE)
    with database.reading() as connection:
        return dict(connection.execute(query.group_by(message_files.c.message_id)).all())


def count_deleted_of(database: Database, message_ids: Sequence[int]) -> int:
    """Return how many files of these questions together were deleted; one file may be of several."""
    files = select(func.count(message_files.c.file_id.distinct())).join_from(
        message_files, user_files
    )
    query = files.where(message_files.c.message_id.in_(message_ids), ~IS_THERE)
    with database.reading() as connection:
        return connection.scalars(query).one()


def read_pictures(database: Database, file_ids: Sequence[str]) -> Mapping[str, bytes]:
    """Return the pictures among these files, whoever's they are."""
    query = select(user_files.c.id, user_files.c.picture).where(
        user_files.c.id.in_(file_ids), IS_THERE, user_files.c.picture.is_not(None)
    )
    with database.reading() as connection:
        return dict(connection.execute(query).all())


IS_THERE = user_files.c.status.not_in((MARKED, DELETED))
_IS_OF_QUESTION = exists().where(message_files.c.file_id == user_files.c.id).correlate(user_files)


def is_of(owner: ConversationOwner) -> ColumnElement[bool]:
    if owner.person_id is None:
        return and_(user_files.c.person_id.is_(None), IS_THERE)
    return and_(user_files.c.person_id == owner.person_id, IS_THERE)


def _select(owner: ConversationOwner, file_id: str) -> Select[Any]:
    return select(*FILE_COLUMNS).where(is_of(owner), user_files.c.id == file_id)


def read_file_row(row: Row[Any]) -> UserFile:
    return UserFile(
        id=row.id,
        name=row.name,
        media_type=row.media_type,
        size=row.size,
        text_length=row.text_length,
        status=row.status,
        problem=row.problem,
        document_id=row.document_id,
        created_at=row.created_at,
        used=row.used,
    )
