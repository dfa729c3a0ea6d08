"""Projects in a browser: two people, what they ask in one, and what each sees of the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.support.accounts import PASSWORD
from tests.support.browser import Watched, check_looks
from tests.support.home import Home
from tests.support.scripted_model import (
    Call,
    Manner,
    Reply,
    Request,
    Say,
    ScriptedModel,
    ToolUse,
)
from tests.support.serving import Serving, serving

ANN, BOB = "ann@example.com", "bob@example.com"
OPEN, SECRET = "How many weeks of leave are there?", "In which band is an engineer?"
FILES = {
    "leave.md": "# Leave\n\nThere are 26 weeks of leave.\n",
    "pay.md": "# Bands\n\nAn engineer is in band five.\n",
    "access.yaml": (
        "rules:\n  - match: pay.md\n    readers: [user:ann@example.com]\n"
        '  - match: "**"\n    readers: [public]\n'
    ),
}
RULES = "The depot opens in May."
SLOWLY = "slowly"
"""A question with this word is never answered to the end."""


def script(request: Request) -> Reply:
    asked = SECRET if SECRET in request.text else OPEN
    if request.has_sources and SLOWLY in request.text:
        return Say("It is 26 weeks [1].", manner=Manner(stall_after=2))
    if request.has_sources:
        told = " The depot was told." if RULES in request.text else ""
        return Say(("It is band five [1]." if asked == SECRET else "It is 26 weeks [1].") + told)
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": [asked]}))
    return Say(asked)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Ann is an admin who alone may read of pay; Bob is a member."""
    home, folder = (
        Home(tmp_path_factory.mktemp("projects")),
        tmp_path_factory.mktemp("files") / "office",
    )
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    assert home.quarry("add", "folder", str(folder)).code == 0
    assert home.quarry("sync").code == 0
    with (
        ScriptedModel(script) as model,
        serving(home, QUARRY_LLM_URL=model.base_url, QUARRY_LLM_MODEL="scripted") as running,
    ):
        for email, name, *role in ((ANN, "Ann Lee", "--role", "admin"), (BOB, "Bob Day")):
            port = running.url.rpartition(":")[2]
            link = home.quarry("users", "invite", email, *role, "--port", port).out.strip()
            form = {"code": link.partition("=")[2], "name": name, "password": PASSWORD}
            assert running.client.post("/invitation", data=form).status_code == 303
        yield running


@contextmanager
def _signed_in(browser: Browser, server: Serving, email: str, locale: str = "en") -> Iterator[Page]:
    size: ViewportSize = {"width": 1280, "height": 860}
    with browser.new_context(viewport=size, locale=locale) as context:
        watched = Watched(context.new_page(), server.url)
        page = watched.open("/chat")
        page.locator("input[type=email]").fill(email)
        page.locator("input[type=password]").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.locator(".signed-in button")).to_be_visible()
        yield page
        # What is refused is answered with 422, which the browser reports.
        assert [one for one in watched.wrong if "of 422" not in one] == []


def _ask(page: Page, question: str, answer: str) -> None:
    box = page.get_by_label("Your question", exact=True)
    box.fill(question)
    box.press("Enter")
    expect(page.locator(".message .answer").last).to_contain_text(answer)


def _open_source(page: Page, pictures: Path) -> None:
    """The card of a citation; its document beside the answer, at the passage, and away again."""
    page.locator(".answer .cite").first.hover()
    expect(page.locator("#card")).to_contain_text("There are 26 weeks of leave.")
    page.locator(".answer .cite").first.click()
    pane = page.get_by_role("region", name="Document")
    expect(pane.locator("#pane-cited")).to_contain_text("26 weeks of leave")
    page.screenshot(path=pictures / "project-conversation-document.png")
    page.keyboard.press("Escape")
    expect(pane).to_be_hidden()


def test_two_people_in_a_project(browser: Browser, server: Serving, pictures: Path) -> None:
    with _signed_in(browser, server, ANN) as ann, _signed_in(browser, server, BOB) as bob:
        ann.get_by_role("link", name="Projects").click()
        expect(ann.get_by_role("main")).to_contain_text("You are in no project yet.")
        ann.get_by_label("Name", exact=True).fill("New depot")
        ann.get_by_label("Instructions").fill(RULES)
        ann.get_by_role("button", name="Make project").click()
        # Nothing tells which of the two has an account.
        ann.get_by_label("Address of a colleague").fill("nobody@example.com")
        ann.get_by_role("button", name="Add").click()
        expect(ann.get_by_role("main")).to_contain_text("nobody@example.com")
        ann.get_by_label("Address of a colleague").fill(BOB)
        ann.get_by_role("button", name="Add").click()
        expect(ann.get_by_role("main")).to_contain_text(BOB)
        project = ann.url

        for question, answer in ((OPEN, "26 weeks"), (SECRET, "band five")):
            ann.goto(project)
            ann.get_by_role("link", name="Ask in this project").click()
            expect(ann.locator("#project")).to_have_text("In the project New depot")
            _ask(ann, question, answer)
            expect(ann.locator(".message .answer").last).to_contain_text("The depot was told.")
        expect(ann.locator("#project")).to_have_text("In the project New depot")
        check_looks(ann, pictures, "project-chat")

        bob.goto(f"{server.url}/chat")
        bob.get_by_role("link", name="New depot").click()
        expect(bob.get_by_role("main")).to_contain_text("Ann Lee")
        check_looks(bob, pictures, "project")
        bob.get_by_role("link", name=OPEN).click()
        expect(bob.locator(".message .answer")).to_contain_text("26 weeks")
        expect(bob.locator(".message .answer .cite")).to_have_text("1")
        check_looks(bob, pictures, "project-conversation")
        _open_source(bob, pictures)
        bob.goto(project)
        bob.get_by_role("link", name=SECRET).click()
        expect(bob.locator(".message.answering")).to_have_text(
            "Answer This answer rests on sources that were deleted, or that you may not read."
        )
        assert "band five" not in bob.content()
        bob.goto(project)
        bob.get_by_role("button", name="Leave project").click()
        expect(bob.get_by_role("main")).to_contain_text("You are in no project yet.")
        ann.goto(project)
        check_looks(ann, pictures, "project-own")


def test_a_conversation_is_moved_into_a_project_and_followed_there(
    browser: Browser, server: Serving, pictures: Path
) -> None:
    with _signed_in(browser, server, ANN) as ann, _signed_in(browser, server, BOB) as bob:
        ann.goto(f"{server.url}/projects")
        ann.get_by_label("Name", exact=True).fill("Yard")
        ann.get_by_role("button", name="Make project").click()
        ann.get_by_label("Address of a colleague").fill(BOB)
        ann.get_by_role("button", name="Add").click()
        expect(ann.get_by_role("main")).to_contain_text(BOB)
        project = ann.url
        ann.goto(f"{server.url}/chat")
        _ask(ann, OPEN, "26 weeks")
        expect(ann.locator("#project")).to_be_hidden()
        ann.get_by_role("button", name=f"Options of {OPEN}").first.click()
        ann.get_by_role("menuitem", name="Move to a project").click()
        dialog = ann.get_by_role("dialog")
        dialog.get_by_label("Project").select_option("Yard")
        expect(dialog).to_contain_text("Whoever is in the project may then read its title")
        check_looks(ann, pictures, "project-moving")
        dialog.get_by_role("button", name="Move").click()
        expect(ann.locator("#project")).to_have_text("In the project Yard")
        bob.goto(project)
        bob.get_by_role("link", name=OPEN).click()
        expect(bob.locator(".message .answer")).to_contain_text("26 weeks")
        ann.get_by_role("button", name=f"Options of {OPEN}").first.click()
        ann.get_by_role("menuitem", name="Move to a project").click()
        dialog.get_by_label("Project").select_option("No project")
        expect(dialog).to_contain_text("Outside of a project, only you see it")
        dialog.get_by_role("button", name="Move").click()
        expect(ann.locator("#project")).to_be_hidden()
        bob.goto(project)
        expect(bob.get_by_role("link", name=OPEN)).to_have_count(0)


def _make(page: Page, server: Serving, name: str, instructions: str = "") -> str:
    page.goto(f"{server.url}/projects")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Instructions").fill(instructions)
    page.get_by_role("button", name="Make project").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    return page.url


def test_what_another_page_changed_is_kept_and_a_deletion_is_confirmed(
    browser: Browser, server: Serving, pictures: Path
) -> None:
    with _signed_in(browser, server, ANN) as ann:
        project = _make(ann, server, "Wharf", "Written in verse.")
        expect(ann.locator("[data-unwired]")).to_have_count(0)
        other = ann.context.new_page()
        other.goto(project)
        expect(other.locator("[data-unwired]")).to_have_count(0)
        other.get_by_label("Instructions").fill(RULES)
        other.get_by_role("button", name="Save").click()
        expect(other.get_by_label("Instructions")).to_have_value(RULES)
        ann.get_by_label("Name", exact=True).fill("The wharf")
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("heading", name="The wharf")).to_be_visible()
        expect(ann.get_by_label("Instructions")).to_have_value(RULES)
        # What was refused is shown again, and sent with what was wrong in it.
        ann.get_by_label("Name", exact=True).fill("   ")
        ann.get_by_label("Instructions").fill("In prose.")
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("alert")).to_be_visible()
        expect(ann.get_by_label("Instructions")).to_have_value("In prose.")
        expect(ann.locator("[data-unwired]")).to_have_count(0)
        ann.get_by_label("Name", exact=True).fill("The wharf")
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("alert")).to_have_count(0)
        expect(ann.get_by_label("Instructions")).to_have_value("In prose.")
        # The editor is not below what grows.
        heights = [
            ann.get_by_role("heading", name=name, exact=True).evaluate("(one) => one.offsetTop")
            for name in ("Conversations", "Change", "Members", "Files", "Delete")
        ]
        assert heights == sorted(heights)

        ann.goto(f"{server.url}/projects")
        check_looks(ann, pictures, "projects")
        ann.goto(project)
        expect(ann.locator("[data-unwired]")).to_have_count(0)
        ann.get_by_role("button", name="Delete project").click()
        dialog = ann.get_by_role("dialog", name="Delete this project?")
        expect(dialog).to_contain_text("The wharf")
        check_looks(ann, pictures, "project-deleting")
        dialog.get_by_role("button", name="Keep it").click()
        ann.reload()
        expect(ann.locator("[data-unwired]")).to_have_count(0)
        ann.get_by_role("button", name="Delete project").click()
        dialog.get_by_role("button", name="Delete", exact=True).click()
        expect(ann.get_by_role("heading", level=1)).to_have_text("Projects")
        expect(ann.get_by_role("main")).not_to_contain_text("The wharf")


def _try(page: Page, instructions: str, question: str) -> None:
    """By the keyboard, once the script of the page has run."""
    expect(page.locator("[data-unwired]")).to_have_count(0)
    page.get_by_label("Instructions").fill(instructions)
    box = page.get_by_label("Question", exact=True)
    box.fill(question)
    box.press("Enter")


def test_the_owner_tries_instructions_before_they_are_saved(
    browser: Browser, server: Serving, pictures: Path
) -> None:
    with _signed_in(browser, server, ANN) as ann:
        project = _make(ann, server, "Quay", "Written in verse.")
        ann.get_by_label("Address of a colleague").fill(BOB)
        ann.get_by_role("button", name="Add", exact=True).click()
        tried, said = ann.get_by_role("group", name="Answer"), ann.get_by_text("The answer is")
        _try(ann, RULES, OPEN)
        expect(said).to_have_text("The answer is complete. 1 citation.")
        expect(tried).to_contain_text("It is 26 weeks 1. The depot was told.")
        tried.locator(".cite").first.focus()
        ann.keyboard.press("Shift+Tab")
        ann.keyboard.press("Tab")
        expect(ann.locator("#card")).to_contain_text("There are 26 weeks of leave.")
        ann.keyboard.press("Escape")
        check_looks(ann, pictures, "project-try-out")
        _try(ann, "", OPEN)
        expect(said).to_have_text("The answer is complete. 1 citation.")
        expect(tried).not_to_contain_text("The depot was told.")
        # Nothing is kept of it, neither what was tried nor what was asked.
        ann.reload()
        expect(ann.get_by_label("Instructions")).to_have_value("Written in verse.")
        expect(ann.get_by_text("Nothing was asked in it yet.")).to_be_visible()
        expect(tried).to_be_hidden()
    with _signed_in(browser, server, BOB) as bob:
        bob.goto(project)
        expect(bob.get_by_role("button", name="Leave project")).to_be_visible()
        expect(bob.get_by_role("heading", name="Try it")).to_have_count(0)
    with _signed_in(browser, server, ANN, "zh-CN") as ann:
        ann.goto(project)
        expect(ann.get_by_role("heading", name="试用")).to_be_visible()
        expect(ann.locator(".trial")).to_contain_text("不会留下任何记录。")
        ask = ann.get_by_role("button", name="提问", exact=True)
        expect(ask).to_be_enabled()
        ann.locator("#q").fill(OPEN)
        ask.press("Enter")
        expect(ann.locator("#status")).to_have_text("回答已完成，共 1 处引用。")
        check_looks(ann, pictures, "project-try-out-chinese")


def test_what_is_tried_is_stopped_replaced_and_refused(browser: Browser, server: Serving) -> None:
    with _signed_in(browser, server, ANN) as ann:
        _make(ann, server, "Jetty")
        tried, status = ann.get_by_role("group", name="Answer"), ann.locator("#status")
        _try(ann, RULES, f"{OPEN} Say it {SLOWLY}.")
        expect(tried.locator(".answer")).to_contain_text("It is")
        ann.get_by_role("button", name="Stop").press("Enter")
        expect(status).to_have_text("Stopped")
        expect(ann.get_by_role("button", name="Ask", exact=True)).to_be_focused()
        # Another question takes the place of one that is answered.
        _try(ann, RULES, f"{OPEN} Say it {SLOWLY}.")
        expect(tried.locator(".answer")).to_contain_text("It is")
        _try(ann, RULES, OPEN)
        expect(status).to_have_text("The answer is complete. 1 citation.")
        expect(tried).not_to_contain_text("Stopped")
        # What cannot be asked says why, and stays.
        _try(ann, RULES, "x" * 8_001)
        expect(ann.get_by_role("alert")).to_have_text(
            "The question has 8,001 characters. At most 8,000 are allowed."
        )
        ann.get_by_label("Instructions").evaluate("(box) => box.removeAttribute('maxlength')")
        _try(ann, "x" * 8_001, OPEN)
        expect(ann.get_by_role("alert")).to_contain_text("There is no answer")
        expect(ann.get_by_label("Question", exact=True)).to_have_value(OPEN)
