"""The page of one's own files: what is listed, offered and deleted; of others' nothing."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from backend.access.readers import make_file_access
from backend.api.app import Api
from backend.container import Container
from backend.files.file_service import MOST_NAMED
from backend.store.accounts import people
from backend.store.chat import assistants, new_messages, projects, shared_files
from backend.store.chat.assistants import AssistantValues, Visibility
from backend.store.chat.new_messages import NewQuestion
from backend.store.chat.shared_files import FileHolder
from backend.store.files import user_files
from backend.store.files.file_source import FILES_SOURCE
from backend.store.files.user_files import NewFile
from backend.store.owner import ConversationOwner
from connectors.document import Document, Section
from tests.support.conversations import writer
from tests.unit.backend.api.conftest import ready
from tests.unit.backend.web.conftest import ANN, BOB

HOSTILE = '"><script>alert(1)</script>.md'


@pytest.fixture
def clients(browse: Any) -> Iterator[dict[str, TestClient]]:
    with ExitStack() as stack:
        made: dict[str, TestClient] = {email: browse(email) for email in (ANN, BOB)}
        for client in made.values():
            stack.enter_context(ready(cast("Api", client.app)))
        yield made


def _add(container: Container, name: str) -> str:
    """A file of Ann, which is read."""
    new = NewFile(
        id=f"id-{len(name)}",
        name=name,
        media_type="text/markdown",
        size=1_234,
        sha256=name,
        document_id=f"Your files:id-{len(name)}",
        data=b"",
    )
    owner = ConversationOwner(people.get_by_email(container.database, ANN).id)
    file = user_files.add(container.database, owner, new, 9)
    assert user_files.finish(container.database, file.id, 3, None)
    return file.id


def test_the_page_lists_ones_own_files_with_what_uses_them(
    container: Container, clients: dict[str, TestClient]
) -> None:
    used, loose = _add(container, "plan.md"), _add(container, HOSTILE)
    owner = ConversationOwner(people.get_by_email(container.database, ANN).id)
    for _ in range(2):
        question = NewQuestion(text="What?", filters={}, files=(used,))
        new_messages.begin_conversation(container.database, owner, "What?", question, writer())
    shown = clients[ANN].get("/files").text
    assert "plan.md" in shown
    assert "2 conversations" in shown
    assert "not used yet" in shown
    assert "2 kB" in shown
    assert f"/api/files/{used}/content" in shown
    assert "<script>alert" not in shown
    assert "plan.md" not in clients[BOB].get("/files").text
    assert "/files" in clients[ANN].get("/chat").text
    assert _delete(clients[BOB], loose) == 404
    assert _delete(clients[ANN], loose) == 303
    assert "alert(1)" not in clients[ANN].get("/files").text


def test_the_page_says_who_else_has_a_file(
    container: Container, clients: dict[str, TestClient]
) -> None:
    file = _add(container, "plan.md")
    owner = ConversationOwner(people.get_by_email(container.database, ANN).id)
    made = projects.add(container.database, owner, "Depot", "", datetime.now(UTC))
    shared_files.add(container.database, owner, FileHolder("project", made), file, 9)
    shown = clients[ANN].get("/files").text
    assert "1 project" in shown
    assert "not used yet" not in shown
    assert "Nobody but you" not in shown


def test_the_page_names_what_uses_a_file(
    container: Container, clients: dict[str, TestClient]
) -> None:
    file, loose = _add(container, "plan.md"), _add(container, "loose-plan.md")
    ann = ConversationOwner(people.get_by_email(container.database, ANN).id)
    for number in range(MOST_NAMED + 2):
        question = NewQuestion(text="What?", filters={}, files=(file,))
        title = f"<b>{number}" if number else "The first one"
        new_messages.begin_conversation(container.database, ann, title, question, writer(number))
    now = datetime.now(UTC)
    depot = projects.add(container.database, ann, "Depot", "", now)
    desk = assistants.add(container.database, ann, AssistantValues(name="Desk"), now)
    for holder in (FileHolder("project", depot), FileHolder("assistant", desk)):
        shared_files.add(container.database, ann, holder, file, 9)
    page = clients[ANN].get("/files").text
    listed = page.partition("<ul data-uses hidden>")[2].partition("</ul>")[0]
    for named in ("The project <bdi>Depot</bdi>", "The assistant <bdi>Desk</bdi>"):
        assert named in listed
    assert f"The conversation <bdi>&lt;b&gt;{MOST_NAMED + 1}</bdi>" in listed
    assert "The first one" not in listed
    assert "<li>2 more</li>" in listed
    assert page.count("<ul data-uses hidden>") == 1
    assert loose in page


def test_the_page_of_a_file_says_whose_it_is(
    container: Container, clients: dict[str, TestClient]
) -> None:
    file, database = _add(container, "plan.md"), container.database
    ann = people.get_by_email(database, ANN).id
    document = Document(
        id=f"Your files:{file}",
        source=FILES_SOURCE,
        title="plan.md",
        sections=(Section(text="The office moves."),),
        link="",
        media_type="text/markdown",
        access=make_file_access(ConversationOwner(ann), file),
        version="1",
    )
    container.sources.file_index.store(document)
    page, now = f"/document/{document.id}", datetime.now(UTC)
    assert clients[BOB].get(page).status_code == 404
    values = AssistantValues(name="Desk", visibility=Visibility.ALL)
    desk = assistants.add(database, ConversationOwner(ann), values, now)
    shared_files.add(database, ConversationOwner(ann), FileHolder("assistant", desk), file, 9)
    assert "<bdi>Files of an assistant</bdi>" in clients[BOB].get(page).text
    depot = projects.add(database, ConversationOwner(ann), "Depot", "", now)
    projects.add_member(database, depot, BOB)
    shared_files.add(database, ConversationOwner(ann), FileHolder("project", depot), file, 9)
    assert "<bdi>Files of a project</bdi>" in clients[BOB].get(page).text
    chinese = clients[BOB].get(page, headers={"Accept-Language": "zh"}).text
    assert "<bdi>项目的文件</bdi>" in chinese
    assert "<bdi>Your files</bdi>" in clients[ANN].get(page).text


def _delete(client: TestClient, file: str) -> int:
    token = client.get("/files").text.partition('name="csrf-token" content="')[2].partition('"')[0]
    return client.post(f"/files/{file}/delete", data={"csrf_token": token}).status_code
