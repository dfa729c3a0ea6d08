"""The pages of research: what is begun, planned, read, stopped and deleted by forms; of others' nothing, and nothing that may not be read."""

import re
import time
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, make_csrf_token
from backend.api.account_authentication import AccountCookies
from backend.api.app import Api
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.conversations.answer_gate import WITHHELD
from backend.store.accounts import people
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.research_runs import add_run, finish_run
from tests.support.research_server import HeldModel, work
from tests.support.scripted_model import Json, Reply, Request, Say, ScriptedModel
from tests.unit.backend.api.conftest import ADDRESS, SOURCE, connected, make_container, ready

ANN, BOB = "ann@example.com", "bob@example.com"
LEAVE = "How many weeks of paid leave do parents have?"
FACT = "Parents have 26 weeks of paid leave."
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def model() -> HeldModel:
    return HeldModel()


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory, model: HeldModel) -> Iterator[Container]:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "leave.md").write_text(f"# Parental leave\n\n{FACT}\n", encoding="utf-8")
    with ScriptedModel() as running:
        running.play(model)
        home = tmp_path_factory.mktemp("research-pages")
        made = make_container(home, llm_url=running.base_url, llm_model="scripted")
        connected(made, folder)
        for email, role in ((ANN, Role.ADMIN), (BOB, Role.MEMBER)):
            add_person(made.database, email, role)
        yield made


@pytest.fixture(scope="module")
def app(container: Container) -> Iterator[Api]:
    owner = Owner(container.sign_in.machine_secret, Readers.of())
    app = make_app(container, owner, Listening(address="127.0.0.1"))
    with ready(app):
        yield app


def _browser(app: Api, container: Container, email: str) -> TestClient:
    person = people.get_by_email(container.database, email)
    session = begin_session(
        container.database, person, Visitor(address="192.0.2.7", user_agent="Browser")
    )
    client = TestClient(app, base_url=ADDRESS, follow_redirects=False)
    client.headers["x-csrf-token"] = make_csrf_token(session)
    client.cookies.set(AccountCookies.of_machine(container.sign_in.machine_secret).session, session)
    return client


@pytest.fixture(scope="module")
def ann(app: Api, container: Container) -> TestClient:
    return _browser(app, container, ANN)


@pytest.fixture(scope="module")
def bob(app: Api, container: Container) -> TestClient:
    return _browser(app, container, BOB)


def _owner(container: Container, email: str) -> ConversationOwner:
    return ConversationOwner(people.get_by_email(container.database, email).id)


def _wait(client: TestClient, run: str, *states: str) -> str:
    """Return the page of a run once it is in one of the states."""
    end = time.monotonic() + 60
    while True:
        shown = client.get(run).text
        found = re.search(r'data-run-state="(\w+)"', shown)
        assert found, shown
        if found[1] in states:
            return shown
        assert time.monotonic() < end, found[1]
        time.sleep(0.05)


def _begin(client: TestClient, question: str) -> str:
    begun = client.post("/research", data={"question": question, "knowledge": "on", "minutes": "5"})
    assert begun.status_code == 303, begun.text
    return str(begun.headers["location"])


def _ask_back(values: Json, request: Request) -> Reply:
    del values, request
    return Say('{"questions": ["Which country do you mean?"]}')


def test_a_question_is_clarified_planned_started_and_read_by_forms_alone(
    app: Api, container: Container, ann: TestClient, bob: TestClient, model: HeldModel
) -> None:
    model.model.steps["clarify"] = _ask_back
    with work(container, app):
        run = _begin(ann, f"{LEAVE}; {HOSTILE}")
        shown = _wait(ann, run, "clarifying")
        assert "Which country do you mean?" in shown
        assert "<script>alert" not in shown
        refused = ann.post(f"{run}/clarification", data={"answer": " "})
        assert (refused.status_code, "Write at most 4,000" in refused.text) == (422, False)
        assert bob.post(f"{run}/clarification", data={"skip": "yes"}).status_code == 404
        assert ann.post(f"{run}/clarification", data={"skip": "yes"}).status_code == 303
        shown = _wait(ann, run, "planned")
        assert shown.count('name="keep-') == 3
        plan = {"keep-1": "on", "task-1": LEAVE, "task-2": "Left out?"}
        assert ann.post(f"{run}/plan", data={"task-1": LEAVE}).status_code == 422
        assert ann.post(f"{run}/plan", data=plan | {"start": "yes"}).status_code == 303
        shown = _wait(ann, run, "done")
    model.model.steps.clear()
    assert "Left out?" not in shown
    assert 'class="cite"' in shown
    assert 'data-verdict="supported"' in shown
    assert "26 weeks of paid leave" in shown
    assert 'id="source-1"' in shown
    assert f"/document/{SOURCE}" in shown.replace("%3A", ":")
    assert ann.post(f"{run}/plan", data=plan).status_code == 409
    assert run in ann.get("/research").text
    assert run not in bob.get("/research").text
    for path in ("", "/state"):
        assert bob.get(run + path).status_code == 404
    for action in ("stop", "delete", "plan"):
        assert bob.post(f"{run}/{action}", data=plan).status_code == 404
    for form in ("markdown", "docx"):
        assert ann.get(f"/api{run}/report", params={"format": form}).status_code == 200
    assert ann.post(f"{run}/delete").status_code == 303
    assert ann.get(run).status_code == 404


def test_what_is_refused_says_why_and_keeps_the_question(ann: TestClient) -> None:
    for fields in (
        {"question": " ", "knowledge": "on", "minutes": "5"},
        {"question": "x" * 8_001, "knowledge": "on", "minutes": "5"},
        {"question": "How long?", "minutes": "5"},
        {"question": "How long?", "knowledge": "on", "minutes": "ten"},
    ):
        refused = ann.post("/research", data=fields)
        assert refused.status_code == 422
        assert "Write a question of at most 8,000 characters" in refused.text
        assert f">{fields['question']}</textarea>" in refused.text
    off = ann.post("/research", data={"question": "How long?", "web": "on", "minutes": "5"})
    assert off.status_code == 409
    assert ">How long?</textarea>" in off.text


def test_a_stopped_run_says_so(container: Container, ann: TestClient) -> None:
    run = f"/research/{add_run(container.database, _owner(container, ANN))}"
    assert ann.post(f"{run}/stop").status_code == 303
    assert 'data-run-state="stopped"' in ann.get(run).text
    assert "It was stopped before anything was found." in ann.get(f"{run}/state").text


def test_what_rests_on_a_document_that_may_not_be_read_is_not_shown(
    container: Container, bob: TestClient
) -> None:
    said = "Engineers are paid in band five"
    run_id = add_run(container.database, _owner(container, BOB))
    finish_run(container.database, run_id, [{f"{SOURCE}:finance/pay.md": said}])
    for path in ("", "/state"):
        shown = bob.get(f"/research/{run_id}{path}").text
        assert WITHHELD in shown
        assert said not in shown
        assert "What was found rests on sources that you may not read." in shown
        assert "Not worked on" not in shown
    assert bob.get(f"/api/research/{run_id}/report").status_code == 403


def test_the_chat_leads_to_research(ann: TestClient) -> None:
    shown = ann.get("/chat").text
    assert 'href="/research"' in shown
    assert 'data-mode="research"' in shown
    assert 'data-mode="research"' not in ann.get("/ask").text
