"""Chat and Agent mode as they are asked on the page, by the scenarios of the table that are asked there."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.local_web import LocalWeb, local_web
from tests.support.mode_scenarios.model import ModelOfScenario
from tests.support.mode_scenarios.scenario import Outcome, Scenario, Surface
from tests.support.mode_scenarios.table import check_outcome, list_scenarios, name_scenario
from tests.support.mode_scenarios.world import WordSearxng, fill_in_pages, write_documents
from tests.support.scripted_model import ScriptedModel
from tests.support.services.serving import RunningService, serve
from tests.support.serving import Serving, serving
from tests.support.web_search import list_queries, switch_on_in_home

COMPLETE = re.compile(r"The answer is complete\.")
GENERAL = "From general knowledge, not from a source. Check it before you rely on it."
SWITCHES = {"knowledge": "Company knowledge", "web": "Web", "rewrite": "Rewriting"}
USUAL = {"knowledge": True, "web": False, "rewrite": True}


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def web() -> Iterator[LocalWeb]:
    with local_web() as running:
        yield running


@pytest.fixture(scope="module")
def engine(web: LocalWeb) -> Iterator[RunningService]:
    with serve(WordSearxng(fill_in_pages(web))) as running:
        yield running


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel, engine: RunningService
) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("scenarios")
    write_documents(path / "wiki")
    home = Home(path)
    for arguments in (("add", "folder", str(path / "wiki")), ("sync", "--json")):
        done = home.quarry(*arguments)
        assert done.code == 0, done.err
    switch_on_in_home(home, engine)
    with serving(home, QUARRY_LLM_URL=model.base_url, QUARRY_LLM_MODEL="scripted") as running:
        yield running


@pytest.mark.parametrize("scenario", list_scenarios(Surface.PAGE), ids=name_scenario)
def test_on_the_page(
    opens: Opens, server: Serving, model: ScriptedModel, engine: RunningService, scenario: Scenario
) -> None:
    for log in (model.requests, model.planned, engine.log):
        log.clear()
    model.plan = scenario.plan
    model.play(ModelOfScenario(scenario.steps))
    with opens(server.url) as watched:
        page = watched.open("/chat")
        _choose_mode(page, scenario)
        box = page.get_by_label("Your question", exact=True)
        box.fill(scenario.message)
        box.press("Enter")
        expect(page.get_by_role("status")).to_have_text(COMPLETE)
        outcome = _read_page(page.locator(".message.answering").last)
    check_outcome(scenario, outcome)
    assert sorted(list_queries(engine)) == sorted(scenario.sent)
    for said in scenario.says:
        assert said in outcome.text
    sent = "\n".join(one.text for one in [*model.requests, *model.planned])
    for text in scenario.told:
        assert text in sent
    for text in scenario.not_told:
        assert text not in sent


def _choose_mode(page: Page, scenario: Scenario) -> None:
    if scenario.mode == "agent":
        page.get_by_role("group", name="Mode").get_by_role("button", name="Agent").click()
    for name, is_on in scenario.switches.items():
        switch = page.get_by_role("switch", name=SWITCHES[name])
        if is_on != USUAL[name]:
            switch.click()
        expect(switch).to_have_attribute("aria-checked", str(is_on).lower())


def _read_page(answer: Locator) -> Outcome:
    listed = answer.locator(".references li a")
    return Outcome(
        text=answer.locator(".answer").inner_text(),
        kinds=tuple(_read_kind(one.get_attribute("href") or "") for one in listed.all()),
        is_general=answer.get_by_text(GENERAL).is_visible(),
        steps=answer.locator(".steps").text_content() or "",
    )


def _read_kind(address: str) -> str:
    """Documents are shown by a page of Quarry's own, whose addresses are without a host."""
    return "url" if urlsplit(address).netloc else "document"
