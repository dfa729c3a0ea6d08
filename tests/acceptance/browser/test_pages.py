"""One short journey on each of the pages that most people use, over one small folder; the other modules go into each of them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.accounts import PASSWORD
from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.scripted_model import Call, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.smoke
NOTE = "# Kites\n\nThe red kite of the harbour office flies on Tuesdays.\n"
ANSWER = "It flies on **Tuesdays** [{n}]."
COMPLETE = re.compile(r"The answer is complete\.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "kites.md").write_text(NOTE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def server(own_home: Home) -> Iterator[Serving]:
    with ScriptedModel(_write) as model:
        settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        with serving(own_home, **settings) as running:
            yield running


def _write(request: Request) -> Reply:
    if request.has_sources:
        return Say(ANSWER.format(n=request.sources[0]["number"]))
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["red kite harbour"]}))
    return Say("red kite harbour office")


@pytest.fixture(scope="module")
def synced(server: Serving, own_home: Home, folder: Path) -> None:
    """The folder is a source, also where the page of sources was not asked to add it."""
    if not server.client.get("/api/sources").json():
        assert own_home.quarry("add", "folder", str(folder)).code == 0
        assert own_home.quarry("sync").code == 0


def test_a_folder_is_added_synced_and_paused(opens: Opens, server: Serving, folder: Path) -> None:
    with opens(server.url) as watched:
        page = watched.open("/")
        expect(page.get_by_text("Nothing is indexed yet.")).to_be_visible()
        page.get_by_role("link", name="Add a folder").click()
        page.get_by_label("Folder on this machine").fill(str(folder))
        page.get_by_role("button", name="Add and sync").click()
        expect(page.locator(".state")).to_have_text("up to date", timeout=60_000)
        expect(page.locator(".source")).to_contain_text("1 document")
        page.get_by_role("link", name=folder.name, exact=True).first.click()
        page.get_by_role("button", name="Pause").click()
        expect(page.locator(".source-head .state")).to_have_text("paused")
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()


@pytest.mark.usefixtures("synced")
def test_a_document_is_found_and_read(opens: Opens, server: Serving) -> None:
    with opens(server.url) as watched:
        page = watched.open("/")
        page.locator("#q").fill("harbour kite")
        expect(page.locator("[data-result]").first).to_have_text("Kites")
        page.locator("[data-result]").first.click()
        expect(page.locator("main")).to_contain_text("flies on Tuesdays")


@pytest.mark.usefixtures("synced")
def test_an_answer_leads_to_its_source(opens: Opens, server: Serving) -> None:
    with opens(server.url) as watched:
        page = watched.open("/ask")
        page.locator("#q").fill("When does the red kite fly?")
        page.keyboard.press("Enter")
        expect(page.locator("#answer strong")).to_have_text("Tuesdays")
        expect(page.get_by_role("status")).to_have_text(COMPLETE)
        page.locator("#answer .cite").first.click()
        expect(page.locator("#cited")).to_contain_text("The red kite")


@pytest.mark.usefixtures("synced")
def test_a_conversation_goes_on(opens: Opens, server: Serving) -> None:
    with opens(server.url) as watched:
        page = watched.open("/chat")
        _ask(page, "When does the red kite fly?")
        answers = page.locator(".message.answering .answer")
        expect(answers).to_contain_text(["It flies on Tuesdays"])
        expect(page.get_by_role("status")).to_have_text(COMPLETE)
        _ask(page, "And the green one?")
        expect(answers).to_have_count(2)
        expect(page.get_by_role("status")).to_have_text(COMPLETE)


def test_the_first_account_is_made_and_signs_in(
    opens: Opens, server: Serving, own_home: Home
) -> None:
    port = server.url.rpartition(":")[2]
    invited = own_home.quarry(
        "users", "invite", "ann@example.com", "--role", "admin", "--port", port
    )
    with opens(server.url) as watched:
        page = watched.page
        page.goto(invited.out.strip())
        page.get_by_label("Your name").fill("Ann Lee")
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def _ask(page: Page, question: str) -> None:
    box = page.get_by_label("Your question", exact=True)
    box.fill(question)
    box.press("Enter")
