"""The tool `research` of `/mcp`, used by the official client: a run of the asker, with its rights, that outlives the connection."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.api.started_research import ResearchStarter
from backend.composition.research import NO_MODEL
from backend.conversations.answer_gate import WITHHELD
from backend.conversations.assistant_service import AssistantService, AssistantUser
from backend.conversations.project_service import ProjectService
from backend.conversations.turn_events import NumberedEvent
from backend.programs.mcp.research import SOURCES_PAUSE, ResearchSteps
from backend.research.runs import service
from backend.research.runs.service import ResearchService
from backend.store.accounts import people
from backend.store.audit import Actor
from backend.store.chat.assistants import AssistantValues
from backend.store.owner import ConversationOwner
from backend.store.research import research_runs
from backend.store.research.research_runs import ResearchRun
from connectors.access import Readers
from tests.support.knowledge import forget_findings
from tests.support.mcp_clients import (
    Mode,
    Progress,
    connect,
    find_refusal,
    read_failure,
    read_text,
    use,
)
from tests.support.research_server import SOON, HeldModel, work
from tests.unit.backend.api.mcp.conftest import A_WEEK, ANN, BOB, LEAVE, PAY, Office

PARENTS = "How many weeks of paid leave do parents have?"
BAND = "In which band is a senior engineer?"
BOTH = f"{PARENTS}; {BAND}"


@pytest.fixture(autouse=True)
def _no_earlier_findings(office: Office) -> None:
    forget_findings(office.container.database)


@pytest.fixture
def researcher(office: Office) -> Iterator[HeldModel]:
    """Answers what research asks; its prompts are in the requests of the model."""
    made = HeldModel()
    office.model.play(made)
    office.model.requests.clear()
    yield made
    made.release()


@pytest.fixture
def workers(office: Office) -> Iterator[None]:
    with work(office.container, office.apps[0]):
        yield


def list_runs(office: Office, email: str) -> list[ResearchRun]:
    person = people.get_by_email(office.container.database, email)
    owner = ConversationOwner(person.id)
    return list(research_runs.list_page(office.container.database, owner, None, None, 100))


def wait_for_end(office: Office, email: str) -> ResearchRun:
    """Wait until the last run of somebody has ended."""
    end = time.monotonic() + SOON
    while (run := list_runs(office, email)[0]).ended_at is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    return run


@pytest.mark.soak("slow")
@pytest.mark.usefixtures("workers", "researcher")
def test_a_report_names_its_sources_and_its_progress_is_reported(
    office: Office, mode: Mode
) -> None:
    progress = Progress()

    async def research(client: Client) -> Any:
        found = await client.call_tool(
            "research", {"question": BOTH, "minutes": 5}, progress_callback=progress.note
        )
        assert not found.is_error
        assert json.loads(read_text(found)) == found.structured_content
        return found.structured_content

    found = office.use(ANN, mode, research)
    assert "Parents have 26 weeks of paid leave [1]." in found["report"]
    assert "A senior engineer is in band five [2]." in found["report"]
    assert found["sources"] == [
        {
            "number": number,
            "id": document,
            "title": title,
            "url": f"{office.url}/document/{document}",
        }
        for number, document, title in ((1, LEAVE, "Parental leave"), (2, PAY, "Salary bands"))
    ]
    assert found["counts"]["citations"] == found["counts"]["supported"] == 2
    run = list_runs(office, ANN)[0]
    assert found["url"] == f"{office.url}/api/research/{run.id}"
    assert (run.state, run.confirms_plan) == ("done", False)
    assert progress.steps == sorted(set(progress.steps))
    first, *_, last = progress.messages
    assert found["url"] in first
    assert last == "Writing the report"
    for said in (f"Task 1 started: {PARENTS}", "Task 2 done: 1 source", "Found 1 source so far"):
        assert said in progress.messages


@pytest.mark.usefixtures("workers", "researcher")
def test_a_member_is_told_nothing_of_what_they_may_not_read(office: Office, mode: Mode) -> None:
    progress = Progress()

    async def research(client: Client) -> str:
        asked = {"question": BOTH}
        return read_text(await client.call_tool("research", asked, progress_callback=progress.note))

    shown = office.use(BOB, mode, research)
    assert LEAVE in shown
    assert "26 weeks of paid leave [1]" in shown
    for secret in (PAY, "Salary bands", "band five"):
        assert secret not in shown
        assert all(secret not in one for one in progress.messages)
        assert all(secret not in request.text for request in office.model.requests)


def _own_assistants(office: Office, email: str) -> AssistantService:
    person = people.get_by_email(office.container.database, email)
    user = AssistantUser(
        owner=ConversationOwner(person.id),
        readers=Readers.of(),
        is_admin=False,
        actor=Actor(f"user:{email}"),
    )
    return AssistantService(
        database=office.container.database, user=user, find_sources=frozenset[str]
    )


def _make_assistant(office: Office, email: str, name: str) -> str:
    values = AssistantValues(name=name, instructions="Speak like a foreman.")
    return _own_assistants(office, email).create(values).id


def _make_project(office: Office, email: str, name: str) -> str:
    person = people.get_by_email(office.container.database, email)
    service = ProjectService(database=office.container.database, owner=ConversationOwner(person.id))
    return service.create(name, "Say what is of the quay.").id


@pytest.mark.soak("slow")
@pytest.mark.usefixtures("workers", "researcher")
@pytest.mark.parametrize("by", ["id", "name"])
def test_an_assistant_and_a_project_are_given_by_id_or_name(
    office: Office, mode: Mode, by: str
) -> None:
    names = {"assistant": f"Foreman {mode} {by}", "project": f"Quay {mode} {by}"}
    ids = {
        "assistant": _make_assistant(office, BOB, names["assistant"]),
        "project": _make_project(office, BOB, names["project"]),
    }
    given = ids if by == "id" else {kind: name.upper() for kind, name in names.items()}
    found = office.call(BOB, mode, "research", question=PARENTS, **given)
    assert not found.is_error, read_text(found)
    run = list_runs(office, BOB)[0]
    assert {"assistant": run.assistant_id, "project": run.project_id} == ids
    prompts = "\n".join(request.text for request in office.model.requests)
    assert "Speak like a foreman." in prompts
    assert "Say what is of the quay." in prompts


@pytest.mark.usefixtures("researcher")
@pytest.mark.parametrize("kind", ["assistant", "project"])
def test_anothers_assistant_or_project_is_as_one_that_is_not_there(
    office: Office, mode: Mode, kind: str
) -> None:
    make = _make_assistant if kind == "assistant" else _make_project
    name = f"Secret of Ann {mode} {kind}"
    of_ann = make(office, ANN, name)
    before = len(list_runs(office, BOB))
    for wanted in (of_ann, name, "nobody's"):
        refused = office.call(BOB, mode, "research", question=PARENTS, **{kind: wanted})
        assert read_failure(refused) == f"There is no {kind} of this id or name that you may use."
    assert len(list_runs(office, BOB)) == before


@pytest.mark.usefixtures("researcher")
def test_a_name_that_several_have_is_refused_with_their_ids(office: Office, mode: Mode) -> None:
    name = f"Twins {mode}"
    ids = {_make_project(office, BOB, name) for _ in range(2)}
    refused = read_failure(office.call(BOB, mode, "research", question=PARENTS, project=name))
    assert refused.startswith("Several projects have this name. Give the id of one: ")
    assert all(one in refused for one in ids)


@pytest.mark.usefixtures("workers", "researcher")
def test_the_default_assistant_may_be_named(office: Office, mode: Mode) -> None:
    found = office.call(BOB, mode, "research", question=PARENTS, assistant="default")
    assert not found.is_error, read_text(found)
    assert list_runs(office, BOB)[0].assistant_id is None


@pytest.mark.usefixtures("workers")
def test_what_is_withdrawn_in_mid_run_is_not_in_the_report(
    office: Office, researcher: HeldModel, mode: Mode
) -> None:
    groups = GroupService(office.container.database)
    researcher.hold("next_tasks")

    async def research(client: Client) -> str:
        call = asyncio.create_task(client.call_tool("research", {"question": BOTH}))
        assert await asyncio.to_thread(researcher.held.wait, SOON)
        groups.remove_member("finance", ANN)
        researcher.release()
        return read_text(await call)

    shown = office.use(ANN, mode, research)
    groups.add_member("finance", ANN)
    assert "26 weeks of paid leave [1]" in shown
    assert PAY not in shown
    assert "band five" not in shown


@pytest.mark.usefixtures("workers", "researcher")
def test_a_report_on_what_was_withdrawn_at_its_end_is_withheld(
    office: Office, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = GroupService(office.container.database)
    open_service = ResearchStarter._open_service

    def withdraw_at_end(starter: ResearchStarter) -> ResearchService:
        if any(run.ended_at is not None for run in began_now()):
            groups.remove_member("finance", ANN)
        return open_service(starter)

    before = {run.id for run in list_runs(office, ANN)}

    def began_now() -> list[ResearchRun]:
        return [run for run in list_runs(office, ANN) if run.id not in before]

    monkeypatch.setattr(ResearchStarter, "_open_service", withdraw_at_end)
    failed = read_failure(office.call(ANN, mode, "research", question=BAND))
    groups.add_member("finance", ANN)
    assert failed == WITHHELD


def test_a_caller_who_goes_away_leaves_the_run_going_on(
    office: Office, researcher: HeldModel, mode: Mode
) -> None:
    researcher.hold("plan")
    progress = Progress()

    async def go_away() -> None:
        async with connect(office.url, office.tokens[BOB], mode) as client:
            call = asyncio.create_task(
                client.call_tool("research", {"question": PARENTS}, progress_callback=progress.note)
            )
            assert await asyncio.to_thread(researcher.held.wait, SOON)
            async with asyncio.timeout(SOON):
                while not progress.messages:
                    await asyncio.sleep(0.02)
            call.cancel()

    with work(office.container, office.apps[0]):
        asyncio.run(go_away())
        researcher.release()
        run = wait_for_end(office, BOB)
    assert (run.state, run.has_report) == ("done", True)
    assert f"{office.url}/api/research/{run.id}" in progress.messages[0]


def test_so_many_runs_that_have_not_ended_and_no_more(
    office: Office, researcher: HeldModel, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    del researcher
    monkeypatch.setattr(service, "MOST_OPEN", 0)
    before = len(list_runs(office, BOB))
    failed = read_failure(office.call(BOB, mode, "research", question=PARENTS))
    assert failed == "0 of your research runs have not ended. Stop or delete one first."
    assert len(list_runs(office, BOB)) == before


def test_without_a_model_it_says_why(
    office: Office, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(office.container.chat), "model", None)
    before = len(list_runs(office, BOB))
    assert read_failure(office.call(BOB, mode, "research", question=PARENTS)) == NO_MODEL
    assert len(list_runs(office, BOB)) == before


@pytest.mark.usefixtures("workers", "researcher")
def test_a_run_without_a_report_says_why(office: Office, researcher: HeldModel, mode: Mode) -> None:
    researcher.hold("plan")

    async def stop() -> str:
        async with connect(office.url, office.tokens[BOB], mode) as client:
            call = asyncio.create_task(client.call_tool("research", {"question": PARENTS}))
            assert await asyncio.to_thread(researcher.held.wait, SOON)
            run = list_runs(office, BOB)[0]
            research_runs.remove(office.container.database, run.owner, run.id)
            researcher.release()
            return read_failure(await call)

    assert asyncio.run(stop()).startswith("There is no such research.")


@pytest.mark.parametrize("belongs_to", [BOB, None])
def test_who_may_not_ask_or_is_nobody_has_no_such_tool(
    office: Office, mode: Mode, belongs_to: str | None
) -> None:
    if belongs_to is None:
        service_tokens = ApiTokenService(office.container.database)
        token = service_tokens.create(
            f"service-{mode}", [TokenScope.SEARCH, TokenScope.ASK], A_WEEK
        )
    else:
        token = office.make_token(belongs_to, TokenScope.SEARCH)

    async def look(client: Client) -> tuple[list[str], str]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        refused = await find_refusal(client.call_tool("research", {"question": PARENTS}))
        return names, refused.message

    names, refused = use(office.url, token, mode, look)
    assert names == (["search", "fetch"] if belongs_to else ["search", "fetch", "ask"])
    assert refused == "There is no such tool."


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "question: Field required"),
        ({"question": " "}, "write some text"),
        ({"question": PARENTS, "minutes": 31}, "minutes"),
        ({"question": PARENTS, "minutes": 0}, "minutes"),
        ({"question": PARENTS, "web": True}, "web: Extra inputs"),
    ],
)
def test_arguments_that_do_not_fit_begin_nothing(
    office: Office, mode: Mode, arguments: dict[str, object], fault: str
) -> None:
    before = len(list_runs(office, BOB))
    assert fault in read_failure(office.call(BOB, mode, "research", **arguments))
    assert len(list_runs(office, BOB)) == before


def note(name: str, **data: object) -> NumberedEvent:
    return NumberedEvent(1, name, data)


def test_how_many_sources_were_found_is_told_now_and_then() -> None:
    now = 100.0
    steps = ResearchSteps(lambda: now)
    told = []
    for number in (1, 2, 2, 3, 4):
        told.append(steps.describe(note("source", source={"document_id": f"kb:{number}"})))
        now += SOURCES_PAUSE * 0.7
    assert told == [
        "Found 1 source so far",
        None,
        "Found 2 sources so far",
        None,
        "Found 4 sources so far",
    ]


def test_each_step_is_a_sentence_and_what_is_withheld_is_none() -> None:
    steps = ResearchSteps(lambda: 0.0)
    task = {"number": 2, "question": "How long?"}
    assert steps.describe(note("plan", tasks=[task, task])) == "Planned 2 tasks"
    assert steps.describe(note("round", tasks=[task], reason="Dates are missing.")) == (
        "Added 1 task: Dates are missing."
    )
    assert steps.describe(note("round", tasks=[], reason="All was found.")) is None
    failed = note("task_done", task=task, failure="The model failed.", sources=[])
    assert steps.describe(failed) == "Task 2 done: The model failed."
    assert steps.describe(note("state", state="waiting")) == "Waiting for a free place"
    assert steps.describe(note("withheld", detail=WITHHELD)) is None
