"""Pages whose scripts are slow to come: what needs one waits for it, visibly, and works once it is there."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.serving import serving


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(Home(tmp_path_factory.mktemp("slow"))) as server:
        yield server.url


def _hold(page: Page, script: str) -> list[Route]:
    held: list[Route] = []
    page.route(f"**/{script}", lambda route: held.append(route))  # noqa: PLW0108 (it is given attributes)
    return held


def _open(page: Page, url: str, held: list[Route]) -> None:
    """Open a page as far as it comes without its script."""
    with page.expect_request(lambda request: request.url.endswith(".js")):
        page.goto(url, wait_until="commit")
    expect(page.get_by_role("contentinfo").or_(page.locator("#keys"))).to_be_attached()
    assert held


def test_a_switch_waits_for_its_script_and_then_switches(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.page
        held = _hold(page, "web_search.js")
        _open(page, f"{address}/web-search", held)
        switch = page.get_by_role("button", name="Switch on")
        expect(switch).to_be_disabled()
        # A form that was sent without its script would show what is in it, a key too, in the address.
        expect(page.get_by_role("button", name="Add provider")).to_be_disabled()
        held.pop().continue_()
        expect(switch).to_be_enabled()
        switch.click()
        expect(page.get_by_role("button", name="Switch off")).to_be_enabled()
        page.get_by_role("button", name="Switch off").click()
        expect(page.get_by_role("button", name="Switch on")).to_be_enabled()


@pytest.mark.parametrize(
    ("path", "script"),
    [("chat", "chat.js"), ("sources", "sources.js"), ("assistants/new", "assistant_editor.js")],
)
def test_no_button_waits_when_the_scripts_have_run(
    opens: Opens, address: str, path: str, script: str
) -> None:
    with opens(address) as watched:
        page = watched.page
        held = _hold(page, script)
        _open(page, f"{address}/{path}", held)
        waiting = page.locator("[data-unwired]")
        expect(waiting.first).to_be_disabled()
        held.pop().continue_()
        expect(waiting).to_have_count(0)
