"""An admin gives a source to somebody, and a source manager sees what is theirs alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from tests.support.accounts import PASSWORD
from tests.support.home import Home
from tests.support.serving import Serving, serving

ANN, SAM = "ann@example.com", "sam@example.com"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = Home(tmp_path_factory.mktemp("owners"))
    folder = tmp_path_factory.mktemp("files")
    (folder / "a.md").write_text("A note.\n")
    home.quarry("add", "folder", str(folder), "--name", "house")
    with serving(home) as running:
        for email, role in ((ANN, "admin"), (SAM, "source_manager")):
            link = home.quarry("users", "invite", email, "--role", role).out.strip()
            form = {"code": link.partition("=")[2], "name": email, "password": PASSWORD}
            assert running.client.post("/invitation", data=form).status_code == 303
        yield running


def _sign_in(page: Page, server: Serving, email: str, path: str) -> None:
    page.goto(f"{server.url}{path}")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.url}{path}")


def test_an_admin_sets_the_owner(browser: Browser, server: Serving, pictures: Path) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        _sign_in(page, server, ANN, "/source/house")
        owner = page.get_by_label("E-mail address of an admin or a source manager")
        owner.fill(SAM)
        page.get_by_role("button", name="Set owner").click()
        expect(page.locator("#owner [role=alert]")).to_contain_text("QUARRY_SOURCE_ROOTS")
        owner.fill(ANN)
        page.get_by_role("button", name="Set owner").click()
        expect(page.locator("#state")).to_contain_text(f"looked after by {ANN}")
        expect(page.locator("#owner [role=alert]")).to_be_hidden()
        page.locator("#owner").scroll_into_view_if_needed()
        page.screenshot(path=pictures / "owner.png")
        assert Axe().run(page).response["violations"] == []


def test_a_source_manager_sees_what_is_theirs(
    browser: Browser, server: Serving, pictures: Path
) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        _sign_in(page, server, SAM, "/sources")
        expect(page.get_by_role("main")).to_contain_text("There is no source yet.")
        expect(page.get_by_role("navigation", name="Main")).not_to_contain_text("People")
        page.get_by_label("Folder on this machine").fill("/etc")
        page.get_by_role("button", name="Add and sync").click()
        expect(page.get_by_role("main")).to_contain_text("QUARRY_SOURCE_ROOTS")
        page.screenshot(path=pictures / "source-manager.png")
        assert Axe().run(page).response["violations"] == []
        answer = page.goto(f"{server.url}/source/house")
        assert answer
        assert answer.status == 404
