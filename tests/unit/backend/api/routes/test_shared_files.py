"""Files of projects and assistants over HTTP: who reads them, where, and until when."""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.readers import make_file_token
from backend.access.roles import Role
from backend.api.app import Api
from backend.container import Container
from backend.store import audit
from backend.store.accounts import people
from backend.store.audit import AuditFilter
from backend.store.chat import assistants
from backend.store.files import file_labels
from backend.store.sync import sources
from connectors.access import Access, Readers
from connectors.extraction.isolated import extract_isolated
from indexing.index.protocols import Amend, Filters, SelectedDocument
from indexing.runtime.deadline import Deadline
from tests.support.accounts import add_person
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.serving import Event, events
from tests.unit.backend.api.conftest import ADDRESS
from tests.unit.backend.api.routes.test_conversations import _follow, _open, _serve
from tests.unit.backend.api.routes.test_files import (
    ANN,
    BASE,
    BOB,
    FILES,
    GIVEN,
    PLAN,
    SOON,
    _add,
    _found,
    _made,
    _read,
)

CAT, DAN, EVE = "cat@example.com", "dan@example.com", "eve@example.com"
QUESTION = {"question": "Where does the Quibberdale office move?"}


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
    with _made(request, tmp_path_factory.mktemp("held-home"), folder, server) as container:
        for member in (CAT, EVE):
            add_person(container.database, member)
        add_person(container.database, DAN, Role.ADMIN)
        yield container


@pytest.fixture(scope="module")
def clients(modelled: Container) -> Iterator[Mapping[str, TestClient]]:
    with _serve(modelled) as app:
        yield {email: _sign_in(app, modelled, email) for email in (ANN, BOB, CAT, DAN, EVE)}


def _sign_in(app: Api, container: Container, email: str) -> TestClient:
    service = ApiTokenService(
        container.database, owner=people.get_by_email(container.database, email)
    )
    given = service.create("all", [TokenScope.ASK, TokenScope.SEARCH], timedelta(days=1))
    return TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {given}"})


@pytest.fixture
def ann(clients: Mapping[str, TestClient]) -> TestClient:
    """An admin."""
    return clients[ANN]


@pytest.fixture
def bob(clients: Mapping[str, TestClient]) -> TestClient:
    return clients[BOB]


@pytest.fixture
def cat(clients: Mapping[str, TestClient]) -> TestClient:
    return clients[CAT]


@pytest.fixture
def dan(clients: Mapping[str, TestClient]) -> TestClient:
    """Another admin."""
    return clients[DAN]


@pytest.fixture
def project(bob: TestClient) -> Iterator[str]:
    """Bob's, with Cat as a member."""
    made = bob.post("/api/projects", json={"name": "Depot"}).json()["id"]
    assert bob.post(f"/api/projects/{made}/members", json={"email": CAT}).status_code == 200
    yield f"/api/projects/{made}"
    bob.delete(f"/api/projects/{made}")


def _give(client: TestClient, holder: str, data: bytes = PLAN, name: str = "move.md") -> Any:
    """A file of the client that is read, and added."""
    file = _add(client, data, name)
    added = client.put(f"{holder}/files/{file['id']}")
    assert added.status_code == 200, added.text
    return file


def _id(holder: str) -> str:
    return holder.rpartition("/")[2]


def _ask_in(client: TestClient, **given: object) -> tuple[str, list[Event]]:
    begun = client.post(BASE, json=QUESTION | given)
    assert begun.status_code == 202, begun.text
    conversation, message = begun.json()["conversation"]["id"], begun.json()["answer"]["id"]
    return conversation, _follow(client, conversation, message)


def _cite(request: Request) -> Reply:
    prompt = "\n".join(str(one["content"]) for one in request.messages)
    return Say("It moves to Nantmoor [1]." if "Nantmoor" in prompt else "I cannot say.")


def _answers(client: TestClient, conversation: str) -> list[Any]:
    return [one for one in _open(client, conversation)["messages"] if one["role"] == "assistant"]


def _finds(client: TestClient, file: Any) -> bool:
    """Whether an ordinary search finds it."""
    found = client.post("/api/search", json={"query": "Quibberdale office Nantmoor"})
    assert found.status_code == 200, found.text
    return file["document_id"] in found.text


def _opens(client: TestClient, file: Any) -> bool:
    opened = client.get(f"/api/documents/{file['document_id']}")
    assert opened.status_code in {200, 404}
    return opened.status_code == 200


def _names(client: TestClient, holder: str) -> list[str]:
    return [one["file"]["name"] for one in client.get(f"{holder}/files").json()["files"]]


def test_the_files_of_a_project_are_read_by_all_in_it_and_found_nowhere_else(
    bob: TestClient, cat: TestClient, ann: TestClient, project: str, server: ScriptedModel
) -> None:
    server.play(_cite)
    file = _give(cat, project)
    conversation, streamed = _ask_in(bob, project_id=_id(project))
    assert streamed[0].data == GIVEN
    assert streamed[-1].data["answer"]["citations"][0]["document_id"] == file["document_id"]
    assert _opens(bob, file)
    assert _opens(cat, file)
    assert not _opens(ann, file)
    # Bob holds the token of this file alone, by the project; of Cat's own he is not told.
    shown = bob.get(f"/api/documents/{file['document_id']}").json()["readers"]
    assert shown == [make_file_token(file["id"])]
    assert ann.get(f"{project}/files").status_code == 404
    assert _finds(cat, file)
    assert not _finds(bob, file)
    _, outside = _ask_in(bob)
    assert outside[0].name != "files"
    assert file["document_id"] not in _found(outside)
    # It was read whole: no passage of it says what its source is called.
    (kept,) = _answers(bob, conversation)
    seen = cat.get(f"{project}/conversations/{conversation}").json()["messages"][1]
    sources = [[one["source"] for one in each["answer"]["documents"]] for each in (kept, seen)]
    assert sources == [["Files of this project"], [""]]


def test_rights_follow_those_who_leave_and_what_is_removed_at_once(
    bob: TestClient, cat: TestClient, project: str, server: ScriptedModel
) -> None:
    server.play(_cite)
    own, shared = _give(bob, project, PLAN, "own.md"), _give(cat, project)
    conversation, _ = _ask_in(bob, project_id=_id(project))
    ours, _ = _ask_in(cat, project_id=_id(project))
    assert sorted(_names(bob, project)) == ["move.md", "own.md"]
    (member,) = bob.get(f"{project}/members").json()["members"]
    assert bob.delete(f"{project}/members/{member['id']}").status_code == 204
    # What each of them added is not shared any more, and what rests on it is withheld.
    assert _names(bob, project) == ["own.md"]
    assert not _opens(bob, shared)
    assert not _opens(cat, own)
    assert _answers(bob, conversation)[0]["withheld"]
    assert _answers(cat, ours)[0]["withheld"]
    _, streamed = _ask_in(bob, project_id=_id(project))
    assert streamed[0].data["names"] == ["own.md"]
    assert bob.post(f"{project}/members", json={"email": CAT}).status_code == 200
    assert _names(cat, project) == ["own.md"]
    assert _opens(cat, own)
    assert not _opens(bob, shared)
    # The file that bob removes is his, and nobody else's.
    assert bob.delete(f"{project}/files/{own['id']}").status_code == 204
    assert _opens(bob, own)
    assert not _opens(cat, own)
    assert bob.get(f"{FILES}/{own['id']}").status_code == 200


@pytest.mark.soak("slow")
def test_the_source_of_a_shared_file_is_called_what_it_is(
    bob: TestClient, cat: TestClient, project: str, server: ScriptedModel, modelled: Container
) -> None:
    """To whoever did not upload it, it is none of their files."""
    server.play(_cite)
    window = modelled.settings.llm_window
    text = PLAN + b"Nantmoor sleeps. " * (window // 2)
    _give(cat, project, text, "long.md")
    _, streamed = _ask_in(bob, project_id=_id(project))
    found = [event.data["results"] for event in streamed if "results" in event.data]
    sources_of_file = {one["source"] for results in found for one in results}
    assert sources_of_file == {"Files of this project"}


def test_the_files_of_a_disabled_account_leave_its_projects_until_it_is_enabled(
    clients: Mapping[str, TestClient],
    bob: TestClient,
    project: str,
    server: ScriptedModel,
    modelled: Container,
) -> None:
    server.play(_cite)
    assert bob.post(f"{project}/members", json={"email": EVE}).status_code == 200
    file = _give(clients[EVE], project)
    conversation, _ = _ask_in(bob, project_id=_id(project))
    service = PeopleService(modelled.database)

    def disable_meanwhile(request: Request) -> Reply:
        service.disable(EVE)
        return _cite(request)

    server.play(disable_meanwhile)
    begun = bob.post(BASE, json=QUESTION | {"project_id": _id(project)}).json()
    address = f"{BASE}/{begun['conversation']['id']}/messages/{begun['answer']['id']}/events"
    streamed = bob.get(address).text
    assert "Nantmoor" not in streamed
    assert '"status":403' in streamed
    assert (_names(bob, project), _opens(bob, file)) == ([], False)
    assert _answers(bob, conversation)[0]["withheld"]
    server.play(_cite)
    _, after = _ask_in(bob, project_id=_id(project))
    assert after[0].name != "files"
    assert file["document_id"] not in _found(after)
    service.enable(EVE)
    assert (_names(bob, project), _opens(bob, file)) == (["move.md"], True)
    assert not _answers(bob, conversation)[0]["withheld"]


def test_a_project_that_is_deleted_shares_nothing(
    bob: TestClient, cat: TestClient, project: str
) -> None:
    file = _give(cat, project)
    assert _opens(bob, file)
    assert bob.delete(project).status_code == 204
    assert _opens(cat, file)
    assert not _opens(bob, file)


def test_who_added_a_file_and_the_owner_of_the_project_remove_it(
    bob: TestClient, cat: TestClient, project: str
) -> None:
    mine, theirs = _give(cat, project), _give(bob, project, PLAN, "own.md")
    refused = cat.delete(f"{project}/files/{theirs['id']}")
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "Only the person who added this file, or the owner of the project, may remove it.",
    )
    assert bob.delete(f"{project}/files/{mine['id']}").status_code == 204
    assert bob.delete(f"{project}/files/{mine['id']}").status_code == 404
    # Nobody adds what is somebody else's.
    assert bob.put(f"{project}/files/{mine['id']}").status_code == 404


def test_the_audit_tells_by_ids_which_files_a_project_was_given_and_lost(
    bob: TestClient, cat: TestClient, project: str, modelled: Container
) -> None:
    file = _give(cat, project, name="secret plan.md")
    assert cat.put(f"{project}/files/{file['id']}").status_code == 200
    for status in (204, 404):
        assert bob.delete(f"{project}/files/{file['id']}").status_code == status
    subject = f"project:{_id(project)}"
    entries = audit.list_entries(modelled.database, AuditFilter(subject=subject))
    acts = [(one.action, one.detail) for one in reversed(entries) if "file" in one.detail]
    assert acts == [
        ("add_held_file", {"file": file["id"]}),
        ("remove_held_file", {"file": file["id"]}),
    ]
    assert [CAT in entries[1].actor, BOB in entries[0].actor] == [True, True]
    assert "secret" not in str(entries)


def test_the_audit_tells_of_files_of_shared_assistants_alone(
    ann: TestClient, desk: str, modelled: Container
) -> None:
    own = f"/api/assistants/{ann.post('/api/assistants', json={'name': 'Own'}).json()['id']}"
    _give(ann, own)
    shared = _give(ann, desk)
    assert ann.delete(f"{desk}/files/{shared['id']}").status_code == 204
    entries = audit.list_entries(modelled.database)
    told = [one.action for one in entries if one.subject == f"assistant:{_id(desk)}"]
    assert told == ["remove_held_file", "add_held_file"]
    assert not [one for one in entries if one.subject == f"assistant:{_id(own)}"]
    ann.delete(own)


def test_a_file_is_uploaded_into_a_project(bob: TestClient, project: str) -> None:
    sent = bob.post(f"{project}/files", files={"file": ("plan.md", PLAN + b"Soon.\n")})
    assert sent.status_code == 202, sent.text
    assert sent.json()["may_add"]
    assert sent.json()["files"][0]["mine"]
    end = time.monotonic() + SOON
    while (file := bob.get(f"{project}/files").json()["files"][0]["file"])["status"] == "reading":
        assert time.monotonic() < end
        time.sleep(0.02)
    assert (file["name"], file["status"], file["used"]) == ("plan.md", "ready", True)


@pytest.mark.soak("slow")
def test_files_of_a_project_that_do_not_fit_are_its_scope_and_that_is_said(
    bob: TestClient, cat: TestClient, project: str, server: ScriptedModel, modelled: Container
) -> None:
    server.play(_cite)
    window = modelled.settings.llm_window
    long = [
        _give(
            cat,
            project,
            f"# Part {n}\n\n".encode() + b"Nantmoor has a quay. " * (window // 25),
            f"{n}.md",
        )
        for n in range(3)
    ]
    given = {"project_id": _id(project)}
    _, streamed = _ask_in(bob, question="Has Nantmoor a quay?", **given)
    assert streamed[0].data == {
        "use": "scope",
        "sentence": "Only the files of this project are searched: together they are too long to be read whole.",
        "names": [],
        "unseen": [],
        "unread": [],
    }
    assert _found(streamed)
    assert _found(streamed) <= {one["document_id"] for one in long}
    _, everything = _ask_in(
        bob, question="What of the interlock?", search_scope="everything", **given
    )
    assert everything[0].data["use"] == "everything"
    assert "wiki:page.html" in _found(everything)
    # With company knowledge switched off they are searched too, and nothing else is, whatever the scope.
    for scope in ("files", "everything"):
        _, streamed = _ask_in(
            bob, question="Has Nantmoor a quay?", knowledge=False, search_scope=scope, **given
        )
        assert streamed[0].data["use"] == "scope"
        assert _found(streamed)
        assert _found(streamed) <= {one["document_id"] for one in long}
    # Also where the index has no labels yet.
    with modelled.database.writing() as connection:
        connection.exec_driver_sql("UPDATE user_files SET labels_due = labels_due + 1")
    modelled.engine.writer.write(
        Amend(document_id=one["document_id"], projects=frozenset()) for one in long
    )
    _, streamed = _ask_in(bob, question="Has Nantmoor a quay?", **given)
    assert _found(streamed)
    assert _found(streamed) <= {one["document_id"] for one in long}
    for one in long:
        assert cat.delete(f"{project}/files/{one['id']}").status_code == 204
    _, streamed = _ask_in(bob, question="Has Nantmoor a quay?", **given)
    assert streamed[0].name != "files"
    assert not _found(streamed) & {o["document_id"] for o in long}


def test_without_a_model_the_files_of_a_project_are_searched(
    bob: TestClient, cat: TestClient, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _give(cat, project)
    monkeypatch.setattr(
        "backend.composition.language_models.LanguageModels.choose", lambda *_: None
    )
    conversation, streamed = _ask_in(bob, project_id=_id(project))
    assert streamed[0].data["sentence"] == "Only the files of this project are searched."
    assert _found(streamed) == {file["document_id"]}
    assert streamed[-1].data["answer"]["citations"][0]["document_id"] == file["document_id"]
    (kept,) = _answers(bob, conversation)
    assert not kept["withheld"]
    # What its source is called is said to who asked: to others "this project" may be another one.
    seen = cat.get(f"{project}/conversations/{conversation}").json()["messages"][1]
    sources = [[one["source"] for one in each["answer"]["documents"]] for each in (kept, seen)]
    assert sources == [["Files of this project"], [""]]
    assert cat.delete(f"{project}/files/{file['id']}").status_code == 204
    assert _answers(bob, conversation)[0]["withheld"]


def test_files_that_are_not_read_yet_or_cannot_be_are_said_to_be_left_out(
    bob: TestClient,
    cat: TestClient,
    project: str,
    server: ScriptedModel,
    modelled: Container,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.play(_cite)
    go_on = threading.Event()

    def held(*given: Any) -> Any:
        assert go_on.wait(SOON)
        return extract_isolated(*given)

    monkeypatch.setattr("backend.files.file_keeper.extract_isolated", held)
    sent = [_send(cat, project, f"Nantmoor {n}.\n".encode(), f"secret-{n}.md") for n in range(2)]
    conversation, streamed = _ask_in(bob, project_id=_id(project), knowledge=False)
    reading = "Of this project, 2 files were still being read and were not used."
    unread = {"holder": "project", "status": "reading", "number": 2}
    given = {**GIVEN, "names": [], "sentence": reading, "unread": [unread]}
    assert (streamed[0].name, streamed[0].data) == ("files", given)
    go_on.set()
    for one in sent:
        assert _read(cat, one)["status"] == "ready"
    # It is kept with the answer, for who asked alone.
    assert _answers(bob, conversation)[0]["answer"]["files"] == given
    seen = cat.get(f"{project}/conversations/{conversation}").json()["messages"][1]
    assert (seen["withheld"], seen["answer"]["files"]) == (False, None)
    with modelled.database.writing() as connection:
        failed = f"UPDATE user_files SET status = 'failed' WHERE id = '{sent[0]}'"
        connection.exec_driver_sql(failed)
    _, streamed = _ask_in(bob, project_id=_id(project))
    said = streamed[0].data
    assert said["sentence"] == "Of this project, one file could not be read and was not used."
    assert said["names"] == ["secret-1.md"]


def _send(client: TestClient, holder: str, data: bytes, name: str) -> str:
    """A file that is uploaded into a project, by its id, before it is read."""
    sent = client.post(f"{holder}/files", files={"file": (name, data)})
    assert sent.status_code == 202, sent.text
    ids = {one["file"]["name"]: one["file"]["id"] for one in sent.json()["files"]}
    return str(ids[name])


@pytest.fixture
def desk(ann: TestClient, modelled: Container) -> Iterator[str]:
    """An assistant of Ann's for the group `movers`, of which Cat is the member."""
    service = GroupService(modelled.database)
    service.create("movers")
    service.add_member("movers", CAT)
    body = {"name": "Desk", "visibility": "groups", "groups": ["movers"]}
    made = ann.post("/api/assistants", json=body)
    # Her token may not share: the database does.
    assert made.status_code == 403
    made = ann.post("/api/assistants", json={"name": "Desk"})
    assistant = made.json()["id"]
    _share(modelled, assistant, "groups", "movers")
    yield f"/api/assistants/{assistant}"
    ann.delete(f"/api/assistants/{assistant}")
    service.delete("movers")


def _share(container: Container, assistant: str, visibility: str, *groups: str) -> None:
    shared = assistants.Visibility(visibility)
    _change(container, assistant, visibility=shared, groups=tuple(groups))


def _change(container: Container, assistant: str, **values: Any) -> None:
    found = assistants.find(container.database, _id(assistant))
    assert found
    changed = replace(found.values, **values)
    assistants.change(container.database, found.id, changed, datetime.now(UTC))


def test_those_who_may_use_an_assistant_read_its_files_through_it(
    ann: TestClient,
    bob: TestClient,
    cat: TestClient,
    dan: TestClient,
    desk: str,
    server: ScriptedModel,
    modelled: Container,
) -> None:
    server.play(_cite)
    file = _give(ann, desk)
    given = {"assistant_id": _id(desk)}
    conversation, streamed = _ask_in(cat, **given)
    assert streamed[0].data["names"] == ["move.md"]
    assert streamed[-1].data["answer"]["citations"][0]["document_id"] == file["document_id"]
    assert _names(cat, desk) == ["move.md"]
    assert _opens(cat, file)
    assert not _finds(cat, file)
    assert _finds(ann, file)
    # Nobody else, not even an admin who is in none of its groups.
    assert bob.get(f"{desk}/files").status_code == 404
    assert not _opens(bob, file)
    assert not _opens(dan, file)
    # Only its owner adds files.
    assert cat.put(f"{desk}/files/{file['id']}").status_code == 403
    GroupService(modelled.database).remove_member("movers", CAT)
    assert _answers(cat, conversation)[0]["withheld"]
    assert not _opens(cat, file)
    _share(modelled, _id(desk), "all")
    assert _opens(bob, file)
    assert not _answers(cat, conversation)[0]["withheld"]
    _share(modelled, _id(desk), "mine")
    assert not _opens(bob, file)
    assert _opens(ann, file)


@pytest.mark.soak("slow")
def test_an_assistant_that_is_limited_searches_its_files_as_well(
    bob: TestClient, server: ScriptedModel, modelled: Container
) -> None:
    server.play(_cite)
    (source,) = sources.list_sources(modelled.database)
    body = {"name": "Quay", "sources": [source.name]}
    desk = f"/api/assistants/{bob.post('/api/assistants', json=body).json()['id']}"
    window = modelled.settings.llm_window
    text = b"# Quay\n\nThe interlock is at the quay.\n\n" + b"Nantmoor sleeps. " * (window // 2)
    file = _give(bob, desk, text, "quay.md")
    asked = {"question": "What of the interlock?", "assistant_id": _id(desk)}
    _, streamed = _ask_in(bob, **asked)
    assert streamed[0].data["use"] == "added"
    assert streamed[0].data["sentence"] == (
        "What this assistant is limited to is searched, with the files of this assistant:"
        " together they are too long to be read whole."
    )
    assert {file["document_id"], "wiki:page.html"} <= _found(streamed)
    # Nothing of it is left to an assistant that searches nothing but its files.
    assert bob.patch(desk, json={"sources": [], "searches": False}).status_code == 200
    _, streamed = _ask_in(bob, **asked)
    assert streamed[0].data["use"] == "scope"
    assert _found(streamed) == {file["document_id"]}


def test_a_question_that_is_not_kept_has_the_files_of_its_assistant(
    bob: TestClient, server: ScriptedModel
) -> None:
    server.play(_cite)
    desk = f"/api/assistants/{bob.post('/api/assistants', json={'name': 'Move'}).json()['id']}"
    file = _give(bob, desk)
    asked = bob.post("/api/ask", json=QUESTION | {"assistant": _id(desk)})
    assert f'"document_id":"{file["document_id"]}"' in asked.text
    tried = QUESTION | {"assistant": {}, "assistant_id": _id(desk)}
    assert file["document_id"] in bob.post("/api/assistants/try", json=tried).text


def test_a_question_that_is_tried_in_a_project_has_its_files_as_one_that_is_asked(
    bob: TestClient,
    cat: TestClient,
    ann: TestClient,
    project: str,
    server: ScriptedModel,
    modelled: Container,
) -> None:
    server.play(_cite)
    file = _give(cat, project)

    def try_out(client: TestClient) -> Any:
        return client.post(f"{project}/try", json=QUESTION)

    tried = list(events(try_out(bob).text.splitlines()))
    assert tried[0].data == GIVEN
    assert tried[-1].data["answer"]["citations"][0]["document_id"] == file["document_id"]
    # Cat may read them, not change the project; for Ann there is none.
    assert (try_out(cat).status_code, try_out(ann).status_code) == (403, 404)
    window = modelled.settings.llm_window
    _give(cat, project, PLAN + b"Nantmoor sleeps. " * (window // 2), "long.md")
    tried = list(events(try_out(bob).text.splitlines()))
    assert tried[0].data["use"] == "scope"
    assert tried[0].data["sentence"].startswith("Only the files of this project are searched")
    assert file["document_id"] in _found(tried)
    (member,) = bob.get(f"{project}/members").json()["members"]
    assert bob.delete(f"{project}/members/{member['id']}").status_code == 204
    assert file["document_id"] not in try_out(bob).text


def test_a_search_with_an_assistant_finds_its_files_as_its_answers_do(
    ann: TestClient, bob: TestClient, cat: TestClient, desk: str, modelled: Container
) -> None:
    file = _give(ann, desk)

    def search(client: TestClient) -> set[str]:
        body = {"query": "Nantmoor interlock", "assistant": _id(desk), "limit": 200}
        found = client.post("/api/search", json=body)
        assert found.status_code == 200, found.text
        results = {one["document_id"]: one["source"] for one in found.json()["results"]}
        assert results.get(file["document_id"], "Files of this assistant").endswith("assistant")
        return set(results)

    assert {file["document_id"], "wiki:page.html"} <= search(cat)
    (source,) = sources.list_sources(modelled.database)
    _change(modelled, desk, sources=(source.name,))
    assert {file["document_id"], "wiki:page.html"} <= search(cat)
    _change(modelled, desk, sources=(), searches=False)
    assert search(cat) == {file["document_id"]}
    assert ann.delete(f"{desk}/files/{file['id']}").status_code == 204
    assert search(cat) == set()
    assert not _finds(cat, file)
    missing = bob.post("/api/search", json={"query": "Nantmoor", "assistant": _id(desk)})
    assert missing.status_code == 404


def test_the_default_assistant_has_no_files(bob: TestClient) -> None:
    file = _add(bob, PLAN)
    refused = bob.put(f"/api/assistants/default/files/{file['id']}")
    assert refused.status_code == 403
    assert refused.json()["detail"] == "The default assistant has no files of its own."


def test_the_index_has_the_labels_of_what_holds_a_file(
    bob: TestClient, project: str, modelled: Container
) -> None:
    file = _give(bob, project)
    document = file["document_id"]
    _wait_for(lambda: _has_label(modelled, document, project, BOB))
    assigned = modelled.sources.ledger.assign_sets(
        [SelectedDocument(document, frozenset(), frozenset())]
    )
    assert assigned.projects == {document: frozenset({_id(project)})}
    # The index is rebuilt, and may have missed it.
    file_labels.mark_all_due(modelled.database)
    (due,) = [one for one in file_labels.list_due(modelled.database, 1_000) if one.id == file["id"]]
    assert due.labels.projects == {_id(project)}
    # What was changed meanwhile stays due, whoever wrote what before.
    file_labels.mark_all_due(modelled.database)
    file_labels.finish(modelled.database, due)
    assert file_labels.list_due(modelled.database, 1_000)
    assert bob.delete(f"{project}/files/{file['id']}").status_code == 204
    _wait_for(lambda: not file_labels.list_due(modelled.database, 1_000))
    assert not _has_label(modelled, document, project, BOB)


def _has_label(container: Container, document: str, project: str, email: str) -> bool:
    person = people.get_by_email(container.database, email)
    filters = Filters(
        document_ids=frozenset({document}), project_id_filter=frozenset({_id(project)})
    )
    readers = Readers.of(f"external:files:person/{person.id}")
    found = container.engine.index.facets(filters, readers, Deadline.after(5))
    return bool(found.sources)


def _wait_for(holds: Any) -> None:
    end = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_file_from_before_is_shared_once_it_is_in_a_project(
    bob: TestClient, cat: TestClient, project: str, modelled: Container
) -> None:
    """Its document names nobody but its uploader, until it is added."""
    file = _add(bob, PLAN + b"Before.\n", "before.md")
    stored = modelled.sources.ledger.document(file["document_id"])
    assert stored
    person = people.get_by_email(modelled.database, BOB).id
    before = replace(stored, access=Access.to([f"external:files:person/{person}"]))
    modelled.sources.file_index.amend(before, frozenset(), frozenset())
    assert bob.put(f"{project}/files/{file['id']}").status_code == 200
    _wait_for(lambda: _opens(cat, file))


def test_a_file_of_a_deleted_conversation_stays_in_its_project(
    bob: TestClient, project: str, server: ScriptedModel
) -> None:
    server.play(_cite)
    file = _give(bob, project, PLAN + b"It stays.\n", "stays.md")
    conversation, _ = _ask_in(bob, files=[file["id"]])
    assert bob.delete(f"{BASE}/{conversation}").status_code == 204
    assert _names(bob, project) == ["stays.md"]
    assert bob.get(f"{FILES}/{file['id']}").json()["used"]
