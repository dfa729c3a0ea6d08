"""Conversations. Each belongs to a person, or to the owner of a machine without accounts; everybody else's do not exist."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NewType, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    or_,
    select,
    update,
)

from backend.store.database import Database
from backend.store.files import file_removal
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import conversations, messages, turns
from connectors.errors import NotFoundError
from indexing.text.normalization import fold, is_storable

TitleBy: TypeAlias = Literal["words", "model", "person"]
"""`words`: the first ones of its first question."""
ListState: TypeAlias = Literal["archived", "active"]
ModelTitle = NewType("ModelTitle", str)
"""What a language model wrote of a question alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    id: str
    title: str
    title_by: TitleBy
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    leaf_id: int | None
    """The message whose path from the first question is shown."""
    assistant_id: str | None
    """Which assistant answers, whether there still is one or not; None for the default one."""
    project_id: str | None
    running: bool
    """Whether an answer of it is being written."""

    @property
    def position(self) -> "ListPosition":
        return ListPosition(self.updated_at, self.id)


@dataclass(frozen=True, slots=True)
class ListPosition:
    """The last conversation of a page of the list."""

    updated_at: datetime
    id: str


_RUNNING = (
    exists()
    .where(
        messages.c.conversation_id == conversations.c.id,
        turns.c.message_id == messages.c.id,
        turns.c.ended_at.is_(None),
    )
    .correlate(conversations)
)
_COLUMNS = (
    conversations.c.id,
    conversations.c.title,
    conversations.c.title_by,
    conversations.c.created_at,
    conversations.c.updated_at,
    conversations.c.archived_at,
    conversations.c.leaf_id,
    conversations.c.assistant_id,
    conversations.c.project_id,
    _RUNNING.label("running"),
)


NEWEST_FIRST = (conversations.c.updated_at.desc(), conversations.c.id.desc())
"""The order of the list."""


def make_missing_conversation_error() -> NotFoundError:
    """Return the error for a conversation that is missing, the same as for another person's."""
    return NotFoundError("There is no such conversation.")


def of_owner(owner: ConversationOwner) -> ColumnElement[bool]:
    if owner.person_id is None:
        return conversations.c.person_id.is_(None)
    return conversations.c.person_id == owner.person_id


def is_in(state: ListState) -> ColumnElement[bool]:
    archived = conversations.c.archived_at.is_not(None)
    return archived if state == "archived" else ~archived


def is_owned(owner: ConversationOwner, conversation_id: str) -> ColumnElement[bool]:
    return and_(conversations.c.id == conversation_id, of_owner(owner))


IS_OWNED = and_(
    conversations.c.id == bindparam("conversation_id"),
    conversations.c.person_id.is_not_distinct_from(bindparam("person_id")),
)
"""The rule of `is_owned`, for statements that are built once."""


def lock(connection: Connection, owner: ConversationOwner, conversation_id: str) -> None:
    """Keep others from changing or deleting a conversation until the end of the transaction.

    Raises:
        NotFoundError
    """
    if not is_storable(conversation_id):
        raise make_missing_conversation_error()
    which = select(conversations.c.id).where(is_owned(owner, conversation_id))
    if connection.scalar(which.with_for_update()) is None:
        raise make_missing_conversation_error()


def get(database: Database, owner: ConversationOwner, conversation_id: str) -> Conversation:
    """Return a conversation of this owner. Raises NotFoundError."""
    if not is_storable(conversation_id):
        raise make_missing_conversation_error()
    query = select(*_COLUMNS).where(is_owned(owner, conversation_id))
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise make_missing_conversation_error()
    return Conversation(**row)


def list_page(
    database: Database,
    owner: ConversationOwner,
    *,
    state: ListState,
    words: Sequence[str],
    before: ListPosition | None,
    limit: int,
) -> list[Conversation]:
    """Return those in which each word stands in the title or in a question, the last used one first."""
    query = select(*_COLUMNS).where(of_owner(owner), is_in(state))
    if not all(map(is_storable, words)):
        return []
    query = query.where(*map(_holds, words))
    if before is not None:
        query = query.where(is_after(before))
    return _list(database, query, limit)


def list_these(
    database: Database, owner: ConversationOwner, ids: Collection[str], limit: int
) -> list[Conversation]:
    """Return those of the conversations with these ids that the owner has, the last used one first."""
    return _list(
        database, select(*_COLUMNS).where(of_owner(owner), conversations.c.id.in_(ids)), limit
    )


def _list(database: Database, query: Select[Any], limit: int) -> list[Conversation]:
    ordered = query.order_by(*NEWEST_FIRST).limit(limit)
    with database.reading() as connection:
        return [Conversation(**row) for row in connection.execute(ordered).mappings()]


def _holds(word: str) -> ColumnElement[bool]:
    folded = fold(word)
    asked = exists().where(
        messages.c.conversation_id == conversations.c.id,
        messages.c.folded_text.contains(folded, autoescape=True),
    )
    return or_(conversations.c.folded_title.contains(folded, autoescape=True), asked)


def is_after(position: ListPosition) -> ColumnElement[bool]:
    """Return whether a conversation follows this position in the list, which begins with the newest."""
    same = conversations.c.updated_at == position.updated_at
    earlier = conversations.c.updated_at < position.updated_at
    return or_(earlier, and_(same, conversations.c.id < position.id))


def set_title(
    database: Database, owner: ConversationOwner, conversation_id: str, title: str
) -> None:
    """Set the title that its owner gives a conversation. Raises NotFoundError."""
    _update(
        database, owner, conversation_id, title=title, title_by="person", folded_title=fold(title)
    )


def is_named_by_words(database: Database, conversation_id: str) -> bool:
    """Return whether the title of a conversation is the first words of its question still."""
    query = select(conversations.c.title_by).where(conversations.c.id == conversation_id)
    with database.reading() as connection:
        return connection.scalar(query) == "words"


def set_model_title(database: Database, conversation_id: str, title: ModelTitle) -> bool:
    """Replace the first words of the question, but nothing that a person or a model chose; whether it was done."""
    made_of_words = and_(conversations.c.id == conversation_id, conversations.c.title_by == "words")
    named = update(conversations).where(made_of_words)
    values = {"title": title, "title_by": "model", "folded_title": fold(title)}
    with database.writing() as connection:
        return connection.execute(named.values(values)).rowcount == 1


def set_archived(
    database: Database, owner: ConversationOwner, conversation_id: str, at: datetime | None
) -> None:
    """Archive a conversation; with None, take it out of the archive. Raises NotFoundError."""
    _update(database, owner, conversation_id, archived_at=at)


def set_leaf(
    database: Database, owner: ConversationOwner, conversation_id: str, message_id: int
) -> None:
    """Set the message at which the shown path of a conversation ends. Raises NotFoundError."""
    _update(database, owner, conversation_id, leaf_id=message_id)


def set_assistant(
    database: Database, owner: ConversationOwner, conversation_id: str, assistant_id: str | None
) -> None:
    """Set who answers in a conversation; with None, the default assistant does. Raises NotFoundError."""
    _update(database, owner, conversation_id, assistant_id=assistant_id)


def _update(
    database: Database, owner: ConversationOwner, conversation_id: str, **values: object
) -> None:
    changed = update(conversations).where(is_owned(owner, conversation_id)).values(values)
    with database.writing() as connection:
        if not connection.execute(changed).rowcount:
            raise make_missing_conversation_error()


def remove(database: Database, owner: ConversationOwner, conversation_id: str) -> None:
    """Remove a conversation with all its messages, the turns that write them, and files that nothing else uses.

    Raises:
        NotFoundError
    """
    with database.writing() as connection:
        lock(connection, owner, conversation_id)
        # In the order in which processes that write answers lock rows, so that no two transactions deadlock.
        connection.execute(_select_turns(conversation_id).with_for_update(of=turns)).all()
        own_files = file_removal.list_attached(connection, conversation_id)
        connection.execute(delete(conversations).where(conversations.c.id == conversation_id))
        file_removal.mark_unused(connection, own_files)


def _select_turns(conversation_id: str) -> Select[tuple[int]]:
    query = select(turns.c.message_id).join(messages).order_by(turns.c.message_id)
    return query.where(messages.c.conversation_id == conversation_id)
