"""Research in a browser: from the chat to a plan, its tasks as they are worked on, and a report with its sources; in Chinese, on a phone, without scripts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Opens, check_looks
from tests.support.chinese import find_english
from tests.support.home import Home
from tests.support.research_server import HeldModel
from tests.support.scripted_model import Json, Reply, Request, Say, ScriptedModel
from tests.support.serving import Serving, serving

LEAVE = "How many weeks of paid leave do parents have?"
NOTICE = "How many weeks of notice do parents give?"
QUESTION = f"{LEAVE}; {NOTICE}"
FACTS = "# Parental leave\n\nParents have 26 weeks of paid leave. Parents give 8 weeks of notice.\n"


def _ask_back(values: Json, request: Request) -> Reply:
    del values, request
    return Say('{"questions": ["Which country do you mean?"]}')


@pytest.fixture(scope="module")
def model() -> HeldModel:
    model = HeldModel()
    model.model.steps["clarify"] = _ask_back
    return model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: HeldModel) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("research")
    (path / "wiki").mkdir()
    (path / "wiki" / "leave.md").write_text(FACTS, encoding="utf-8")
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


def test_from_the_chat_to_a_report(
    opens: Opens, server: Serving, model: HeldModel, pictures: Path
) -> None:
    with opens(server.url) as watched:
        page = watched.open("/chat")
        page.get_by_role("group", name="Mode").get_by_role("button", name="Research").press("Enter")
        box = page.get_by_label("Your question", exact=True)
        box.fill(QUESTION)
        box.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(QUESTION)
        expect(page.get_by_text("Which country do you mean?")).to_be_visible()
        check_looks(page, pictures, "research-clarifying")
        page.get_by_label("Your answer").fill("Austria")
        page.get_by_role("button", name="Answer").press("Enter")
        _plan(page, pictures)
        _watch(page, model, pictures)
        _read(page, pictures)
        _delete(page)


def _plan(page: Page, pictures: Path) -> None:
    expect(page.get_by_role("textbox", name="Task 1", exact=True)).to_have_value(LEAVE)
    page.get_by_role("button", name="Add a task").press("Enter")
    added = page.get_by_role("textbox", name="Task 4", exact=True)
    expect(added).to_be_focused()
    added.fill("Left out?")
    page.get_by_role("checkbox", name="Work on task 4").press("Space")
    check_looks(page, pictures, "research-plan")


def _watch(page: Page, model: HeldModel, pictures: Path) -> None:
    model.hold("final_report")
    page.get_by_role("button", name="Start").press("Enter")
    found = page.get_by_role("region", name="Sources found so far")
    expect(found.get_by_role("listitem")).to_have_count(1)
    expect(page.locator(".task.ended")).to_have_count(2)
    check_looks(page, pictures, "research-running")
    model.release()


def _read(page: Page, pictures: Path) -> None:
    report = page.get_by_role("region", name="Report", exact=True)
    chip = report.locator("a.cite").first
    expect(chip).to_have_attribute("data-verdict", "supported")
    expect(page.get_by_role("status")).to_have_text("The report is complete.")
    expect(report).to_contain_text("26 weeks of paid leave")
    chip.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    card = page.locator("#card")
    expect(card).to_contain_text("Parents have 26 weeks of paid leave.")
    expect(card).to_contain_text("Supported by this source.")
    page.keyboard.press("Escape")
    check_looks(page, pictures, "research-report")
    for label, name in (("Export as Markdown", "research.md"), ("Word document", "research.docx")):
        with page.expect_download() as download:
            page.get_by_role("link", name=label).click()
        assert download.value.suggested_filename == name


def _delete(page: Page) -> None:
    page.get_by_role("button", name="Delete this research").press("Enter")
    dialog = page.get_by_role("dialog", name="Delete this research?")
    expect(dialog).to_contain_text(QUESTION)
    dialog.get_by_role("button", name="Delete").press("Enter")
    expect(page.get_by_text("Nothing yet.")).to_be_visible()


def test_in_chinese_on_a_phone_and_without_scripts(
    opens: Opens, server: Serving, pictures: Path
) -> None:
    with opens(server.url, java_script_enabled=False) as watched:
        page = watched.open("/research")
        page.get_by_label("Question").fill(QUESTION)
        page.get_by_role("button", name="Make a plan").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(QUESTION)
        _reload_until(page, "clarifying")
        page.get_by_role("button", name="Skip").click()
        _reload_until(page, "planned")
        page.get_by_role("button", name="Start").click()
        _reload_until(page, "done")
        expect(page.get_by_role("region", name="Report", exact=True)).to_contain_text("26 weeks")
        address = page.url.removeprefix(server.url)
    with opens(server.url, locale="zh-CN") as watched:
        page = watched.open(address)
        expect(page.get_by_role("heading", name="来源", exact=True)).to_be_visible()
        check_looks(page, pictures, "research-zh")
        page = watched.open("/research")
        check_looks(page, pictures, "research-list-zh")
        assert [one for one in find_english(page) if one not in QUESTION] == []


def _reload_until(page: Page, state: str) -> None:
    for _ in range(100):
        if page.locator(f'[data-run-state="{state}"]').count():
            return
        page.wait_for_timeout(200)
        page.reload()
    raise AssertionError(page.locator("#state").inner_text())
