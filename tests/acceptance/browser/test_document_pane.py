"""The document beside the answer: at the passage, by pointer and by keyboard, where the window is wide."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import DESK, PHONE, Opens
from tests.support.chinese import find_english
from tests.support.home import Home
from tests.support.scripted_model import Call, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.serving import Serving, serving

QUESTION = "What should a customer do when the scanner shows QX-4031?"
ANSWER = "QX-4031 means that the **interlock of the laser** is open [{n}]. Close the cover until it clicks [{n}]."
WIDE = {"width": 1600, "height": 900}
_IS_WITHIN = """mark => {
  const box = document.getElementById("document").getBoundingClientRect();
  const at = mark.getBoundingClientRect();
  return at.top >= box.top && at.bottom <= box.bottom && at.top < box.top + box.height / 2;
}"""


def _answering(request: Request) -> Reply:
    if request.has_sources:
        numbers = [r["number"] for r in request.sources if "scanners" in r["title"].lower()]
        return Say(ANSWER.format(n=numbers[0]))
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["QX-4031 interlock"]}))
    return Say("QX-4031 laser interlock open")


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Serving]:
    with ScriptedModel(_answering) as model:
        settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        with serving(home, **settings) as running:
            yield running


def _ask(page: Page) -> Locator:
    """Ask, and return the first citation of the answer."""
    box = page.locator("#q")
    box.fill(QUESTION)
    box.press("Enter")
    expect(page.locator(".answer strong")).to_have_text("interlock of the laser")
    expect(page.locator("[data-part=copy]")).to_be_visible()
    return page.locator(".answer .cite").first


def _check(page: Page, picture: Path) -> None:
    page.screenshot(path=picture)
    violations = Axe().run(page).response["violations"]
    assert [(one["id"], node["html"]) for one in violations for node in one["nodes"]] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_a_citation_opens_beside_its_answer_by_keyboard(
    opens: Opens, server: Serving, pictures: Path, look: str
) -> None:
    with opens(server.url, color_scheme=look) as watched:
        page = watched.open("/chat")
        chip = _ask(page)
        conversation = page.url
        chip.press("Enter")
        pane, passage = page.get_by_role("region", name="Document"), page.locator("#pane-cited")
        expect(passage).to_be_focused()
        expect(passage).to_contain_text("interlock")
        assert passage.evaluate(_IS_WITHIN)
        expect(page.locator("#card")).to_be_hidden()
        expect(chip).to_be_in_viewport()
        assert page.url == conversation
        _check(page, pictures / f"document-pane-{look}.png")
        page.keyboard.press("Escape")
        expect(pane).to_be_hidden()
        expect(chip).to_be_focused()

        page.locator(".message .references a").first.click()
        expect(pane).to_be_visible()
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
        expect(page.get_by_role("navigation", name="Conversations")).to_be_visible()
        _check(page, pictures / f"document-pane-wide-{look}.png")
        page.set_viewport_size(DESK)
        pane.get_by_role("button", name="Close the document").press("Enter")
        expect(pane).to_be_hidden()
        expect(page.locator(".message .references a").first).to_be_focused()

        # In the box, Escape is the box's; another conversation closes the document.
        chip.click()
        expect(passage).to_be_focused()
        page.locator("#q").press("Escape")
        expect(pane).to_be_visible()
        page.get_by_role("link", name="Open on its own page").press("Enter")
        expect(page).to_have_url(re.compile(r"/document/.*#cited"))
        expect(page.locator("#cited")).to_be_focused()
        page.go_back()
        page.locator(".answer .cite").first.click()
        expect(pane).to_be_visible()
        page.keyboard.press("Alt+n")
        expect(pane).to_be_hidden()


def test_what_cannot_be_shown_beside_is_said_by_its_page(opens: Opens, server: Serving) -> None:
    with opens(server.url) as watched:
        page = watched.open("/chat")
        chip = _ask(page)
        chip.evaluate("link => link.setAttribute('href', '/document/handbook:nothing')")
        chip.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("does not exist, or you may")
        watched.wrong[:] = [line for line in watched.wrong if "of 404" not in line]


def test_where_the_window_is_narrow_the_page_of_the_document_opens(
    opens: Opens, server: Serving, pictures: Path
) -> None:
    with opens(server.url) as watched:
        page = watched.open("/chat")
        chip = _ask(page)
        chip.click()
        pane = page.get_by_role("region", name="Document")
        expect(pane).to_be_visible()
        page.set_viewport_size(PHONE)
        expect(pane).to_be_hidden()
        _check(page, pictures / "document-pane-phone.png")
        chip.click()
        expect(page).to_have_url(re.compile(r"/document/.*#cited"))
        expect(page.locator("#cited")).to_be_focused()
        page.set_viewport_size({"width": 1099, "height": 800})
        page.go_back()
        page.locator(".answer .cite").first.click()
        expect(page).to_have_url(re.compile(r"/document/.*#cited"))


def test_the_pane_speaks_chinese(opens: Opens, server: Serving) -> None:
    with opens(server.url, locale="zh-CN") as watched:
        page = watched.open("/chat")
        _ask(page).click()
        expect(page.get_by_role("region", name="文档")).to_be_visible()
        expect(page.get_by_role("button", name="关闭文档")).to_be_visible()
        assert find_english(page) == []
