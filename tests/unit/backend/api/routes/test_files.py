"""People's own files over HTTP: uploaded, given to questions, found by nobody else, and deleted with what used them."""

import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.roles import Role
from backend.api.app import Api
from backend.composition.chat import ChatService
from backend.composition.language_models import LanguageModels
from backend.container import Container
from backend.files import file_keeper
from backend.files.file_types import LARGEST_FILE
from backend.store.accounts import people
from backend.store.files import file_source, user_files
from backend.store.llm import language_models
from backend.store.llm.language_models import ModelRole, ModelValues
from backend.store.owner import ConversationOwner
from backend.store.sync import schedule, sources
from connectors.access import Readers
from connectors.extraction.isolated import extract_isolated
from indexing.embedding.token_counting import rough_tokens
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline
from tests.support.accounts import add_person
from tests.support.chat_turns import write_plan
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.serving import Event
from tests.unit.backend.api.conftest import ADDRESS, connected, make_container
from tests.unit.backend.api.routes.test_conversations import _client_of, _follow, _open, _serve

ANN, BOB = "ann@example.com", "bob@example.com"
BASE, FILES = "/api/conversations", "/api/files"
PLAN = b"# Move\n\nThe Quibberdale office moves to Nantmoor in May.\n"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(60)
SOON = 120.0
GIVEN = {"use": "whole", "sentence": "", "names": ["move.md"], "unseen": [], "unread": []}
"""What the event `files` says of one that is read whole."""


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def modelled(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    folder: Path,
    server: ScriptedModel,
) -> Iterator[Container]:
    with _made(request, tmp_path_factory.mktemp("files-home"), folder, server) as container:
        yield container


@contextmanager
def _made(
    request: pytest.FixtureRequest, home: Path, folder: Path, server: ScriptedModel
) -> Iterator[Container]:
    settings: dict[str, object] = {
        "llm_url": server.base_url,
        "llm_model": "scripted",
        "llm_window": 6_000,
    }
    if request.param == "sqlite":
        yield _make(home, folder, settings)
        return
    with request.getfixturevalue("postgresql").new() as url:
        container = _make(home, folder, settings | {"database_url": url})
        with closing(container.database):
            yield container


def _make(home: Path, folder: Path, settings: dict[str, object]) -> Container:
    container = make_container(home, **settings)
    connected(container, folder)
    add_person(container.database, ANN, Role.ADMIN)
    add_person(container.database, BOB)
    return container


@pytest.fixture(scope="module")
def app(modelled: Container) -> Iterator[Api]:
    with _serve(modelled) as app:
        yield app


@pytest.fixture(scope="module")
def ann(app: Api, modelled: Container) -> TestClient:
    return _client_of(app, modelled, people.get_by_email(modelled.database, ANN))


@pytest.fixture(scope="module")
def bob(app: Api, modelled: Container) -> TestClient:
    return _client_of(app, modelled, people.get_by_email(modelled.database, BOB))


def _upload(client: TestClient, data: bytes, name: str = "move.md") -> Any:
    return client.post(FILES, files={"file": (name, data)})


def _add(client: TestClient, data: bytes, name: str = "move.md") -> Any:
    """A file that is read."""
    sent = _upload(client, data, name)
    assert sent.status_code == 202, sent.text
    return _read(client, sent.json()["id"])


def _read(client: TestClient, file_id: str) -> Any:
    end = time.monotonic() + SOON
    while (file := client.get(f"{FILES}/{file_id}").json())["status"] == "reading":
        assert time.monotonic() < end
        time.sleep(0.02)
    return file


def _ask(client: TestClient, *files: Any, **given: object) -> tuple[str, int, list[Event]]:
    body = {"question": "Where does the office move?", "files": [one["id"] for one in files]}
    begun = client.post(BASE, json=body | given)
    assert begun.status_code == 202, begun.text
    conversation, message = begun.json()["conversation"]["id"], begun.json()["answer"]["id"]
    return conversation, message, _follow(client, conversation, message)


def _holds(container: Container, document_id: str, email: str = BOB) -> bool:
    """Whether the index has it, for this person."""
    owner = people.get_by_email(container.database, email)
    readers = Readers.of(f"external:files:person/{owner.id}")
    filters = Filters(document_ids=frozenset({document_id}))
    found = container.engine.index.facets(filters, readers, Deadline.after(5))
    return found.sources == {file_source.FILES_SOURCE: 1}


def _citing(request: Request) -> Reply:
    prompt = str(request.messages[-1]["content"])
    return Say("It moves to Nantmoor [1]." if "Nantmoor" in prompt else "I cannot say.")


def test_a_file_that_fits_is_read_whole_and_cited(bob: TestClient, server: ScriptedModel) -> None:
    server.play(_citing)
    file = _add(bob, PLAN)
    assert (file["status"], file["name"], file["used"]) == ("ready", "move.md", False)
    conversation, _, streamed = _ask(bob, file)
    assert streamed[0].name == "files"
    assert streamed[0].data == GIVEN
    done = streamed[-1]
    assert done.name == "done", done
    assert done.data["answer"]["citations"][0]["document_id"] == file["document_id"]
    assert done.data["answer"]["files"]["use"] == "whole"
    question, answer = _open(bob, conversation)["messages"]
    assert [one["id"] for one in question["files"]] == [file["id"]]
    assert question["files"][0]["used"]
    assert answer["answer"]["files"]["names"] == ["move.md"]


def test_the_source_of_a_file_that_no_search_found_has_its_name(
    bob: TestClient, server: ScriptedModel
) -> None:
    server.play(_citing)
    _, _, streamed = _ask(bob, _add(bob, PLAN), knowledge=False)
    assert not [one for one in streamed if one.name in {"first_results", "results", "selected"}]
    assert [one["source"] for one in streamed[-1].data["answer"]["documents"]] == ["Your files"]


def test_the_models_of_a_turn_are_chosen_once_and_its_file_is_counted_once(
    bob: TestClient, server: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play(_citing)
    file = _add(bob, b"# Quay\n\nThe quay of Nantmoor.\n", "quay.md")
    conversation, message, _ = _ask(bob, file)
    chosen: list[str | None] = []
    counted: list[str] = []
    choose = LanguageModels.choose

    def note(models: LanguageModels, name: str | None, temperature: float | None) -> Any:
        chosen.append(name)
        return choose(models, name, temperature)

    def count_noting(text: str) -> int:
        counted.append(text)
        return rough_tokens(text)

    monkeypatch.setattr(LanguageModels, "choose", note)
    monkeypatch.setattr(ChatService, "count_model_tokens", property(lambda _: count_noting))
    path = f"{BASE}/{conversation}/messages"
    begun = bob.post(path, json={"question": "Of which town?", "parent_id": message}).json()
    assert _follow(bob, conversation, begun["answer"]["id"])[-1].name == "done"
    assert chosen == [None]
    line = '{"document": 1, "title": "quay.md", "content": "The quay of Nantmoor."}'
    assert counted.count(line) == 1


def test_a_file_of_an_earlier_question_counts_on(bob: TestClient, server: ScriptedModel) -> None:
    server.play(_citing)
    conversation, message, _ = _ask(bob, _add(bob, PLAN))
    path = f"{BASE}/{conversation}/messages"
    begun = bob.post(path, json={"question": "To which town?", "parent_id": message}).json()
    streamed = _follow(bob, conversation, begun["answer"]["id"])
    assert streamed[0].data["names"] == ["move.md"]


@pytest.mark.soak("slow")
def test_files_that_do_not_fit_are_the_scope_until_everything_is_searched(
    bob: TestClient, server: ScriptedModel, modelled: Container
) -> None:
    server.play(_citing)
    window = modelled.settings.llm_window
    long = [
        _add(bob, f"# Part {n}\n\n".encode() + b"Nantmoor has a quay. " * (window // 25), f"{n}.md")
        for n in range(3)
    ]
    _, _, streamed = _ask(bob, *long, question="What of the interlock?")
    assert streamed[0].data["use"] == "scope"
    assert streamed[0].data["sentence"] == (
        "Only these 3 files are searched: together they are too long to be read whole."
    )
    assert _found(streamed) <= {one["document_id"] for one in long}
    _, _, everything = _ask(
        bob, *long, question="What of the interlock?", search_scope="everything"
    )
    assert everything[0].data["use"] == "everything"
    assert "wiki:page.html" in _found(everything)
    for one in long:
        assert bob.delete(f"{FILES}/{one['id']}").status_code == 204


@pytest.mark.soak("slow")
def test_a_file_that_does_not_fit_is_searched_whatever_the_plan_says(
    bob: TestClient, server: ScriptedModel, modelled: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play(_citing)
    monkeypatch.setattr(server, "plan", write_plan())
    text = b"# Quay\n\n" + b"Nantmoor has a quay. " * (modelled.settings.llm_window // 3)
    long = _add(bob, text, "quay.md")
    for scope in ("files", "everything"):
        _, _, streamed = _ask(bob, long, question="Sum up this quay", search_scope=scope)
        (planned,) = [one.data for one in streamed if one.name == "planned"]
        assert planned["knowledge"]["use"] == "searched"
        assert streamed[-1].name == "done", streamed[-1]
        shown = streamed[-1].data["answer"]["documents"]
        assert long["document_id"] in {one["document_id"] for one in shown}
        asked = {"question": "Sum up this quay", "search_scope": scope, "knowledge": False}
        _, _, alone = _ask(bob, long, **asked)
        shown = alone[-1].data["answer"]["documents"]
        assert {one["document_id"] for one in shown} == {long["document_id"]}
    assert bob.delete(f"{FILES}/{long['id']}").status_code == 204


@pytest.mark.soak("slow")
def test_files_stand_in_the_place_of_what_an_assistant_is_limited_to(
    bob: TestClient, server: ScriptedModel, modelled: Container
) -> None:
    server.play(_citing)
    (source,) = sources.list_sources(modelled.database)
    desk = {"name": "Desk", "sources": [source.name]}
    made = bob.post("/api/assistants", json=desk).json()["id"]
    window = modelled.settings.llm_window
    text = b"# Quay\n\n" + b"Nantmoor has a quay. " * (window // 3)
    long = _add(bob, text, "quay.md")
    asked = {"question": "Where is the quay?", "assistant_id": made}
    _, _, streamed = _ask(bob, long, **asked)
    assert streamed[0].data["use"] == "scope"
    assert _found(streamed) == {long["document_id"]}
    _, _, streamed = _ask(bob, long, search_scope="everything", **asked)
    assert long["document_id"] in _found(streamed)


def _found(streamed: list[Event]) -> set[str]:
    return {
        result["document_id"]
        for event in streamed
        if event.name in {"first_results", "results"}
        for result in event.data["results"]
    }


def test_nobody_else_learns_of_a_file(
    ann: TestClient, bob: TestClient, modelled: Container
) -> None:
    file = _add(bob, PLAN)
    path = f"{FILES}/{file['id']}"
    missing = ann.get(f"{FILES}/none")
    for method in ("get", "delete"):
        answer = getattr(ann, method)(path)
        assert (answer.status_code, answer.json()) == (404, missing.json())
    asked = ann.post(BASE, json={"question": "What?", "files": [file["id"]]})
    never = ann.post(BASE, json={"question": "What?", "files": ["none"]})
    assert (asked.status_code, asked.json()) == (never.status_code, never.json())
    assert asked.status_code == 404
    assert ann.get(FILES).json() == {"files": []}
    _, _, streamed = _ask(ann, question="Where does the Quibberdale office move?")
    assert file["document_id"] not in _found(streamed)
    assert _holds(modelled, file["document_id"])
    assert not _holds(modelled, file["document_id"], ANN)


@pytest.mark.soak("slow")
def test_members_of_a_project_learn_of_no_file_of_one_another(
    ann: TestClient, bob: TestClient, server: ScriptedModel
) -> None:
    server.play(_citing)
    project = ann.post("/api/projects", json={"name": "Depot"}).json()["id"]
    assert ann.post(f"/api/projects/{project}/members", json={"email": BOB}).status_code == 200
    file = _add(bob, b"Nantmoor is private.\n", "private-move.txt")
    conversation, _, _ = _ask(bob, file, project_id=project)
    own = _open(bob, conversation)["messages"]
    assert [one["id"] for one in own[0]["files"]] == [file["id"]]
    read = ann.get(f"/api/projects/{project}/conversations/{conversation}")
    question, answer = read.json()["messages"]
    assert (question["text"], question["files"]) == ("Where does the office move?", [])
    assert answer["withheld"]
    assert "private-move" not in read.text
    # Nor that one was deleted.
    assert bob.delete(f"{FILES}/{file['id']}").status_code == 204
    assert _open(bob, conversation)["messages"][0]["deleted_files"] == 1
    read = ann.get(f"/api/projects/{project}/conversations/{conversation}")
    assert [one["deleted_files"] for one in read.json()["messages"]] == [0, 0]
    # Nor where the answer rests on none of them.
    long = _add(bob, b"# Quay\n\n" + b"Nantmoor has a quay. " * 1_000, "private-quay.md")
    server.play(lambda _: Say("I cannot say."))
    conversation, message, streamed = _ask(bob, long, project_id=project)
    assert "private-quay" in str(streamed)
    read = ann.get(f"/api/projects/{project}/conversations/{conversation}")
    assert read.json()["messages"][1]["text"] == "I cannot say."
    events = ann.get(f"/api/projects/{project}/messages/{message}/events")
    assert "event: done" in events.text
    share = f"{BASE}/{conversation}/share"
    link = bob.post(share, json={"message_id": message}).json()["id"]
    shared = ann.get(f"/api/shared/{link}")
    assert "I cannot say." in shared.text
    for shown in (read, events, shared):
        assert "private-quay" not in shown.text


def test_its_owner_finds_it_and_no_source_is_listed(bob: TestClient, modelled: Container) -> None:
    file = _add(bob, PLAN)
    _, _, streamed = _ask(bob, question="Where does the Quibberdale office move?")
    assert file["document_id"] in _found(streamed)
    assert [one.name for one in sources.list_sources(modelled.database)] == ["wiki"]
    assert file_source.FILES_SOURCE not in schedule.list_unread_sources(modelled.database)


def test_pictures_are_shown_to_a_model_that_sees(
    bob: TestClient, server: ScriptedModel, modelled: Container
) -> None:
    server.play(_citing)
    picture = _add(bob, PICTURE, "quay.png")
    assert picture["media_type"] == "image/png"
    _, _, streamed = _ask(bob, picture)
    assert streamed[0].data["sentence"] == (
        "The language model does not accept images: quay.png was not looked at."
    )
    values = ModelValues(
        name="eye",
        base_url=server.base_url,
        model="eye",
        context_window=32_000,
        sees_pictures=True,
        calls_tools=False,
        reasons=False,
        input_price=None,
        output_price=None,
    )
    language_models.add(modelled.database, values, None)
    eye = language_models.find(modelled.database, "eye")
    language_models.set_roles(modelled.database, eye.id, frozenset({ModelRole.DEFAULT}))
    server.requests.clear()
    try:
        _, _, streamed = _ask(bob, picture)
    finally:
        language_models.set_roles(modelled.database, eye.id, frozenset())
    assert streamed[0].data["unseen"] == []
    parts = [
        part
        for request in server.requests
        for message in request.messages
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    assert any(
        part["type"] == "image_url" and "base64," in part["image_url"]["url"] for part in parts
    )


def test_what_is_kept_of_a_file_is_downloaded_by_its_owner_alone(
    ann: TestClient, bob: TestClient
) -> None:
    plan = _add(
        bob, b"# Quay\n\nThe \xe2\x80\x9cquay\xe2\x80\x9d of Nantmoor.\n", "Kai \u2013 plan.html"
    )
    picture = _add(bob, PICTURE + b"kept", "kept.png")
    broken = _add(bob, b"%PDF-1.4 broken", "broken.pdf")

    def get(client: TestClient, file: str) -> Any:
        return client.get(f"{FILES}/{file}/content")

    text = get(bob, plan["id"])
    assert "quay\u201d of Nantmoor." in text.text
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    name = "Kai%20%E2%80%93%20plan.html.txt"
    assert text.headers["content-disposition"] == f"attachment; filename*=UTF-8''{name}"
    assert get(bob, picture["id"]).content == PICTURE + b"kept"
    assert (broken["status"], get(bob, broken["id"]).status_code) == ("failed", 409)
    missing = get(ann, "none")
    for file in (plan, picture, broken):
        hidden = get(ann, file["id"])
        assert (hidden.status_code, hidden.json()) == (404, missing.json())
    listed = {one["id"]: one["conversations"] for one in bob.get(FILES).json()["files"]}
    assert listed[plan["id"]] == 0
    _ask(bob, plan)
    listed = {one["id"]: one["conversations"] for one in bob.get(FILES).json()["files"]}
    assert listed[plan["id"]] == 1


def test_the_same_file_twice_is_one(bob: TestClient) -> None:
    first, second = _add(bob, b"Twice.\n", "twice.txt"), _add(bob, b"Twice.\n", "twice.txt")
    assert first["id"] == second["id"]
    assert _add(bob, b"Twice.\n", "other.txt")["id"] != first["id"]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("empty.txt", b"", "empty.txt is empty."),
        ("   ", b"text", "The file has no name."),
        ("tool.exe", b"\x7fELF\x02\x01\x01\0\xff\xfe\x80", "of a kind that cannot be read"),
        ("fake.png", b"no picture", "of a kind that cannot be read"),
        ("big.txt", b"a" * (LARGEST_FILE + 1), "a file may have 20,000,000"),
        ("big.png", PICTURE + bytes(5_000_000), "a picture may have 5,000,000"),
    ],
)
def test_what_is_not_taken_is_said(bob: TestClient, name: str, data: bytes, said: str) -> None:
    answer = _upload(bob, data, name)
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["detail"]


def test_200_megabytes_are_refused_before_they_are_read(bob: TestClient) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(200):
            sent += 1
            yield bytes(1_000_000)

    headers = {"Content-Type": "multipart/form-data; boundary=x", "Content-Length": "200000000"}
    refused = bob.post(FILES, content=pieces(), headers=headers)
    assert refused.status_code == 413
    said = "The upload is too large: a file may have 20,000,000 bytes."
    assert refused.json()["detail"] == said


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--x",
        b"--x\r\n\r\n--x--",
        b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--",
    ],
)
def test_a_form_without_a_file_is_refused(bob: TestClient, body: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert bob.post(FILES, content=body, headers=headers).status_code == 422


def test_a_zip_bomb_fails_and_the_next_file_is_read(bob: TestClient) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b" " * 110_000_000)
    bomb = _add(bob, packed.getvalue(), "bomb.docx")
    assert bomb["status"] == "failed"
    assert bomb["problem"].startswith("bomb.docx cannot be read: ")
    refused = bob.post(BASE, json={"question": "What?", "files": [bomb["id"]]})
    assert refused.status_code == 422
    assert _add(bob, b"Small.\n", "small.txt")["status"] == "ready"


def test_a_file_that_is_being_read_is_waited_for(
    bob: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def held(*given: Any) -> Any:
        assert go_on.wait(SOON)
        return extract_isolated(*given)

    monkeypatch.setattr("backend.files.file_keeper.extract_isolated", held)
    sent = _upload(bob, b"Held.\n", "held.txt").json()
    assert sent["status"] == "reading"
    asked = bob.post(BASE, json={"question": "What?", "files": [sent["id"]]})
    assert asked.status_code == 409
    go_on.set()
    assert _read(bob, sent["id"])["status"] == "ready"


def test_a_conversation_takes_its_files_with_it_but_not_those_of_others(
    bob: TestClient, server: ScriptedModel, modelled: Container
) -> None:
    server.play(_citing)
    own, shared = _add(bob, b"Own Nantmoor.\n", "own.txt"), _add(bob, b"Shared.\n", "shared.txt")
    first, _, _ = _ask(bob, own, shared)
    second, _, _ = _ask(bob, shared)
    assert bob.delete(f"{BASE}/{first}").status_code == 204
    assert bob.get(f"{FILES}/{own['id']}").status_code == 404
    assert bob.get(f"{FILES}/{shared['id']}").status_code == 200
    _wait_until_gone(modelled, own["document_id"])
    assert bob.delete(f"{BASE}/{second}").status_code == 204
    _wait_until_gone(modelled, shared["document_id"])
    assert user_files.list_marked(modelled.database) == {}


def _wait_until_gone(container: Container, document_id: str) -> None:
    end = time.monotonic() + SOON
    while _holds(container, document_id) or user_files.list_marked(container.database):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_an_answer_that_rests_on_a_deleted_file_is_withheld(
    bob: TestClient, server: ScriptedModel, modelled: Container
) -> None:
    server.play(_citing)
    file = _add(bob, b"Nantmoor again.\n", "again.txt")
    conversation, _, _ = _ask(bob, file)
    assert bob.delete(f"{FILES}/{file['id']}").status_code == 204
    _wait_until_gone(modelled, file["document_id"])
    question, answer = _open(bob, conversation)["messages"]
    assert (question["files"], answer["withheld"], answer["text"]) == ([], True, "")
    assert "sources that were deleted" in answer["notice"]
    assert (question["deleted_files"], answer["deleted_files"]) == (1, 0)
    path = f"{BASE}/{conversation}/messages/{question['id']}/regenerate"
    again = bob.post(path).json()["answer"]["id"]
    done = _follow(bob, conversation, again)[-1]
    said = "Of the files that came with questions, one was deleted and is not used."
    assert done.data["answer"]["files"]["sentence"] == said


def test_a_file_that_is_in_use_is_deleted_unless_that_is_refused(bob: TestClient) -> None:
    used, loose = _add(bob, PLAN + b"Used."), _add(bob, PLAN + b"Loose.", "loose.md")
    project = bob.post("/api/projects", json={"name": "Depot"}).json()["id"]
    bob.put(f"/api/projects/{project}/files/{used['id']}").raise_for_status()
    desk = bob.post("/api/assistants", json={"name": "Desk"}).json()["id"]
    bob.put(f"/api/assistants/{desk}/files/{used['id']}").raise_for_status()
    bob.post(BASE, json={"question": "When?", "files": [used["id"]]}).raise_for_status()
    unless_used = {"unless_used": True}
    refused = bob.delete(f"{FILES}/{used['id']}", params=unless_used)
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "move.md is used by the project “Depot”, the assistant “Desk”, the conversation “When?”.",
    )
    assert bob.get(f"{FILES}/{used['id']}").status_code == 200
    for path, params, status in (
        (used["id"], {}, 204),
        (used["id"], unless_used, 404),
        (loose["id"], unless_used, 204),
        ("\0", unless_used, 404),
    ):
        assert bob.delete(f"{FILES}/{quote(path)}", params=params).status_code == status
    assert bob.get(f"{FILES}/{loose['id']}").status_code == 404
    bob.delete(f"/api/projects/{project}")
    bob.delete(f"/api/assistants/{desk}")


def test_what_a_dead_process_left_is_swept(modelled: Container, bob: TestClient) -> None:
    index = modelled.sources.file_index
    file = _add(bob, b"Left behind.\n", "left.txt")
    owner = ConversationOwner(people.get_by_email(modelled.database, BOB).id)
    user_files.mark_for_removal(modelled.database, owner, file["id"])
    assert _holds(modelled, file["document_id"])
    file_keeper.sweep(index)
    assert not _holds(modelled, file["document_id"])
    assert user_files.list_marked(modelled.database) == {}
    assert json.dumps(bob.get(FILES).json()).count("left.txt") == 0


def _reading_client(app: Api, container: Container, email: str) -> TestClient:
    service = ApiTokenService(
        container.database, owner=people.get_by_email(container.database, email)
    )
    scopes = [TokenScope.ASK, TokenScope.SEARCH]
    given = service.create(f"reading-{time.monotonic_ns()}", scopes, timedelta(days=1))
    return TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {given}"})


def test_a_document_of_a_file_is_shown_to_its_owner_alone(app: Api, modelled: Container) -> None:
    searcher = _reading_client(app, modelled, BOB)
    other = _reading_client(app, modelled, ANN)
    file = _add(searcher, b"Read me in Nantmoor.\n", "page.txt")
    path = f"/api/documents/{quote(file['document_id'])}"
    shown = searcher.get(path)
    assert shown.status_code == 200, shown.text
    assert "Read me in Nantmoor." in shown.text
    assert not shown.json()["has_original"]
    hidden, missing = other.get(path), other.get("/api/documents/none")
    assert (hidden.status_code, hidden.json()) == (404, missing.json())
    assert other.get("/api/documents").text.count("Your files") == 0
