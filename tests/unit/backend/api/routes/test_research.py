"""Research over HTTP: whole runs, planned with the person, followed from any event, stopped, and gated by what the asker may read now."""

import io
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import docx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.api.app import Api
from backend.container import Container
from backend.conversations.answer_gate import WITHHELD
from backend.research.knowledge.kept_knowledge import LearnedItem
from backend.research.knowledge.service import add_items
from backend.research.knowledge_items import KnowledgeType
from backend.research.runs.service import MOST_OPEN
from backend.store.accounts import people
from backend.store.owner import ConversationOwner
from backend.store.research import research_runs
from backend.store.research.knowledge_records import OWN, KnowledgePlace
from backend.store.research.research_runs import ResearchRun
from backend.store.schema.conversation_tables import messages
from tests.support.accounts import add_person
from tests.support.knowledge import forget_findings, make_item
from tests.support.research_server import (
    BASE,
    ENDED,
    SOON,
    HeldModel,
    client_of,
    follow,
    open_run,
    serve,
    start,
    wait_for_state,
    work,
)
from tests.support.scripted_model import Json, Refuse, Reply, Request, Say, ScriptedModel
from tests.unit.backend.api.conftest import SOURCE, connected, make_container

LEAVE = "How many weeks of paid leave do parents have?"
PAY = "In which band is a senior engineer?"
BONUS = "How much is the zephyr bonus of the depot?"
BOTH = f"{LEAVE}; {PAY}"
PAY_DOCUMENT = f"{SOURCE}:finance/pay.md"
ANN, BOB, GONE = (f"{name}@example.com" for name in ("ann", "bob", "gone"))


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def modelled(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, server: ScriptedModel
) -> Container:
    """One with accounts: Ann is an admin, Bob is in the group that reads the salary bands."""
    home = tmp_path_factory.mktemp("research")
    container = make_container(home, llm_url=server.base_url, llm_model="scripted")
    connected(container, folder)
    add_person(container.database, ANN, Role.ADMIN)
    groups = GroupService(container.database)
    groups.create("finance")
    for email in (BOB, GONE):
        add_person(container.database, email)
        groups.add_member("finance", email)
    return container


@pytest.fixture(scope="module")
def app(modelled: Container) -> Iterator[Api]:
    with serve(modelled) as app:
        yield app


def _client(app: Api, container: Container, email: str) -> TestClient:
    return client_of(app, container, people.get_by_email(container.database, email))


@pytest.fixture(scope="module")
def bob(app: Api, modelled: Container) -> TestClient:
    return _client(app, modelled, BOB)


@pytest.fixture(scope="module")
def ann(app: Api, modelled: Container) -> TestClient:
    return _client(app, modelled, ANN)


@pytest.fixture
def model(server: ScriptedModel) -> Iterator[HeldModel]:
    model = HeldModel()
    server.play(model)
    server.requests.clear()
    yield model
    model.release()


@pytest.fixture
def workers(app: Api, modelled: Container) -> Iterator[None]:
    with work(modelled, app):
        yield


@pytest.fixture(autouse=True)
def _forget(modelled: Container) -> Iterator[None]:
    """What the runs of one test found out is not known to those of the next one."""
    yield
    forget_findings(modelled.database)


@contextmanager
def _without_finance(container: Container, email: str = BOB) -> Iterator[None]:
    """What a test changes is put right again."""
    groups = GroupService(container.database)
    groups.remove_member("finance", email)
    try:
        yield
    finally:
        groups.add_member("finance", email)


@pytest.mark.usefixtures("workers", "model")
def test_a_whole_run_is_followed_and_kept(bob: TestClient) -> None:
    run_id = start(bob, BOTH)
    streamed = follow(bob, run_id)
    assert [event.id for event in streamed] == list(range(1, len(streamed) + 1))
    names = [event.name for event in streamed]
    for name in ("plan", "task_started", "source", "task_done", "round", "report_checked", "text"):
        assert name in names
    assert names[-2:] == ["report", "done"]
    (plan,) = (event.data["tasks"] for event in streamed if event.name == "plan")
    assert [task["question"] for task in plan] == [LEAVE, PAY]
    report = streamed[-2].data
    text = "".join(event.data["text"] for event in streamed if event.name == "text")
    assert text == report["markdown"]
    assert "26 weeks of paid leave [1]" in text
    assert "A senior engineer is in band five [2]" in text
    assert [one["number"] for one in report["sources"]] == [1, 2]
    assert report["sources"][1]["document_id"] == PAY_DOCUMENT
    assert report["counts"]["citations"] == report["counts"]["supported"] == 2
    opened = open_run(bob, run_id)
    assert opened["report"] == report
    assert (opened["run"]["state"], opened["run"]["tasks_done"], opened["withheld"]) == (
        "done",
        2,
        False,
    )
    assert [one["task"]["number"] for one in opened["reports"]] == [1, 2]


@pytest.mark.usefixtures("workers", "model")
def test_whoever_comes_again_receives_exactly_the_rest(bob: TestClient) -> None:
    run_id = start(bob, LEAVE)
    whole = follow(bob, run_id)
    for cut in range(1, len(whole)):
        assert follow(bob, run_id, cut) == whole[cut:]
    assert bob.get(f"{BASE}/{run_id}/events", params={"after": len(whole)}).status_code == 204


@pytest.mark.usefixtures("workers", "model")
def test_a_report_is_read_as_markdown_and_as_a_word_document(bob: TestClient) -> None:
    run_id = start(bob, BOTH)
    follow(bob, run_id)
    markdown = bob.get(f"{BASE}/{run_id}/report")
    assert markdown.headers["content-type"].startswith("text/markdown")
    assert "26 weeks of paid leave [^1]" in markdown.text
    assert re.findall(r"(?m)^\[\^(\d+)\]: \[(.*?)\]\(file://", markdown.text) == [
        (str(one["number"]), one["title"]) for one in open_run(bob, run_id)["report"]["sources"]
    ]
    assert "[1]" not in markdown.text
    word = bob.get(f"{BASE}/{run_id}/report", params={"format": "docx"})
    written = docx.Document(io.BytesIO(word.content))
    lines = [paragraph.text for paragraph in written.paragraphs]
    assert any("26 weeks of paid leave [1]" in line for line in lines)
    assert any("of them without a source: 0" in line for line in lines)
    assert [line for line in lines if line.startswith("[1] Parental leave (file://")], lines[-2:]
    assert [p.text for p in written.paragraphs if p.style and p.style.name == "Heading 2"]


@pytest.mark.usefixtures("workers")
def test_a_plan_is_changed_before_it_starts(bob: TestClient, model: HeldModel) -> None:
    model.model.steps["clarify"] = _ask_nothing
    run_id = start(bob, BOTH, confirm=True)
    opened = wait_for_state(bob, run_id, "planned")
    assert [task["question"] for task in opened["plan"]] == [LEAVE, PAY]
    assert model.model.of("agent") == []
    changed = bob.put(f"{BASE}/{run_id}/plan", json={"tasks": [PAY]})
    assert [task["question"] for task in changed.json()["plan"]] == [PAY]
    assert bob.post(f"{BASE}/{run_id}/start").status_code == 202
    streamed = follow(bob, run_id)
    assert streamed[-1].name == "done"
    started = [event.data["task"]["question"] for event in streamed if event.name == "task_started"]
    assert started == [PAY]
    for method, path in (("PUT", "plan"), ("POST", "start")):
        body = {"tasks": [LEAVE]} if method == "PUT" else None
        late = bob.request(method, f"{BASE}/{run_id}/{path}", json=body)
        assert late.status_code == 409, late.text


@pytest.mark.usefixtures("workers")
def test_what_is_unclear_is_asked_back_once(bob: TestClient, model: HeldModel) -> None:
    run_id = start(bob, LEAVE, confirm=True)
    opened = wait_for_state(bob, run_id, "clarifying")
    assert opened["clarification"] == ["Which one?"]
    answer = {"answer": "The one for parents."}
    assert bob.post(f"{BASE}/{run_id}/clarification", json=answer).status_code == 200
    wait_for_state(bob, run_id, "planned")
    (planned,) = model.model.of("plan")
    assert planned["answered"] == "The one for parents."
    assert bob.post(f"{BASE}/{run_id}/clarification", json=answer).status_code == 409
    assert bob.post(f"{BASE}/{run_id}/stop").json()["run"]["state"] == "stopped"
    last = follow(bob, run_id)[-1]
    assert (last.name, last.data["problem"]) == (
        "stopped",
        "It was stopped before anything was found.",
    )


@pytest.mark.usefixtures("workers")
def test_a_run_that_is_stopped_reports_what_there_is(bob: TestClient, model: HeldModel) -> None:
    model.hold("next_tasks")
    run_id = start(bob, BOTH)
    assert model.held.wait(SOON)
    assert bob.post(f"{BASE}/{run_id}/stop").json()["run"]["state"] in {"stopping", "stopped"}
    model.release()
    streamed = follow(bob, run_id)
    assert streamed[-1].name == "stopped"
    opened = open_run(bob, run_id)
    assert "26 weeks" in opened["report"]["markdown"]
    assert bob.post(f"{BASE}/{run_id}/stop").json()["run"]["state"] == "stopped"


@pytest.mark.usefixtures("workers")
def test_a_right_that_is_withdrawn_in_mid_run_leaves_a_report_without_it(
    bob: TestClient, modelled: Container, model: HeldModel
) -> None:
    model.hold("next_tasks")
    run_id = start(bob, BOTH)
    assert model.held.wait(SOON)
    with _without_finance(modelled):
        model.release()
        streamed = follow(bob, run_id)
        assert streamed[-1].name in ENDED
        opened = open_run(bob, run_id)
        shown = str(streamed) + str(opened)
        assert "band five" not in shown
        report = opened["report"]
        assert report is not None
        assert "26 weeks of paid leave" in report["markdown"]
        assert {one["document_id"] for one in report["sources"]} == {f"{SOURCE}:leave.md"}


@pytest.mark.usefixtures("workers", "model")
def test_a_right_that_is_withdrawn_later_withholds_what_rests_on_it(
    bob: TestClient, modelled: Container
) -> None:
    run_id = start(bob, BOTH)
    whole = follow(bob, run_id)
    with _without_finance(modelled):
        opened = open_run(bob, run_id)
        assert (opened["report"], opened["withheld"], opened["notice"]) == (None, True, WITHHELD)
        refused = bob.get(f"{BASE}/{run_id}/report")
        assert (refused.status_code, refused.json()["detail"]) == (403, WITHHELD)
        again = follow(bob, run_id)
        assert "band five" not in f"{opened}{again}"
        assert {"withheld", "done"} <= {event.name for event in again}
        assert "26 weeks" in str([one for one in again if one.name == "task_done"])
        for cut in range(0, len(whole), 7):
            assert "band five" not in str(follow(bob, run_id, cut))
    assert open_run(bob, run_id)["report"] is not None
    assert follow(bob, run_id) == whole


@pytest.mark.usefixtures("workers")
def test_an_account_that_is_disabled_in_mid_run_gets_no_report(
    app: Api, modelled: Container, model: HeldModel
) -> None:
    gone = _client(app, modelled, GONE)
    service = PeopleService(modelled.database)
    person = people.get_by_email(modelled.database, GONE)
    model.hold("next_tasks")
    run_id = start(gone, BOTH)
    assert model.held.wait(SOON)
    service.disable(GONE)
    model.release()
    assert gone.get(f"{BASE}/{run_id}").status_code == 401
    run = _wait_for_end(modelled, ConversationOwner(person.id), run_id)
    assert (run.state, run.has_report) == ("failed", False)
    assert run.problem
    service.enable(GONE)


def _wait_for_end(container: Container, owner: ConversationOwner, run_id: str) -> ResearchRun:
    end = time.monotonic() + SOON
    while (run := research_runs.get(container.database, owner, run_id).run).state not in ENDED:
        assert time.monotonic() < end, run
        time.sleep(0.02)
    return run


@pytest.mark.usefixtures("workers", "model")
def test_a_run_of_somebody_else_does_not_exist(ann: TestClient, bob: TestClient) -> None:
    run_id = start(bob, LEAVE)
    follow(bob, run_id)
    for method, path in (
        ("GET", ""),
        ("GET", "/events"),
        ("GET", "/report"),
        ("POST", "/start"),
        ("POST", "/stop"),
        ("DELETE", ""),
    ):
        assert ann.request(method, f"{BASE}/{run_id}{path}").status_code == 404, path
    assert run_id not in ann.get(BASE).text
    assert run_id in bob.get(BASE).text


@pytest.mark.usefixtures("workers", "model")
def test_members_of_a_project_read_what_they_may(bob: TestClient, ann: TestClient) -> None:
    project = bob.post("/api/projects", json={"name": "Pay"}).json()["id"]
    assert bob.post(f"/api/projects/{project}/members", json={"email": ANN}).status_code == 200
    run_id = start(bob, BOTH, project_id=project)
    follow(bob, run_id)
    opened = open_run(ann, run_id)
    assert (opened["run"]["is_own"], opened["report"], opened["withheld"]) == (False, None, True)
    assert [one["task"]["question"] for one in opened["reports"]] == [LEAVE]
    seen = follow(ann, run_id)
    assert "band five" not in f"{seen}{opened}"
    assert ann.get(f"{BASE}/{run_id}/report").status_code == 403
    assert ann.delete(f"{BASE}/{run_id}").status_code == 404
    listed = ann.get(BASE, params={"project_id": project}).json()["runs"]
    assert [one["id"] for one in listed] == [run_id]
    assert ann.get(BASE).json()["runs"] == []


@pytest.mark.usefixtures("workers", "model")
def test_research_of_a_conversation_knows_what_was_said_and_is_withheld_with_it(
    bob: TestClient, modelled: Container
) -> None:
    begun = bob.post("/api/conversations", json={"question": PAY}).json()
    conversation = begun["conversation"]["id"]
    message = begun["answer"]["id"]
    bob.get(f"/api/conversations/{conversation}/messages/{message}/events")
    run_id = start(bob, LEAVE, conversation_id=conversation)
    assert follow(bob, run_id)[-1].name == "done"
    opened = open_run(bob, run_id)
    rests_on_pay = PAY_DOCUMENT in bob.get(f"/api/conversations/{conversation}").text
    with _without_finance(modelled):
        hidden = open_run(bob, run_id)
    assert hidden["withheld"] is rests_on_pay
    assert opened["report"] is not None
    assert bob.delete(f"/api/conversations/{conversation}").status_code == 204
    assert bob.get(f"{BASE}/{run_id}").status_code == 404


@pytest.mark.usefixtures("workers", "model")
def test_agents_know_what_the_conversation_established(
    bob: TestClient, modelled: Container, server: ScriptedModel
) -> None:
    """The answer is put into the database as a turn leaves it: no model of this module writes chats."""
    begun = bob.post("/api/conversations", json={"question": PAY}).json()
    conversation, message = begun["conversation"]["id"], begun["answer"]["id"]
    bob.get(f"/api/conversations/{conversation}/messages/{message}/events")
    cited = {
        "number": 1,
        "document_id": PAY_DOCUMENT,
        "title": "Salary bands",
        "link": "",
        "quote": "A senior engineer is in band five.",
        "section": 0,
        "span": [0, 34],
        "score": 0.9,
    }
    with modelled.database.writing() as connection:
        connection.execute(
            update(messages)
            .where(messages.c.id == message)
            .values(
                text="Senior engineers are in band five [1].",
                answer={"citations": [cited]},
                document_ids=[PAY_DOCUMENT],
            )
        )
    run_id = start(bob, LEAVE, conversation_id=conversation)
    assert follow(bob, run_id)[-1].name == "done"
    asked = [one.text for one in server.requests if "You research one question" in one.text]
    assert asked
    assert all(f"{PAY}\nSenior engineers are in band five.\n" in text for text in asked)
    with _without_finance(modelled):
        assert open_run(bob, run_id)["withheld"]


@pytest.mark.usefixtures("workers", "model")
def test_what_was_found_before_is_named_and_withheld_with_its_documents(
    bob: TestClient, modelled: Container
) -> None:
    owner = ConversationOwner(people.get_by_email(modelled.database, BOB).id)
    bonus = "The zephyr bonus of the depot is nine francs."
    item = make_item(BONUS, bonus, kind=KnowledgeType.CHAT_HISTORY)
    learned = LearnedItem(item=item, document_ids=frozenset({PAY_DOCUMENT}))
    (made,) = add_items(modelled.database, owner, OWN, [learned])
    run_id = start(bob, BONUS)
    streamed = follow(bob, run_id)
    used = [event.data for event in streamed if event.name == "earlier_findings"]
    assert [(one["task"], [each["id"] for each in one["findings"]]) for one in used] == [
        (1, [made])
    ]
    markdown = open_run(bob, run_id)["report"]["markdown"]
    assert "nine francs [1]" in markdown
    assert f"found earlier on {datetime.now(UTC):%Y-%m-%d}" in markdown
    with _without_finance(modelled):
        shown = f"{follow(bob, run_id)}{open_run(bob, run_id)['report']}"
        assert "francs" not in shown
        assert made not in shown


@pytest.mark.usefixtures("workers", "model")
def test_a_run_in_a_project_begins_with_what_the_project_found_alone(
    bob: TestClient, ann: TestClient, modelled: Container
) -> None:
    """What its owner found for themselves rests on no document: everybody in the project would read it."""
    owner = ConversationOwner(people.get_by_email(modelled.database, BOB).id)
    project = bob.post("/api/projects", json={"name": "Crane"}).json()["id"]
    assert bob.post(f"/api/projects/{project}/members", json={"email": ANN}).status_code == 200
    asked = "Who drives the crane of the wharf?"
    for place, who in ((OWN, "Zephyrine"), (KnowledgePlace("project", project), "Quillon")):
        item = make_item(
            asked, f"{who} drives the crane of the wharf.", kind=KnowledgeType.CHAT_HISTORY
        )
        add_items(modelled.database, owner, place, [LearnedItem(item=item)])
    inside, outside = start(bob, asked, project_id=project), start(bob, asked)
    shared = f"{follow(bob, inside)}{follow(ann, inside)}{open_run(ann, inside)}"
    assert "Quillon drives the crane" in shared
    assert "Zephyrine" not in shared
    own = f"{follow(bob, outside)}{open_run(bob, outside)}"
    assert "Zephyrine drives the crane" in own
    assert "Quillon" not in own


@pytest.mark.usefixtures("workers", "model")
def test_an_end_that_was_not_seen_is_new(bob: TestClient) -> None:
    run_id = start(bob, LEAVE)
    follow(bob, run_id)

    def is_new() -> bool:
        listed = {one["id"]: one for one in bob.get(BASE).json()["runs"]}
        return bool(listed[run_id]["is_new"])

    assert is_new()
    open_run(bob, run_id)
    assert not is_new()


def test_runs_that_wait_say_their_place(bob: TestClient, model: HeldModel) -> None:
    del model
    ids = [start(bob, LEAVE) for _ in range(3)]
    assert [open_run(bob, one)["run"]["place"] for one in ids] == [1, 2, 3]
    for one in ids:
        assert bob.post(f"{BASE}/{one}/stop").json()["run"]["state"] == "stopped"
        assert follow(bob, one)[-1].name == "stopped"
        assert bob.delete(f"{BASE}/{one}").status_code == 204
        assert bob.get(f"{BASE}/{one}").status_code == 404


def _fail(values: Json, request: Request) -> Reply:
    del values, request
    return Refuse(500, "broken")


def _ask_nothing(values: Json, request: Request) -> Reply:
    del values, request
    return Say('{"questions": []}')


@pytest.mark.soak("slow")
@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("prompt", ["plan", "agent", "task_report", "final_report"])
def test_a_model_that_fails_leaves_a_report_or_a_sentence_why_not(
    bob: TestClient, model: HeldModel, prompt: str
) -> None:
    model.model.steps[prompt] = _fail
    run_id = start(bob, LEAVE)
    last = follow(bob, run_id)[-1]
    opened = open_run(bob, run_id)
    assert last.name in ENDED
    assert (opened["report"] is not None) != bool(opened["run"]["problem"])


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"question": ""}, 422),
        ({"question": LEAVE, "minutes": 0}, 422),
        ({"question": LEAVE, "minutes": 31}, 422),
        ({"question": LEAVE, "knowledge": False}, 422),
        ({"question": LEAVE, "web": True}, 409),
        ({"question": LEAVE, "project_id": "missing"}, 404),
        ({"question": LEAVE, "conversation_id": "missing"}, 404),
    ],
)
def test_what_cannot_be_researched_is_refused(
    bob: TestClient, body: dict[str, object], status: int
) -> None:
    before = bob.get(BASE).json()["runs"]
    assert bob.post(BASE, json=body).status_code == status
    assert bob.get(BASE).json()["runs"] == before


def test_of_many_runs_that_begin_at_once_no_more_are_taken_than_one_may_have(
    app: Api, modelled: Container
) -> None:
    """Nothing works on them here, so that none ends meanwhile."""
    person = add_person(modelled.database, "kim@example.com")
    kim = client_of(app, modelled, person)
    body = {"question": LEAVE}
    first = [kim.post(BASE, json=body) for _ in range(MOST_OPEN - 2)]
    with ThreadPoolExecutor(3) as pool:
        last = pool.map(lambda _: kim.post(BASE, json=body), range(8))
    statuses = Counter(answer.status_code for answer in (*first, *last))
    assert statuses == {202: MOST_OPEN, 409: 6}


def test_research_needs_a_model(client: TestClient) -> None:
    refused = client.post(BASE, json={"question": LEAVE})
    assert refused.status_code == 409
    assert "quarry models add" in refused.text
