"""Whole runs over HTTP that search the web beside the documents, and what becomes of them where something fails."""

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import count, product
from operator import add
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.roles import Role
from backend.api.app import Api
from backend.research.orchestration import BUDGET_ENDED
from backend.research.record.budget import ResearchBudget, Spent
from backend.research.record.record_json import read_record
from backend.research.record.research_record import ResearchRecord
from backend.research.report.final_report import NOT_WRITTEN
from backend.research.run_problem import NOT_BEGUN
from backend.store.accounts import people
from backend.store.owner import ConversationOwner
from backend.store.research import research_runs
from tests.support.accounts import add_person
from tests.support.knowledge import forget_findings
from tests.support.research_open_web import ResearchWeb, research_web
from tests.support.research_server import client_of, follow, open_run, serve, start, work
from tests.support.research_world import (
    QUESTION,
    ResearchModel,
    allowed_actions,
    list_markers,
    name_prompt,
)
from tests.support.scripted_model import HangUp, Json, Raw, Refuse, Reply, Request, Say, Silent
from tests.support.services import serving
from tests.support.soak import scaled
from tests.unit.backend.api.conftest import SOURCE

ANN = "ann@example.com"
STEPS = ("plan", "agent", "judge", "task_report", "final_report")
FAULTS: dict[str, Reply] = {
    "an error of the server": Refuse(500, "out of memory"),
    "a closed connection": HangUp(),
    "garbage": Raw(b"\x00\xff{{{", "application/json"),
    "no JSON": Say("I would rather not say. [99] {"),
    "JSON of something else": Say('{"surprise": [1, {"action": null}]}'),
}
ALL_FAULTS = tuple(product(STEPS, FAULTS))
FEW_FAULTS = tuple(zip(STEPS, ("garbage", "no JSON", "garbage", "JSON of something else", "no JSON"), strict=True))  # fmt: skip
PRICE, MAKER = f"{SOURCE}:price.md", f"{SOURCE}:maker.md"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResearchWeb]:
    with research_web(tmp_path_factory.mktemp("research-web")) as running:
        add_person(running.container.database, ANN, Role.ADMIN)
        yield running


@pytest.fixture(scope="module")
def app(world: ResearchWeb) -> Iterator[Api]:
    with serve(world.container) as app, work(world.container, app):
        yield app


@pytest.fixture(scope="module")
def ann(app: Api, world: ResearchWeb) -> TestClient:
    return client_of(app, world.container, people.get_by_email(world.container.database, ANN))


@pytest.fixture(autouse=True)
def model(world: ResearchWeb) -> ResearchModel:
    world.restore()
    made = ResearchModel()
    world.model.play(made)
    return made


@pytest.fixture(autouse=True)
def _forget(world: ResearchWeb) -> Iterator[None]:
    """What the runs of one test found out is not known to those of the next one."""
    yield
    forget_findings(world.container.database)


def _check_events(streamed: list[Any]) -> None:
    """Each task tells the sources that its report cites, by numbers that were told before."""
    found = {
        (one.data["task"], each["number"])
        for one in streamed
        if one.name == "source"
        for each in [one.data["source"]]
    }
    reports = {one.data["task"]["number"]: one.data for one in streamed if one.name == "task_done"}
    cited = {one.data["task"]: one.data["sources"] for one in streamed if one.name == "cited_sources"}  # fmt: skip
    written = {number for number, one in reports.items() if one["text"]}
    assert written
    assert cited.keys() == written
    for number, sources in cited.items():
        numbers = [one["number"] for one in sources]
        assert numbers == sorted({*list_markers(reports[number]["text"])})
        assert {(number, one) for one in numbers} <= found


def _check_report(report: Json) -> None:
    """Sources are numbered from 1 in the order of their first citation, and counts add up."""
    body = report["markdown"].partition("## Sources")[0]
    first = list(dict.fromkeys(list_markers(body)))
    assert first == [one["number"] for one in report["sources"]] == list(range(1, len(first) + 1))
    counts = report["counts"]
    verdicts = ("supported", "weak", "unsupported", "contradicted", "unchecked")
    assert sum(counts[one] for one in verdicts) == counts["citations"] == len(report["citations"])


def test_documents_and_the_web_are_researched_and_their_contradictions_told(
    ann: TestClient,
) -> None:
    run_id = start(ann, QUESTION, web=True)
    streamed = follow(ann, run_id)
    assert [one.name for one in streamed[-2:]] == ["report", "done"]
    _check_events(streamed)
    report = streamed[-2].data
    _check_report(report)
    assert {one["kind"] for one in report["sources"]} == {"document", "url"}
    by_id = {one["document_id"]: one for one in report["sources"]}
    by_number = {one["number"]: one for one in report["sources"]}
    assert {PRICE, MAKER} <= by_id.keys()
    (contradiction,) = report["contradictions"]
    said = {one["says"]: by_number[one["number"]] for one in contradiction["statements"]}
    assert said["The Aster pump costs 40 EUR."] == by_id[PRICE]
    assert said["The Aster pump costs 45 EUR."]["title"] == "News of the Aster pump"
    told = report["markdown"].partition("## Where sources disagree")[2].partition("##")[0]
    assert re.search(r"News of the Aster pump \(2026-02-03\): .*45 EUR", told)
    assert report["counts"]["supported"] == report["counts"]["citations"]
    assert open_run(ann, run_id)["report"] == report


def test_the_web_alone_is_researched(ann: TestClient) -> None:
    run_id = start(ann, "What does the Aster pump cost?", web=True, knowledge=False)
    streamed = follow(ann, run_id)
    _check_events(streamed)
    report = streamed[-2].data
    _check_report(report)
    assert [one["title"] for one in report["sources"]] == ["News of the Aster pump"]
    assert "The Aster pump costs 45 EUR [1]" in report["markdown"]
    assert PRICE not in str(streamed)


def _always(reply: Reply) -> Any:
    def answer(values: Json, request: Request) -> Reply:
        del values, request
        return reply

    return answer


@pytest.mark.soak("slow")
@pytest.mark.deep("faults")
@pytest.mark.parametrize(("step", "fault"), scaled(FEW_FAULTS, ALL_FAULTS, "faults"))
def test_a_step_whose_model_fails_leaves_a_report(
    ann: TestClient, model: ResearchModel, step: str, fault: str
) -> None:
    model.steps[step] = _always(FAULTS[fault])
    streamed = follow(ann, start(ann, QUESTION, web=True))
    assert [one.name for one in streamed[-2:]] == ["report", "done"]
    report = streamed[-2].data
    _check_report(report)
    assert "The Aster pump costs 40 EUR" in report["markdown"]


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    "served",
    [
        serving.reply_text("no", status=500),
        serving.reply_text("no", status=403),
        serving.reply_text("", media_type="text/html"),
        serving.reply_text(
            "<html><title>Just a moment</title><p>Please complete the captcha to go on.</p></html>",
            media_type="text/html",
        ),
    ],
    ids=["500", "403", "empty", "captcha"],
)
def test_a_page_that_is_not_to_be_had_is_named_and_never_cited(
    ann: TestClient, world: ResearchWeb, served: serving.Reply
) -> None:
    world.put("/aster", lambda _: served)
    streamed = follow(ann, start(ann, QUESTION, web=True))
    visits = [
        one.data for one in streamed if one.name == "action_done" and one.data["action"] == "visit"
    ]
    assert any(one["brought"] == 0 and one["notes"] for one in visits)
    report = streamed[-2].data
    _check_report(report)
    assert "The Aster pump costs 40 EUR [" in report["markdown"]
    assert "45 EUR" not in report["markdown"]


def test_an_engine_that_fails_costs_the_web_alone(ann: TestClient, world: ResearchWeb) -> None:
    world.engine.instead = serving.reply_text("broken", status=500)
    streamed = follow(ann, start(ann, QUESTION, web=True))
    report = streamed[-2].data
    _check_report(report)
    assert {one["kind"] for one in report["sources"]} == {"document"}
    notes = str([one.data for one in streamed if one.name == "action_done"])
    assert "The web search does not answer now." in notes


class Restless:
    """An agent that never answers: it reads each page that it is offered, and searches in ever other words."""

    def __init__(self, pause: float = 0.0) -> None:
        self._numbers = count(1)
        self._pause = pause

    def __call__(self, values: Json, request: Request) -> Reply:
        time.sleep(self._pause)
        offered = [one["page"] for one in values.get("to_read", ())]
        if offered and "visit" in allowed_actions(request):
            return Say(json.dumps({"action": "visit", "pages": offered}))
        if "search" in allowed_actions(request):
            query = f"Aster pump {next(self._numbers)}"
            return Say(json.dumps({"action": "search", "queries": [query]}))
        return Say(json.dumps({"action": "reflect", "questions": [f"Why {next(self._numbers)}?"]}))


def _limit(monkeypatch: pytest.MonkeyPatch, **limits: float) -> ResearchBudget:
    """Give every run that is begun so much, instead of what a request may ask for."""
    budget = ResearchBudget(**limits)  # type: ignore[arg-type]
    monkeypatch.setattr("backend.api.research_desk.ResearchBudget", lambda **_: budget)
    return budget


def _read(world: ResearchWeb, run_id: str) -> ResearchRecord:
    person = people.get_by_email(world.container.database, ANN)
    assert person is not None
    owner = ConversationOwner(person.id)
    return read_record(research_runs.get(world.container.database, owner, run_id).record)


CALL = 1_000
"""Tokens that each call of a model is said to have taken."""


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    ("limits", "pause", "says"),
    [
        ({"tokens": 30_000}, 0.0, "The tokens of this task were used up."),
        ({"seconds": 4.0}, 0.5, "The time of this task was used up."),
        ({"cycles": 2}, 0.0, BUDGET_ENDED),
        ({"cycles": 7}, 0.0, "The steps of this task were used up."),
        ({"pages": 2, "cycles": 12}, 0.0, "The steps of this task were used up."),
    ],
    ids=["tokens", "time", "one step each", "steps", "pages"],
)
def test_when_a_budget_ends_the_model_writes_the_report_out_of_what_is_held_back(
    ann: TestClient,
    world: ResearchWeb,
    model: ResearchModel,
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, float],
    pause: float,
    says: str,
) -> None:
    """Agents that would go on for ever end at nine tenths of tokens and time, at the steps, or read no more pages.

    A call is begun while its prompt fits, so that each of the two agents may be a call over.
    """
    usage = {"prompt_tokens": CALL - 100, "completion_tokens": 100, "total_tokens": CALL}
    monkeypatch.setattr("tests.support.scripted_model._usage", lambda _: usage)
    budget = _limit(monkeypatch, **limits)
    model.steps["agent"] = Restless(pause)
    run_id = start(ann, QUESTION, web=True)
    streamed = follow(ann, run_id)
    assert [one.name for one in streamed[-2:]] == ["report", "done"]
    report = streamed[-2].data
    _check_report(report)
    assert "The Aster pump costs 40 EUR [" in report["markdown"]
    assert says in report["markdown"]
    asked = [name for name, _ in model.asked]
    assert "agent" not in asked[asked.index("final_report") :]
    assert NOT_WRITTEN not in report["markdown"]
    record = _read(world, run_id)
    agents = reduce(add, (one.spent for one in record.reports), Spent())
    assert agents.tokens <= 0.9 * budget.tokens + 2 * CALL
    assert agents.cycles <= budget.cycles
    assert len(world.web.asked) <= agents.pages <= budget.pages


class Metered:
    """A model that says of each call that it took so many tokens, by the prompt."""

    def __init__(self, model: ResearchModel, costs: Mapping[str, int]) -> None:
        self._model = model
        self._costs = costs
        self._call = threading.local()

    def __call__(self, request: Request) -> Reply:
        self._call.cost = self._costs.get(name_prompt(request), CALL)
        return self._model(request)

    def describe_usage(self, reply: Reply) -> Json:
        del reply
        cost = self._call.cost
        return {"prompt_tokens": cost, "completion_tokens": 0, "total_tokens": cost}


def test_a_tenth_of_the_tokens_is_left_for_the_report_when_the_search_has_taken_all_others(
    ann: TestClient, world: ResearchWeb, model: ResearchModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 40,000 tokens the search may take 36,000: the plan takes 1,000, each of two agents 7,000 and 1,000 for what it reports, and the
    choice of what to look at next the last 19,000. That third task is not begun. Contradictions and report take 1,000 each."""
    metered = Metered(model, {"agent": 7_000, "next_tasks": 19_000})
    monkeypatch.setattr("tests.support.scripted_model._usage", metered.describe_usage)
    world.model.play(metered)
    model.steps["agent"] = Restless()
    _limit(monkeypatch, tokens=40_000)
    run_id = start(ann, QUESTION, web=True)
    report = follow(ann, run_id)[-2].data
    _check_report(report)
    record = _read(world, run_id)
    assert [one.spent.tokens for one in record.reports] == [8_000, 8_000]
    assert [name for name, _ in model.asked].count("final_report") == 1
    assert record.spent.tokens == 1_000 + 2 * 8_000 + 19_000 + 2_000
    assert "The Aster pump costs 40 EUR [" in report["markdown"]
    assert BUDGET_ENDED in report["markdown"]
    assert NOT_WRITTEN not in report["markdown"]
    assert report["not_found"] == [f"Where has Blau AG its seat? {NOT_BEGUN}"]


@pytest.mark.deep("faults")
@pytest.mark.parametrize("step", scaled(("agent",), STEPS, "faults"))
def test_a_model_that_never_answers_a_step_leaves_a_report(
    ann: TestClient,
    world: ResearchWeb,
    model: ResearchModel,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    """Of six seconds, 5.4 are for the search; a step of them may wait so long, and the report has twenty seconds at least."""
    _limit(monkeypatch, seconds=6.0)
    model.steps[step] = _always(Silent())
    run_id = start(ann, QUESTION, web=True)
    last = follow(ann, run_id)[-1]
    opened = open_run(ann, run_id)
    assert last.name in {"done", "failed"}
    assert (opened["report"] is not None) != bool(opened["run"]["problem"])
    if opened["report"] is None:
        assert opened["run"]["problem"].endswith(".")
    else:
        _check_report(opened["report"])
        assert "The Aster pump costs 40 EUR" in opened["report"]["markdown"]
    assert _read(world, run_id).spent.seconds <= 5.4 + 20 + 5
