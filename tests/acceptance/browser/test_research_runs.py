"""Research in a browser that does not go straight to its end: stopped, or cut off and followed again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.research_server import SOON, HeldModel
from tests.support.scripted_model import Json, Reply, Request, Say, ScriptedModel
from tests.support.serving import Serving, serving

LIFTS = "What does the Quibberdale crane lift?"
SEAT = "Where does the Quibberdale crane stand?"
QUESTION = f"{LIFTS}; {SEAT}"
FACTS = {
    "crane.md": "# Crane\n\nThe Quibberdale crane lifts 9 tons. The Quibberdale crane stands at the quay.\n",
    "move.md": "# Move\n\nThe Quibberdale crane lifts 4 tons.\n",
}


def _ask_nothing(values: Json, request: Request) -> Reply:
    del values, request
    return Say('{"questions": []}')


@pytest.fixture(scope="module")
def model() -> HeldModel:
    model = HeldModel()
    model.model.steps["clarify"] = _ask_nothing
    return model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: HeldModel) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("research")
    (path / "wiki").mkdir()
    for name, text in FACTS.items():
        (path / "wiki" / name).write_text(text, encoding="utf-8")
    home = Home(path)
    for arguments in (("add", "folder", str(path / "wiki")), ("sync", "--json")):
        done = home.quarry(*arguments)
        assert done.code == 0, done.err
    with ScriptedModel() as running:
        running.play(model)
        settings = {
            "QUARRY_LLM_URL": running.base_url,
            "QUARRY_LLM_MODEL": "scripted",
            "QUARRY_WORKERS": "true",
        }
        with serving(home, **settings) as served:
            yield served


def _start(page: Page, question: str) -> None:
    page.get_by_label("Question").fill(question)
    page.get_by_role("button", name="Make a plan").press("Enter")
    page.get_by_role("button", name="Start").press("Enter")


def test_a_run_that_is_stopped_has_a_report_of_what_there_is(
    opens: Opens, server: Serving, model: HeldModel
) -> None:
    model.hold("next_tasks")
    with opens(server.url) as watched:
        page = watched.open("/research")
        _start(page, SEAT)
        assert model.held.wait(SOON)
        page.get_by_role("button", name="Stop").press("Enter")
        model.release()
        report = page.get_by_role("region", name="Report", exact=True)
        expect(report).to_contain_text("stands at the quay")
        expect(report).to_contain_text("The research was stopped.")
        expect(page.locator(".badge.state-stopped")).to_be_visible()
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_a_page_that_was_cut_off_follows_from_where_it_was(
    opens: Opens, server: Serving, model: HeldModel
) -> None:
    """It has each task and each source once, and then the report."""
    model.hold("next_tasks")
    with opens(server.url) as watched:
        page = watched.open("/research")
        _start(page, QUESTION)
        assert model.held.wait(SOON)
        expect(page.locator(".task.ended")).to_have_count(2)
        found = page.get_by_role("region", name="Sources found so far").get_by_role("listitem")
        before = found.all_inner_texts()
        page.reload()
        expect(page.locator(".task.ended")).to_have_count(2)
        expect(found).to_have_count(len(before))
        assert sorted(found.all_inner_texts()) == sorted(before)
        model.release()
        expect(page.get_by_role("status")).to_have_text("The report is complete.")
        report = page.get_by_role("region", name="Report", exact=True)
        assert "stands at the quay" in report.inner_text()


FILLER = "It stands there in every weather, and whoever passes by looks up to it for a while. " * 12
WRITTEN = f"""## 起重能力

The Quibberdale crane lifts 9 tons [1]. {FILLER}

## 地点

The Quibberdale crane stands at the quay [1]. {FILLER}

### 起重能力

The Quibberdale crane lifts 9 tons [1]. {FILLER}
"""
HEADINGS = ["起重能力", "地点", "起重能力"]


def _write_report(values: Json, request: Request) -> Reply:
    del values, request
    return Say(WRITTEN)


def test_the_outline_leads_to_the_headings_of_the_report_by_keyboard(
    opens: Opens, server: Serving, model: HeldModel
) -> None:
    """Two headings are alike: each line leads to its own, and the next Tab goes on behind it."""
    model.model.steps["final_report"] = _write_report
    with opens(server.url, viewport={"width": 1000, "height": 500}) as watched:
        page = watched.open("/research")
        _start(page, SEAT)
        lines = page.get_by_role("navigation", name="Outline").get_by_role("link")
        expect(lines).to_have_text(HEADINGS)
        del model.model.steps["final_report"]
        report = page.get_by_role("region", name="Report", exact=True)
        for place, heading in enumerate(HEADINGS):
            lines.nth(place).press("Enter")
            expect(page.locator(":target")).to_have_text(heading)
            expect(page.locator(":target")).to_be_in_viewport()
            found = report.get_by_role("heading", name=heading, exact=True)
            assert page.locator(":target").get_attribute("id") == found.nth(
                HEADINGS[:place].count(heading)
            ).get_attribute("id")
            page.keyboard.press("Tab")
            assert page.evaluate(IS_NEXT_CITATION)
        assert page.evaluate(IS_SAME_STATE), "The page would show it anew, and lose the heading."


IS_SAME_STATE = """async () => {
  const state = `${location.pathname}/state`;
  const read = async () => (await fetch(state, { headers: { Accept: "text/html" } })).text();
  return (await read()) === (await read());
}"""
IS_NEXT_CITATION = """() => {
  const cited = [...document.querySelectorAll("a.cite")];
  const behind = (one) => document.querySelector(":target").compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING;
  return document.activeElement === cited.find(behind);
}"""
