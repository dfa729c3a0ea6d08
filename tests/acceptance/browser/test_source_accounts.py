"""A person asks for their account of a source, and an admin answers and maps: by the keyboard, on a phone, in the dark."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from backend.access.roles import Role
from backend.store.database import open_database
from backend.store.sync import sources
from tests.support.accounts import PASSWORD, add_person
from tests.support.databases import sqlite_in
from tests.support.groups import save_groups
from tests.support.home import Home
from tests.support.serving import Serving, serving

LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = Home(tmp_path_factory.mktemp("accounts"))
    state = home.path / "state"
    state.mkdir()
    with closing(open_database(sqlite_in(state))) as database:
        add_person(database, "ann@example.com", Role.ADMIN)
        sources.add(database, "hub", "folder", {"path": str(home.path / "nothing")})
        sources.set_paused(database, "hub", sources.find(database, "hub").created_at)
        names = {f"account/octocat-{look}": f"Octo Cat ({look})" for look in LOOKS}
        names |= {f"account/hubot-{look}": f"Hub Robot ({look})" for look in LOOKS}
        save_groups(database, "hub", dict.fromkeys(names, ()), names)
    with serving(home) as running:
        yield running


def _check(page: Page, picture: Path) -> None:
    assert Axe().run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=picture, full_page=True)


@pytest.mark.parametrize("look", LOOKS)
def test_asking_approving_and_mapping(
    browser: Browser, server: Serving, pictures: Path, look: str
) -> None:
    with browser.new_context(**LOOKS[look]) as context:  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{server.url}/account")
        page.get_by_label("E-mail address").fill("ann@example.com")
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        page.get_by_label("Name of the source").fill("hub")
        page.keyboard.press("Tab")
        page.keyboard.type(f"octocat-{look}")
        page.keyboard.press("Enter")
        section = page.get_by_role("region", name="Your accounts at sources")
        expect(section).to_contain_text("not approved yet")
        _check(page, pictures / f"own-source-accounts-{look}.png")
        page.goto(f"{server.url}/source-accounts")
        page.get_by_role("button", name=f"Approve octocat-{look} for ann@").press("Enter")
        mapped = page.get_by_role("region", name="Mapped", exact=True)
        expect(mapped).to_contain_text(f"octocat-{look} of hub")
        page.get_by_label("How its id or name begins").fill(f"hub robot ({look}")
        page.keyboard.press("Enter")
        page.get_by_label("E-mail address of the person").fill("none@example.com")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("There is no account of none@")
        _check(page, pictures / f"source-accounts-{look}.png")
        page.get_by_label("How its id or name begins").fill(f"hub robot ({look}")
        page.keyboard.press("Enter")
        page.get_by_label("E-mail address of the person").fill("ann@example.com")
        page.keyboard.press("Enter")
        expect(mapped).to_contain_text(f"hubot-{look} of hub")
        page.get_by_role("button", name=f"Withdraw hubot-{look} from ann@").press("Enter")
        expect(mapped).not_to_contain_text(f"hubot-{look}")
