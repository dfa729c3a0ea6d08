"""Web search in a browser: switched on, providers added, tested, ordered, changed and removed, by keyboard and on a phone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, ViewportSize, expect

from tests.contract.provider_worlds.api_worlds import SearxngWorld, TavilyWorld
from tests.contract.provider_worlds.world import SECRET
from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.services.serving import RunningService, serve
from tests.support.serving import serving

PHONE: dict[str, ViewportSize] = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(Home(tmp_path_factory.mktemp("web"))) as server:
        yield server.url


@pytest.fixture(scope="module")
def tavily() -> TavilyWorld:
    return TavilyWorld()


@pytest.fixture(scope="module")
def engines(tavily: TavilyWorld) -> Iterator[tuple[RunningService, RunningService]]:
    with serve(tavily) as one, serve(SearxngWorld()) as two:
        yield one, two


def _faults(page: Page) -> list[str]:
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


def _fits(page: Page) -> bool:
    width, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    return bool(width <= inner)


def _names(page: Page) -> list[str]:
    return page.locator(".web-providers h3").all_inner_texts()


def test_an_admin_sets_the_web_up(
    opens: Opens,
    address: str,
    tavily: TavilyWorld,
    engines: tuple[RunningService, RunningService],
    pictures: Path,
) -> None:
    one, two = engines
    with opens(address) as watched:
        page = watched.open("/models")
        page.get_by_role("link", name="Web search").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Web search")
        page.wait_for_load_state()
        page.get_by_role("button", name="Switch on").press("Enter")
        expect(page.get_by_role("status")).to_have_text("The web is switched on.")
        expect(page.get_by_role("button", name="Switch off")).to_be_focused()
        expect(page.get_by_text("No search provider is enabled")).to_be_visible()

        page.get_by_role("button", name="Add provider").click()
        expect(page.get_by_label("API key")).to_be_focused()
        expect(page.get_by_text("Required.")).to_be_visible()
        page.get_by_label("API key").fill(SECRET)
        page.get_by_text("More settings").click()
        page.get_by_label("API URL").fill(one.url)
        page.get_by_label("Private hosts").fill("127.0.0.1")
        page.get_by_role("button", name="Add provider").press("Enter")
        outcome = page.locator('[data-provider="tavily"] .outcome')
        expect(outcome.get_by_text("Parental leave")).to_be_visible()
        expect(outcome.get_by_text("“weather” was sent to 127.0.0.1.")).to_be_visible()
        assert SECRET not in page.content()
        page.screenshot(path=pictures / "web-search.png", full_page=True)
        assert _faults(page) == []

        page.get_by_role("link", name="SearXNG").press("Enter")
        page.get_by_label("URL").fill(two.url)
        page.get_by_role("textbox", name="Name").fill("desk")
        page.get_by_role("button", name="Add provider").press("Enter")
        expect(page.get_by_text("is not encrypted")).to_be_visible()
        page.get_by_text("More settings").click()
        page.get_by_label("Private hosts").fill("127.0.0.1")
        page.get_by_role("button", name="Add provider").press("Enter")
        expect(page.locator('[data-provider="desk"] .outcome li')).to_have_count(3)
        assert _names(page) == ["tavily", "desk"]
        page.get_by_role("button", name="Ask desk earlier").press("Enter")
        expect(page.locator(".web-providers h3").first).to_have_text("desk")
        page.get_by_role("button", name="Do not ask desk").press("Enter")
        expect(page.get_by_role("button", name="Ask desk again")).to_be_focused()

        tavily.instead = tavily.rejected_key()
        page.get_by_role("button", name="Test tavily").press("Enter")
        expect(page.get_by_text("The key is rejected.").first).to_be_visible()
        expect(page.get_by_text("enter a valid one")).to_be_visible()
        tavily.instead = None

        page.get_by_label("Blocked domains").fill("https://www.bad.example/x\nads.example")
        page.get_by_role("button", name="Save").press("Enter")
        expect(page.get_by_label("Blocked domains")).to_have_value("ads.example\nbad.example")
        page.get_by_label("Allowed domains").fill("a b")
        page.get_by_role("button", name="Save").press("Enter")
        expect(page.get_by_text("is not a domain")).to_be_visible()
        watched.wrong[:] = [line for line in watched.wrong if "of 422" not in line]


def test_a_provider_is_changed_and_removed(opens: Opens, address: str, pictures: Path) -> None:
    with opens(address) as watched:
        page = watched.open("/web-search")
        page.get_by_role("link", name="desk").press("Enter")
        page.get_by_label("Searches a minute").fill("7")
        page.get_by_role("button", name="Save").press("Enter")
        expect(page.get_by_role("status")).to_have_text("Saved.")
        page.screenshot(path=pictures / "web-provider.png", full_page=True)
        assert _faults(page) == []
        page = watched.open("/web-search")
        expect(page.get_by_text("at most 7 a minute")).to_be_visible()
        page.get_by_role("link", name="desk").click()
        page.get_by_role("button", name="Remove desk").press("Enter")
        page.get_by_role("button", name="Remove", exact=True).press("Enter")
        expect(page).to_have_url(re.compile("/web-search$"))
        assert _names(page) == ["tavily"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone(opens: Opens, address: str, pictures: Path, scheme: str) -> None:
    with opens(address, **PHONE, color_scheme=scheme) as watched:
        page = watched.open("/web-search?add=ddgs")
        expect(page.get_by_text("forbid automated queries")).to_be_visible()
        expect(page.get_by_role("link", name="DuckDuckGo")).to_be_visible()
        page.screenshot(path=pictures / f"web-search-phone-{scheme}.png", full_page=True)
        assert _fits(page)
        assert _faults(page) == []


def test_the_page_is_in_chinese(opens: Opens, address: str, pictures: Path) -> None:
    with opens(address, locale="zh-CN", color_scheme="dark") as watched:
        page = watched.open("/web-search?add=ddgs")
        expect(page.get_by_role("heading", level=1)).to_have_text("网络搜索")
        page.get_by_role("button", name="测试 tavily").press("Enter")
        expect(page.get_by_text("已向 127.0.0.1 发送“weather”。")).to_be_visible()
        page.screenshot(path=pictures / "web-search-zh.png", full_page=True)
        assert _fits(page)
