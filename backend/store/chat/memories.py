"""What people asked Quarry to remember. Each memory belongs to a person, or to the owner of a machine without accounts;
everybody else's do not exist."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, and_, delete, func, insert, or_, select, update

from backend.store.database import Database, exclusive, select_texts
from backend.store.owner import ConversationOwner
from backend.store.random_ids import make_random_id
from backend.store.schema.memory_tables import memories
from connectors.errors import ConflictError, NotFoundError
from indexing.text.normalization import is_storable

MOST_MEMORIES = 500
"""Of one owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    id: str
    text: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryPosition:
    """The last memory of a page of the list."""

    created_at: datetime
    id: str


_COLUMNS = (memories.c.id, memories.c.text, memories.c.created_at, memories.c.updated_at)


def make_missing_memory_error() -> NotFoundError:
    """Return the error for a memory that is missing, the same as for another person's."""
    return NotFoundError("There is no such memory.")


def add(database: Database, owner: ConversationOwner, text: str) -> Memory:
    """Add a memory, and return it. Raises ConflictError: the owner has as many memories as allowed."""
    now = datetime.now(UTC)
    memory = Memory(id=make_random_id(), text=text, created_at=now, updated_at=now)
    row = {"id": memory.id, "text": text, "created_at": now, "updated_at": now}
    count = select(func.count()).select_from(memories).where(_is_of(owner))
    with database.writing() as connection:
        exclusive(connection)
        if (connection.scalar(count) or 0) >= MOST_MEMORIES:
            raise ConflictError(
                f"You have {MOST_MEMORIES:,} memories already. Delete some that you do not need any more."
            )
        connection.execute(insert(memories).values(person_id=owner.person_id, **row))
    return memory


def get(database: Database, owner: ConversationOwner, memory_id: str) -> Memory:
    """Return a memory of this owner. Raises NotFoundError."""
    if not is_storable(memory_id):
        raise make_missing_memory_error()
    query = select(*_COLUMNS).where(_is_owned(owner, memory_id))
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise make_missing_memory_error()
    return Memory(**row)


def list_page(
    database: Database, owner: ConversationOwner, before: MemoryPosition | None, limit: int
) -> list[Memory]:
    """Return the memories of an owner behind a position, the newest first."""
    query = select(*_COLUMNS).where(_is_of(owner))
    if before is not None:
        query = query.where(_is_after(before))
    query = query.order_by(memories.c.created_at.desc(), memories.c.id.desc())
    with database.reading() as connection:
        return [Memory(**row) for row in connection.execute(query.limit(limit)).mappings()]


def set_text(database: Database, owner: ConversationOwner, memory_id: str, text: str) -> None:
    """Replace the text of a memory. Raises NotFoundError."""
    if not is_storable(memory_id):
        raise make_missing_memory_error()
    changed = update(memories).where(_is_owned(owner, memory_id))
    with database.writing() as connection:
        values = {"text": text, "updated_at": datetime.now(UTC)}
        if not connection.execute(changed.values(values)).rowcount:
            raise make_missing_memory_error()


def remove(database: Database, owner: ConversationOwner, memory_id: str) -> None:
    """Delete a memory. Raises NotFoundError."""
    if not is_storable(memory_id):
        raise make_missing_memory_error()
    with database.writing() as connection:
        if not connection.execute(delete(memories).where(_is_owned(owner, memory_id))).rowcount:
            raise make_missing_memory_error()


def remove_all(database: Database, owner: ConversationOwner) -> int:
    """Return how many there were."""
    with database.writing() as connection:
        return connection.execute(delete(memories).where(_is_of(owner))).rowcount


def find_own(
    database: Database, owner: ConversationOwner, memory_ids: Collection[str]
) -> frozenset[str]:
    """Return those of the memories that exist and are the owner's."""
    with database.reading() as connection:
        named = memories.c.id.in_(select_texts(connection.dialect.name, memory_ids))
        return frozenset(connection.scalars(select(memories.c.id).where(_is_of(owner), named)))


def _is_of(owner: ConversationOwner) -> ColumnElement[bool]:
    if owner.person_id is None:
        return memories.c.person_id.is_(None)
    return memories.c.person_id == owner.person_id


def _is_owned(owner: ConversationOwner, memory_id: str) -> ColumnElement[bool]:
    return and_(memories.c.id == memory_id, _is_of(owner))


def _is_after(position: MemoryPosition) -> ColumnElement[bool]:
    """Return whether a memory follows this position in the list, which begins with the newest."""
    same = memories.c.created_at == position.created_at
    earlier = memories.c.created_at < position.created_at
    return or_(earlier, and_(same, memories.c.id < position.id))
