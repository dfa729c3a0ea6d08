"""Files of people in the database: whose they are, and when nothing uses them any more."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from backend.access.roles import Role
from backend.store.chat import conversations, new_messages, projects, shared_files
from backend.store.chat.new_messages import NewQuestion
from backend.store.chat.shared_files import FileHolder
from backend.store.database import Database, open_database
from backend.store.files import user_files, waiting_uploads
from backend.store.files.user_files import NewFile, UserFile
from backend.store.owner import ConversationOwner
from backend.store.schema.conversation_tables import messages
from backend.store.schema.user_file_tables import user_files as files_table
from connectors.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    TemporarilyUnavailableError,
)
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, writer
from tests.support.races import race


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def _add(database: Database, name: str = "a", owner: ConversationOwner = OWNER) -> UserFile:
    file = NewFile(
        id=f"id-{name}",
        name=name,
        media_type="text/plain",
        size=3,
        sha256=name,
        document_id=f"Your files:{name}",
        data=b"abc",
    )
    return user_files.add(database, owner, file, 3)


def _ready(database: Database, name: str) -> str:
    file = _add(database, name)
    assert user_files.finish(database, file.id, 3, None)
    return file.id


def _begin(database: Database, *files: str) -> str:
    question = NewQuestion(text="What?", filters={}, files=files)
    begun = new_messages.begin_conversation(database, OWNER, "What?", question, writer())
    return begun.question.conversation_id


def test_nobody_takes_more_than_a_share_of_the_room_for_what_waits(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of the tests have three bytes."""
    monkeypatch.setattr(waiting_uploads, "MOST_WAITING_BYTES", 24)
    for person in ("ann", "ben"):
        add_person(database, f"{person}@example.com", Role.ADMIN)
    ann, ben = ConversationOwner(1), ConversationOwner(2)
    held = [_add(database, name, ann) for name in ("a", "b")]
    with pytest.raises(TemporarilyUnavailableError, match="of your files wait") as refused:
        _add(database, "c", ann)
    assert str(refused.value).endswith("or delete some that you do not need.")
    _add(database, "d", ben)
    user_files.mark_for_removal(database, ann, held[0].id)
    _add(database, "c", ann)


def test_a_file_larger_than_a_share_waits_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_uploads, "MOST_WAITING_BYTES", 8)
    add_person(database, "ann@example.com", Role.ADMIN)
    _add(database, "a", ConversationOwner(1))
    with pytest.raises(TemporarilyUnavailableError, match="of your files wait"):
        _add(database, "b", ConversationOwner(1))


def test_a_file_of_somebody_else_does_not_exist(database: Database) -> None:
    add_person(database, "ann@example.com", Role.ADMIN)
    file = _add(database, owner=ConversationOwner(1))
    for other in (OWNER, ConversationOwner(2)):
        assert user_files.list_files(database, other, 9) == []
        with pytest.raises(NotFoundError):
            user_files.find(database, other, file.id)
        with pytest.raises(NotFoundError):
            user_files.mark_for_removal(database, other, file.id)
    with pytest.raises(NotFoundError):
        _begin(database, file.id)
    assert user_files.find(database, ConversationOwner(1), file.id) == file


def test_only_what_is_read_is_given_to_a_question(database: Database) -> None:
    file = _add(database)
    with pytest.raises(ConflictError):
        _begin(database, file.id)
    assert user_files.fail(database, file.id, 0, "It is broken.")
    with pytest.raises(InvalidInputError):
        _begin(database, file.id)
    assert not user_files.finish(database, file.id, 3, None)


def test_there_is_a_limit_and_the_same_file_is_no_further_one(database: Database) -> None:
    for name in "abc":
        _add(database, name)
    assert _add(database, "c").id == "id-c"
    with pytest.raises(ConflictError, match="You have reached the limit of 3 files"):
        _add(database, "d")


def test_a_conversation_gives_up_what_nothing_else_uses(database: Database) -> None:
    own, shared, loose = (_ready(database, name) for name in "abc")
    first, second = _begin(database, own, shared), _begin(database, shared, shared)
    conversations.remove(database, OWNER, first)
    assert user_files.list_marked(database) == {own: "Your files:a"}
    assert [one.used for one in user_files.list_files(database, OWNER, 9)] == [False, True]
    conversations.remove(database, OWNER, second)
    assert set(user_files.list_marked(database)) == {own, shared}
    user_files.remove(database, [own, shared, loose])
    assert [one.id for one in user_files.list_files(database, OWNER, 9)] == [loose]


def test_of_a_deleted_file_it_stays_known_that_a_question_had_it(database: Database) -> None:
    asked, kept, loose = (_ready(database, name) for name in "abc")
    conversation = _begin(database, asked, kept)
    (message,) = _messages_with(database, conversation)
    project = projects.add(database, OWNER, "Depot", "", datetime.now(UTC))
    shared_files.add(database, OWNER, FileHolder("project", project), asked, 9)
    for file in (asked, loose):
        user_files.mark_for_removal(database, OWNER, file)
    assert user_files.count_deleted(database, [message]) == {message: 1}
    user_files.remove(database, [asked, kept, loose])
    assert user_files.list_marked(database) == {}
    assert user_files.count_deleted(database, [message]) == {message: 1}
    assert [one.id for one in user_files.list_of_messages(database, [message])[message]] == [kept]
    assert [one.id for one in user_files.list_files(database, OWNER, 9)] == [kept]
    with pytest.raises(NotFoundError):
        user_files.mark_for_removal(database, OWNER, asked)
    with pytest.raises(NotFoundError):
        _begin(database, asked)
    assert _names(database) == {"id-a": "", "id-b": "b"}
    conversations.remove(database, OWNER, conversation)
    user_files.remove(database, list(user_files.list_marked(database)))
    assert _names(database) == {}


def _messages_with(database: Database, conversation: str) -> list[int]:
    query = select(messages.c.id).where(messages.c.conversation_id == conversation)
    with database.reading() as connection:
        return list(connection.scalars(query.where(messages.c.role == "user")))


def _names(database: Database) -> dict[str, str]:
    with database.reading() as connection:
        return dict(connection.execute(select(files_table.c.id, files_table.c.name)).all())


def test_a_file_that_is_given_up_does_not_become_ready(database: Database) -> None:
    file = _add(database)
    user_files.mark_for_removal(database, OWNER, file.id)
    assert not user_files.finish(database, file.id, 3, None)
    assert user_files.list_files(database, OWNER, 9) == []


def test_a_file_that_is_added_while_its_last_conversation_is_deleted_stays(
    database: Database,
) -> None:
    file = _ready(database, "a")
    conversation = _begin(database, file)
    project = projects.add(database, OWNER, "Depot", "", datetime.now(UTC))
    race(
        database,
        lambda opened: shared_files.add(opened, OWNER, FileHolder("project", project), file, 9),
        lambda: conversations.remove(database, OWNER, conversation),
    )
    assert user_files.find(database, OWNER, file).status == "ready"


def test_a_file_that_is_asked_about_while_its_last_conversation_is_deleted_stays(
    database: Database,
) -> None:
    file = _ready(database, "a")
    conversation = _begin(database, file)
    race(
        database,
        lambda opened: _begin(opened, file),
        lambda: conversations.remove(database, OWNER, conversation),
    )
    assert user_files.find(database, OWNER, file).status == "ready"
