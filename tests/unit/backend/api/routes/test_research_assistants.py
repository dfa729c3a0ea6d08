"""Research with an assistant and in a project, over HTTP: what it searches, what it follows, and for whom."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.api.app import Api
from backend.composition.research import find_person_id
from backend.container import Container
from backend.research.dependencies import ResearchRefusal
from backend.research.run_assistant import WITHOUT_ASSISTANT
from backend.research.runs.run_steps import RunRights
from backend.store.accounts import people
from backend.store.llm import model_usage
from backend.store.llm.model_usage import TokenCounts
from backend.store.owner import ConversationOwner
from backend.store.research import research_runs
from backend.store.research.research_runs import ResearchRun
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from tests.support.accounts import add_person
from tests.support.research_runs import add_run
from tests.support.research_server import (
    BASE,
    SOON,
    HeldModel,
    client_of,
    follow,
    open_run,
    serve,
    start,
    work,
)
from tests.support.scripted_model import ScriptedModel
from tests.unit.backend.api.conftest import connected, make_container

BOB, CID = "bob@example.com", "cid@example.com"
LEAVE = "How many weeks of paid leave do parents have?"
CRANE = "What does the Quibberdale crane lift?"
SHED = "The Quibberdale crane lifts nine tons.\n"
PLAN = b"# Move\n\nThe Quibberdale crane lifts four tons since the move.\n"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def modelled(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, server: ScriptedModel
) -> Container:
    """Two sources: `wiki`, which knows about leave, and `shed`, which knows about a crane."""
    home, shed = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("shed")
    container = make_container(home, llm_url=server.base_url, llm_model="scripted")
    connected(container, folder)
    (shed / "crane.md").write_text(SHED)
    source = sources.add(container.database, "shed", "folder", {"path": str(shed)})
    assert list(
        sync(
            container.database,
            source,
            container.sources.connector(source),
            container.sources.pipeline(source),
        )
    )
    add_person(container.database, "ann@example.com", Role.ADMIN)
    for email in (BOB, CID):
        add_person(container.database, email)
    return container


@pytest.fixture(scope="module")
def app(modelled: Container) -> Iterator[Api]:
    with serve(modelled) as app, work(modelled, app):
        yield app


def _client(app: Api, container: Container, email: str) -> TestClient:
    return client_of(app, container, people.get_by_email(container.database, email))


@pytest.fixture(scope="module")
def bob(app: Api, modelled: Container) -> TestClient:
    return _client(app, modelled, BOB)


@pytest.fixture(scope="module")
def cid(app: Api, modelled: Container) -> TestClient:
    return _client(app, modelled, CID)


@pytest.fixture(autouse=True)
def model(server: ScriptedModel) -> Iterator[HeldModel]:
    model = HeldModel()
    server.play(model)
    server.requests.clear()
    yield model
    model.release()


def _make_assistant(client: TestClient, **values: object) -> str:
    made = client.post("/api/assistants", json={"name": "Foreman", **values})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def _cited(opened: Any) -> set[str]:
    report = opened["report"]
    return set() if report is None else {one["document_id"] for one in report["sources"]}


@pytest.mark.soak("slow")
def test_a_run_never_cites_outside_of_what_its_assistant_is_limited_to(bob: TestClient) -> None:
    both = f"{LEAVE}; {CRANE}"
    free = start(bob, both)
    follow(bob, free)
    assert _cited(open_run(bob, free)) == {"wiki:leave.md", "shed:crane.md"}
    foreman = _make_assistant(bob, sources=["shed"])
    run_id = start(bob, both, assistant_id=foreman)
    streamed = follow(bob, run_id)
    opened = open_run(bob, run_id)
    assert _cited(opened) == {"shed:crane.md"}
    assert opened["run"]["assistant_id"] == foreman
    assert "wiki:" not in str(streamed)
    assert "26 weeks" not in str(opened)


def test_instructions_of_the_assistant_and_the_project_are_followed(
    bob: TestClient, server: ScriptedModel
) -> None:
    foreman = _make_assistant(bob, instructions="Write for crane drivers.")
    asked = {"name": "Depot", "instructions": "Tons are metric."}
    project = bob.post("/api/projects", json=asked).json()["id"]
    run_id = start(bob, CRANE, assistant_id=foreman, project_id=project)
    assert follow(bob, run_id)[-1].name == "done"
    followed = [
        one
        for one in server.requests
        if "Write for crane drivers." in (system := str(one.messages[0]["content"]))
        and "Tons are metric." in system
    ]
    assert len(followed) >= 4  # the plan, a step of the agent, its report, the final report


@pytest.mark.soak("slow")
def test_the_files_of_a_project_are_searched_in_it_and_nowhere_else(
    bob: TestClient, cid: TestClient
) -> None:
    project = bob.post("/api/projects", json={"name": "Move"}).json()["id"]
    assert bob.post(f"/api/projects/{project}/members", json={"email": CID}).status_code == 200
    file = _upload(bob)
    assert bob.put(f"/api/projects/{project}/files/{file['id']}").status_code == 200
    limited = _make_assistant(cid, sources=["wiki"])
    inside = start(cid, CRANE, project_id=project, assistant_id=limited)
    follow(cid, inside)
    assert _cited(open_run(cid, inside)) == {file["document_id"]}
    assert "four tons" in open_run(bob, inside)["report"]["markdown"]
    outside = start(cid, CRANE)
    follow(cid, outside)
    assert _cited(open_run(cid, outside)) == {"shed:crane.md"}


def _upload(client: TestClient) -> Any:
    sent = client.post("/api/files", files={"file": ("move.md", PLAN)})
    assert sent.status_code == 202, sent.text
    end = time.monotonic() + SOON
    while (file := client.get(f"/api/files/{sent.json()['id']}").json())["status"] == "reading":
        assert time.monotonic() < end
        time.sleep(0.02)
    return file


def test_research_of_a_conversation_has_its_assistant(bob: TestClient) -> None:
    limited = _make_assistant(bob, sources=["shed"])
    asked = {"question": CRANE, "assistant_id": limited}
    begun = bob.post("/api/conversations", json=asked).json()
    conversation, message = begun["conversation"]["id"], begun["answer"]["id"]
    bob.get(f"/api/conversations/{conversation}/messages/{message}/events")
    run_id = start(bob, f"{LEAVE}; {CRANE}", conversation_id=conversation)
    follow(bob, run_id)
    opened = open_run(bob, run_id)
    assert opened["run"]["assistant_id"] == limited
    assert _cited(opened) == {"shed:crane.md"}
    assert bob.delete(f"/api/assistants/{limited}").status_code == 204
    refused = bob.post(BASE, json={"question": LEAVE, "conversation_id": conversation})
    assert (refused.status_code, "no longer available" in refused.text) == (409, True)


def test_an_assistant_that_is_deleted_in_mid_run_ends_the_run(
    bob: TestClient, model: HeldModel
) -> None:
    foreman = _make_assistant(bob, sources=["shed"])
    model.hold("plan")
    run_id = start(bob, f"{LEAVE}; {CRANE}", assistant_id=foreman)
    assert model.held.wait(SOON)
    assert bob.delete(f"/api/assistants/{foreman}").status_code == 204
    model.release()
    last = follow(bob, run_id)[-1]
    assert last.name == "failed"
    assert "assistant of this research is no longer available" in last.data["problem"]
    assert _cited(open_run(bob, run_id)) == set()


def test_an_assistant_that_is_deleted_between_two_rounds_leaves_a_report_of_what_there_is(
    bob: TestClient, model: HeldModel
) -> None:
    foreman = _make_assistant(bob, sources=["shed"])
    model.hold("next_tasks")
    run_id = start(bob, CRANE, assistant_id=foreman)
    assert model.held.wait(SOON)
    assert bob.delete(f"/api/assistants/{foreman}").status_code == 204
    model.release()
    assert follow(bob, run_id)[-1].name == "done"
    report = open_run(bob, run_id)["report"]
    assert "nine tons" in report["markdown"]
    assert "assistant of this research is no longer available" in report["markdown"]


@pytest.fixture
def rights(modelled: Container) -> tuple[ResearchRun, RunRights]:
    """A run of Bob's with the default assistant, that nobody works on, and what he may read."""
    bob = people.get_by_email(modelled.database, BOB)
    run_id = add_run(modelled.database, ConversationOwner(bob.id))
    run = research_runs.get(modelled.database, ConversationOwner(bob.id), run_id).run
    research_runs.remove(modelled.database, run.owner, run_id)
    return run, modelled.research.find_rights(run)


def test_a_run_is_taken_up_with_the_reason_where_its_assistant_is_gone(
    modelled: Container, rights: tuple[ResearchRun, RunRights]
) -> None:
    """The default assistant would search any domain with any model in its place, also when it is there again."""
    run, own = rights
    with modelled.research.open(run, own) as opened:
        assert opened.refusal is None
    with modelled.research.open(replace(run, assistant_id="never-was"), own) as opened:
        assert opened.refusal == WITHOUT_ASSISTANT


def test_a_run_is_taken_up_with_the_reason_where_a_budget_is_used_up(
    modelled: Container, rights: tuple[ResearchRun, RunRights]
) -> None:
    run, own = rights
    groups = GroupService(modelled.database)
    groups.create("yard")
    groups.add_member("yard", BOB)
    today = datetime.now(UTC).date()
    used = {"scripted": TokenCounts(input_tokens=10, calls=1)}
    model_usage.add(modelled.database, find_person_id(run), today, used)
    refusal = ResearchRefusal(
        "The tokens of language models for today are used up.",
        "Start this research again tomorrow.",
    )
    groups.set_token_budget("yard", 10)
    try:
        with modelled.research.open(run, own) as opened:
            assert opened.refusal == refusal
    finally:
        groups.remove_member("yard", BOB)
    service = PeopleService(modelled.database)
    service.set_token_budget(BOB, 10)
    try:
        with modelled.research.open(run, own) as opened:
            assert opened.refusal == refusal
    finally:
        service.set_token_budget(BOB, 0)
    with modelled.research.open(run, own) as opened:
        assert opened.refusal is None


def test_somebody_elses_assistant_and_one_that_never_was_are_answered_alike(
    bob: TestClient, cid: TestClient
) -> None:
    foreign = _make_assistant(bob)
    said = {
        (answer.status_code, answer.json()["detail"])
        for one in (foreign, "never-was")
        for answer in [cid.post(BASE, json={"question": LEAVE, "assistant_id": one})]
    }
    assert said == {(404, "There is no such assistant.")}
    both = {"question": LEAVE, "assistant_id": foreign, "conversation_id": "any"}
    assert bob.post(BASE, json=both).status_code == 422
