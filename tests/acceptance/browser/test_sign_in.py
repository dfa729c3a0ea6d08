"""A browser is let in by the link, and only by it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, expect

from tests.support.home import Home
from tests.support.serving import Serving, link_to, serving

LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}},
}


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Serving]:
    with serving(home) as running:
        yield running


@pytest.mark.parametrize("look", LOOKS)
def test_a_browser_without_a_session_is_told_how_to_get_in(
    browser: Browser, server: Serving, pictures: Path, look: str
) -> None:
    with browser.new_context(**LOOKS[look]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        answer = page.goto(f"{server.url}/sources")
        assert answer
        assert answer.status == 401
        expect(page.get_by_role("heading", level=1)).to_have_text("This browser is not signed in")
        expect(page.get_by_role("main")).to_contain_text("quarry link")
        assert Axe().run(page).response["violations"] == []
        page.screenshot(path=pictures / f"not-signed-in-{look}.png")


def test_the_link_lets_it_in_and_the_pages_can_change_something(
    browser: Browser, server: Serving
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(server.link)
        assert page.url == f"{server.url}/"
        assert "code=" not in page.evaluate("JSON.stringify(performance.getEntries())")
        assert page.evaluate("document.cookie") == ""
        page.goto(f"{server.url}/source/handbook")
        page.get_by_role("button", name="Set schedule").click()
        expect(page.get_by_role("button", name="Saved")).to_be_visible()


def test_when_the_session_ends_the_page_says_so(browser: Browser, server: Serving) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(link_to(server.url))
        context.clear_cookies()
        page.locator("#q").fill("parental leave")
        expect(page.get_by_role("heading", name=re.compile("not signed in"))).to_be_visible()
