"""Add questions and answers to conversations. Each is one transaction, with the turn that writes the answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from backend.store.chat import conversations as repository
from backend.store.chat import messages as tree
from backend.store.chat import turns
from backend.store.chat.messages import MESSAGE_COLUMNS, Message, SearchScope, read_message
from backend.store.database import Database
from backend.store.files import user_files
from backend.store.owner import ConversationOwner
from backend.store.random_ids import make_random_id
from backend.store.schema.conversation_tables import conversations, messages
from backend.store.schema.project_tables import projects
from backend.store.sync.runs import Process
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from indexing.text.normalization import fold

MOST_RUNNING = 3
"""Answers of a conversation that are written at the same time."""
_TOO_MANY = f"{MOST_RUNNING} answers of this conversation are being written already. Wait for one, or stop one."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuestion:
    text: str
    filters: Mapping[str, Any]
    files: tuple[str, ...] = ()
    """Ids of the asker's files."""
    search_scope: SearchScope = "files"
    mode: Mapping[str, Any] | None = None
    """How its sources are found; None for the default."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A question, and its answer that is to be written."""

    question: Message
    answer: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSetting:
    """What a conversation begins with."""

    assistant_id: str | None = None
    """None for the default assistant."""
    project_id: str | None = None


EVERYDAY = ConversationSetting()


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that writes an answer, and when it begins."""

    process: Process
    now: datetime


def begin_conversation(
    database: Database,
    owner: ConversationOwner,
    title: str,
    question: NewQuestion,
    writer: Writer,
    setting: ConversationSetting = EVERYDAY,
) -> Begun:
    """Begin a conversation by a question. Raises NotFoundError, ConflictError, InvalidInputError: of its files."""
    with database.writing() as connection:
        if setting.project_id is not None:
            _keep_project(connection, setting.project_id)
        conversation_id = insert_conversation(connection, owner, title, writer.now, setting)
        return _ask(connection, owner, conversation_id, None, question, writer)


def insert_conversation(
    connection: Connection,
    owner: ConversationOwner,
    title: str,
    now: datetime,
    setting: ConversationSetting = EVERYDAY,
) -> str:
    """Insert a conversation without messages, titled by words of its first question; return its id."""
    conversation_id = make_random_id()
    row = {
        "id": conversation_id,
        "person_id": owner.person_id,
        "title": title,
        "title_by": "words",
        "folded_title": fold(title),
        "created_at": now,
        "updated_at": now,
        "assistant_id": setting.assistant_id,
        "project_id": setting.project_id,
    }
    connection.execute(insert(conversations).values(row))
    return conversation_id


def _keep_project(connection: Connection, project_id: str) -> None:
    """Keep a project until the end of the transaction. Raises NotFoundError: it was deleted meanwhile."""
    kept = select(projects.c.id).where(projects.c.id == project_id)
    if connection.scalar(kept.with_for_update(read=True, key_share=True)) is None:
        raise NotFoundError("There is no such project.")


def ask(
    database: Database,
    owner: ConversationOwner,
    conversation_id: str,
    parent_id: int | None,
    question: NewQuestion,
    writer: Writer,
) -> Begun:
    """Add a question behind an answer, or beside the first question.

    Raises:
        NotFoundError, InvalidInputError, ConflictError
    """
    with database.writing() as connection:
        _lock(connection, owner, conversation_id)
        if parent_id is not None:
            _check_parent(tree.get_in(connection, owner, conversation_id, parent_id))
        return _ask(connection, owner, conversation_id, parent_id, question, writer)


def regenerate(
    database: Database,
    owner: ConversationOwner,
    conversation_id: str,
    message_id: int,
    writer: Writer,
) -> Begun:
    """Add another answer to a question, which the id of one of its answers names as well.

    Raises:
        NotFoundError, ConflictError
    """
    with database.writing() as connection:
        _lock(connection, owner, conversation_id)
        question = tree.get_in(connection, owner, conversation_id, message_id)
        if question.role == "assistant" and question.parent_id is not None:
            question = tree.get_in(connection, owner, conversation_id, question.parent_id)
        return Begun(question, _begin_answer(connection, question, writer))


def _lock(connection: Connection, owner: ConversationOwner, conversation_id: str) -> None:
    """Keep others from adding to this conversation, or deleting it, until the end of the transaction."""
    repository.lock(connection, owner, conversation_id)
    if turns.count_running(connection, conversation_id) >= MOST_RUNNING:
        raise ConflictError(_TOO_MANY)


def _check_parent(parent: Message) -> None:
    if parent.role != "assistant":
        raise InvalidInputError(
            "A question follows an answer. Give the id of an answer as parent_id, or null to ask the first question anew."
        )
    if parent.status == "running":
        raise ConflictError("This answer is still being written. Wait for its end, or stop it.")


def _ask(
    connection: Connection,
    owner: ConversationOwner,
    conversation_id: str,
    parent_id: int | None,
    question: NewQuestion,
    writer: Writer,
) -> Begun:
    asked = _insert(
        connection,
        conversation_id=conversation_id,
        parent_id=parent_id,
        role="user",
        text=question.text,
        folded_text=fold(question.text),
        filters=dict(question.filters),
        search_scope=question.search_scope,
        mode=question.mode and dict(question.mode),
        created_at=writer.now,
    )
    user_files.attach(connection, owner, asked.id, question.files)
    return Begun(asked, _begin_answer(connection, asked, writer))


def _begin_answer(connection: Connection, question: Message, writer: Writer) -> Message:
    answer = _insert(
        connection,
        conversation_id=question.conversation_id,
        parent_id=question.id,
        role="assistant",
        text="",
        created_at=writer.now,
        status="running",
    )
    turns.insert_turn(connection, answer.id, writer.process, writer.now)
    shown = update(conversations).where(conversations.c.id == question.conversation_id)
    # Who asks in an archived conversation uses it again.
    used = {"leaf_id": answer.id, "updated_at": writer.now, "archived_at": None}
    connection.execute(shown.values(used))
    return answer


def _insert(connection: Connection, **values: object) -> Message:
    added = insert(messages).values({"document_ids": [], **values}).returning(*MESSAGE_COLUMNS)
    return read_message(connection.execute(added).mappings().one())
