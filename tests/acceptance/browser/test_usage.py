"""What was used of language models, drawn: in every look, and in Chinese."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.access.roles import Role
from backend.store.accounts.people import NOBODY
from backend.store.database import open_database, sqlite_url
from backend.store.llm import model_usage
from backend.store.llm.model_usage import TokenCounts
from tests.support.accounts import PASSWORD, add_person
from tests.support.browser import check_looks
from tests.support.chinese import find_english
from tests.support.home import Home
from tests.support.serving import Serving, serving

URL = "http://127.0.0.1:8000/v1"
PEOPLE = 8
EMAIL = "somebody.with.a.long.name{}@example.com"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = Home(tmp_path_factory.mktemp("usage"))
    with serving(home) as running:
        prices = ("--input-price", "2.5", "--output-price", "10")
        added = home.quarry("models", "add", "scripted", "--url", URL, "--model", "m", *prices)
        assert added.code == 0, added.err
        _use_models(home.path / "state" / "quarry.db")
        yield running


def _use_models(path: Path) -> None:
    """Everybody uses two models, less on every seventh day, and most of all the last person."""
    today = datetime.now(UTC).date()
    with closing(open_database(sqlite_url(path))) as database:
        made = [add_person(database, EMAIL.format(number), Role.ADMIN) for number in range(PEOPLE)]
        ids = [NOBODY, *(person.id for person in made)]
        for back in range(60):
            for place, who in enumerate(ids):
                tokens = (place + 1) * (200 if back % 7 == 3 else 9_000 + 700 * (back % 5))
                counts = TokenCounts(input_tokens=tokens, output_tokens=tokens // 9, calls=place)
                used = (
                    {"scripted": counts, "handbook": counts} if place % 2 else {"scripted": counts}
                )
                model_usage.add(database, who, today - timedelta(days=back), used)


@pytest.fixture
def page(browser: Browser, server: Serving, language: str) -> Iterator[Page]:
    with browser.new_context(locale=language) as context:
        page = context.new_page()
        page.goto(f"{server.url}/models")
        page.locator("[name=email]").fill(EMAIL.format(0))
        page.locator("[name=password]").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("figure")).to_have_count(3)
        yield page


def _check_boxes(page: Page) -> None:
    """Every letter and every bar lies within its figure."""
    outside = page.evaluate(
        """[...document.querySelectorAll(".plot")].flatMap(figure => {
          const box = figure.getBoundingClientRect();
          const parts = [...figure.querySelectorAll(".drawing text, .drawing rect, .legend li")];
          return parts.filter(part => {
            const at = part.getBoundingClientRect();
            return at.left < box.left - 0.5 || at.right > box.right + 0.5 || at.top < box.top || at.bottom > box.bottom;
          }).map(part => part.outerHTML);
        })"""
    )
    assert outside == []


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_usage_is_drawn(page: Page, pictures: Path, language: str) -> None:
    if language == "zh-CN":
        assert find_english(page) == []
    for days in (7, 30, 90):
        page.locator(f'a[href="/models?days={days}#usage-title"]').press("Enter")
        expect(page.locator(".periods [aria-current]")).to_contain_text(str(days))
        for width in (320, 1280):
            page.set_viewport_size({"width": width, "height": 860})
            _check_boxes(page)
    check_looks(page, pictures, f"usage-{language}")


@pytest.mark.parametrize("language", ["en"])
def test_a_chart_is_read_as_a_table(page: Page) -> None:
    page.goto(page.url.partition("?")[0] + "?days=30")
    figure = page.get_by_role("figure", name="Tokens by day and person")
    expect(figure.get_by_role("img", name="Tokens by day and person")).to_be_visible()
    figure.get_by_text("The same as a table").press("Enter")
    table = figure.get_by_role("table")
    expect(table.get_by_role("row")).to_have_count(31)
    expect(table.get_by_role("columnheader").last).to_have_text("all others")
