"""For everybody: a phone, the dark, large type, little motion, a screen reader."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.serving import serving

PAGES = {
    "welcome": "/",
    "results": "/?q=error+codes&type=pdf",
    "nothing": "/?q=warranty&until=1999-12-31",
    "answer": "/ask?q=What+should+a+customer+do+when+the+scanner+shows+QX-4031%3F",
    "unanswered": "/ask?q=When+is+this+year%27s+company+football+tournament%3F",
    "chat": "/chat",
    "assistants": "/assistants",
    "assistant": "/assistants/new",
    "projects": "/projects",
    "document": "/document/handbook:support/error-codes-scanners.html?section=2&start=0&end=40#cited",
    "table": "/document/handbook:products/spare-parts.xlsx",
    "pages": "/document/handbook:finance/annual-report-2025.pdf",
    "missing": "/document/handbook:nothing",
    "sources": "/sources",
    "form": "/sources?add=git",
    "source": "/source/handbook",
    "sets": "/sets",
    "audit": "/audit",
}
PHONE = {"viewport": {"width": 360, "height": 740}}
LARGE = {"viewport": {"width": 640, "height": 430}, "device_scale_factor": 2}
"""A window of 1280 by 860 at 200 % zoom."""


@pytest.fixture(scope="module")
def address(home: Home) -> Iterator[str]:
    with serving(home) as server:
        yield server.url


def _faults(page: Page) -> list[str]:
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


def _settled(page: Page) -> None:
    """The answer is complete, where one was asked for."""
    if page.locator("#turn").count() and "?q=" in page.url:
        expect(page.locator("#after")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_that_axe_objects_to(
    opens: Opens, address: str, pictures: Path, scheme: str
) -> None:
    with opens(address, color_scheme=scheme) as watched:
        for name, path in PAGES.items():
            page = watched.open(path)
            _settled(page)
            page.screenshot(path=pictures / f"{name}-{scheme}.png")
            assert (name, _faults(page)) == (name, [])
        watched.wrong[:] = [line for line in watched.wrong if "of 404" not in line]


@pytest.mark.parametrize(("name", "options"), [("phone", PHONE), ("large", LARGE)])
def test_a_narrow_window_holds_every_page(
    opens: Opens, address: str, pictures: Path, name: str, options: dict[str, Any]
) -> None:
    with opens(address, **options) as watched:
        for room, path in PAGES.items():
            page = watched.open(path)
            _settled(page)
            page.screenshot(path=pictures / f"{room}-{name}.png")
            width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert (room, width[0]) == (room, width[1])
            assert name != "phone" or (room, _faults(page)) == (room, [])
        watched.wrong[:] = [line for line in watched.wrong if "of 404" not in line]


def test_filters_on_a_phone_are_opened_when_they_are_wanted(
    opens: Opens, address: str, pictures: Path
) -> None:
    with opens(address, **PHONE, has_touch=True) as watched:
        page = watched.open("/?q=error+codes")
        choice = page.get_by_role("link", name=re.compile(r"^PDF, \d documents"))
        expect(choice).to_be_hidden()
        page.get_by_text("Filters").tap()
        expect(choice).to_be_visible()
        choice.tap()
        expect(page.get_by_role("link", name="Remove Type: PDF")).to_be_visible()
        page.screenshot(path=pictures / "filters-phone.png")


def test_the_colors_that_were_chosen_are_kept(opens: Opens, address: str) -> None:
    with opens(address, color_scheme="light") as watched:
        page = watched.open("/")
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.get_by_role("button", name="Colors: same as the system").click()
        page.get_by_role("button", name="Colors: light").click()
        dark = page.evaluate(ground)
        assert dark != light
        page.goto(f"{address}/sources")
        assert page.evaluate(ground) == dark
        expect(page.get_by_role("button", name="Colors: dark")).to_be_visible()


def test_who_wants_no_motion_sees_none(opens: Opens, address: str) -> None:
    with opens(address, reduced_motion="reduce") as watched:
        page = watched.open("/ask")
        page.evaluate("document.getElementById('turn').hidden = false")
        page.evaluate("document.getElementById('steps').innerHTML = '<li class=now>Searching</li>'")
        moving = page.evaluate("document.getAnimations().length")
        assert moving == 0


def test_every_room_has_its_landmarks_and_one_heading(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        for path in PAGES.values():
            page = watched.open(path)
            for role in ("banner", "main"):
                expect(page.get_by_role(role)).to_have_count(1)
            # Beside it, some rooms have tabs with a name of their own.
            expect(page.get_by_role("navigation", name="Main")).to_have_count(1)
            expect(page.get_by_role("heading", level=1)).to_have_count(1)
        watched.wrong[:] = [line for line in watched.wrong if "of 404" not in line]


def test_the_focus_can_be_seen_wherever_it_goes(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/?q=error+codes")
        page.locator("body").press("Tab")
        for _ in range(12):
            page.keyboard.press("Tab")
            seen = page.evaluate(
                """() => {
                  const focused = document.activeElement;
                  const style = getComputedStyle(focused);
                  const bar = getComputedStyle(focused.closest('.result') ?? focused, '::before');
                  return style.outlineStyle !== 'none' || (focused.dataset.result != null && bar.content !== 'none');
                }"""
            )
            assert seen, page.evaluate("document.activeElement.outerHTML")
