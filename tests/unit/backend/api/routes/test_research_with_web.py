"""Whole runs over HTTP that search the web beside the documents, and what becomes of them where something fails."""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.roles import Role
from backend.api.app import Api
from backend.store import people
from tests.support.accounts import add_person
from tests.support.knowledge import forget_findings
from tests.support.research_open_web import ResearchWeb, research_web
from tests.support.research_server import client_of, follow, open_run, serve, start, work
from tests.support.research_world import QUESTION, ResearchModel, list_markers
from tests.support.scripted_model import HangUp, Json, Raw, Refuse, Reply, Request, Say
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
