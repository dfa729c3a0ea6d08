"""Two people in a browser: one shares a conversation and says what they think of an answer, the other reads both, as far as they may."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.support.accounts import PASSWORD
from tests.support.browser import DESK, PHONE, check_looks
from tests.support.home import Home
from tests.support.scripted_model import Call, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.serving import Serving, serving

ANN, BOB = "ann@example.com", "bob@example.com"
QUESTION = "What does QX-4031 mean?"
ANSWER = "QX-4031 means that the **interlock of the laser** is open [{n}]."
WITHHELD = "This answer rests on sources that were deleted, or that you may not read."
COMPLETE = re.compile(r"The answer is complete\.")


def _answering(request: Request) -> Reply:
    """A model that searches, then answers from the document on scanners' codes."""
    if request.has_sources:
        found = request.sources
        numbers = [one["number"] for one in found if "scanners" in one["title"].lower()]
        return Say(ANSWER.format(n=numbers[0]))
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["QX-4031 interlock"]}))
    return Say("QX-4031 laser interlock open")


class Company:
    """A server with two people, and documents whose readers change."""

    def __init__(self, home: Home, folder: Path, server: Serving) -> None:
        self.home, self.folder, self.server = home, folder, server

    def let_read(self, reader: str) -> None:
        rules = f'rules:\n  - match: "**"\n    readers: ["{reader}"]\n'
        (self.folder / "access.yaml").write_text(rules, encoding="utf-8")
        assert self.home.quarry("sync").code == 0

    def sign_in(self, browser: Browser, email: str) -> tuple[BrowserContext, Page]:
        context = browser.new_context(viewport=DESK, accept_downloads=True)
        page = context.new_page()
        page.goto(f"{self.server.url}/chat")
        page.get_by_label("E-mail address").fill(email)
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_label("Your question", exact=True)).to_be_focused()
        return context, page

    def lose_history(self) -> None:
        """As if no model had summarized the earliest messages of the conversations so far."""
        loss = '[{"step": "history", "reason": "The summary was not written in time."}]'
        self._change_answers("losses = ?", loss)

    def stop_answers(self) -> None:
        """As if the answers so far had been stopped at their ends."""
        self._change_answers("status = ?", "stopped")

    def _change_answers(self, change: str, value: str) -> None:
        with closing(sqlite3.connect(self.home.path / "state" / "quarry.db")) as database, database:
            database.execute(f"UPDATE messages SET {change} WHERE role = 'assistant'", (value,))


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Company]:
    home, folder = Home(tmp_path / "home"), tmp_path / "docs"
    home.path.mkdir()
    folder.mkdir()
    text = "# Error codes of the scanners\n\nQX-4031 means that the interlock of the laser is open."
    (folder / "scanners.md").write_text(text, encoding="utf-8")
    home.quarry("add", "folder", str(folder), "--name", "docs")
    with ScriptedModel() as model:
        model.play(_answering)
        settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        with serving(home, **settings) as server:
            made = Company(home, folder, server)
            made.let_read("public")
            port = server.url.rpartition(":")[2]
            for email, role in ((ANN, "admin"), (BOB, "member")):
                invited = home.quarry("users", "invite", email, "--role", role, "--port", port)
                code = invited.out.strip().partition("=")[2]
                form = {"code": code, "name": email, "password": PASSWORD}
                assert server.client.post("/invitation", data=form).status_code == 303
            yield made


def _ask(page: Page, question: str) -> None:
    box = page.get_by_label("Your question", exact=True)
    box.fill(question)
    box.press("Enter")
    expect(page.locator("#status")).to_have_text(COMPLETE)


def _objections(page: Page) -> list[str]:
    violations = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in violations for node in one["nodes"]]


def _share(page: Page, pictures: Path) -> str:
    page.get_by_role("button", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog", name="Share this conversation")
    dialog.get_by_role("button", name="Create link").click()
    expect(dialog.get_by_text("It is shared.")).to_be_visible()
    for name, size in (("desk", DESK), ("phone", PHONE)):
        page.set_viewport_size(size)
        page.screenshot(path=pictures / f"share-dialog-{name}.png")
        assert _objections(page) == []
    page.set_viewport_size(DESK)
    link = dialog.get_by_label("Link").input_value()
    dialog.get_by_role("button", name="Close").click()
    return link


def test_shared_and_judged_by_one_read_by_another(
    browser: Browser, company: Company, pictures: Path
) -> None:
    bobs, bob = company.sign_in(browser, BOB)
    anns, ann = company.sign_in(browser, ANN)
    _ask(bob, QUESTION)
    _judge(bob, pictures)
    link = _share(bob, pictures)

    company.lose_history()
    said = "Done without the earliest messages of this conversation: "
    for page, address in ((bob, bob.url), (ann, link)):
        page.goto(address)
        expect(page.locator(".aside")).to_have_text(f"{said}The summary was not written in time.")
    expect(ann.locator(".answer strong")).to_have_text("interlock of the laser")
    expect(ann.get_by_role("heading", level=1)).to_have_text(QUESTION)
    expect(ann.get_by_label("Your question", exact=True)).to_have_count(0)
    check_looks(ann, pictures, "shared")
    ann.locator(".answer .cite").first.hover()
    expect(ann.locator("#card")).to_contain_text("scanners")
    ann.locator(".answer .cite").first.click()
    pane = ann.get_by_role("region", name="Document")
    expect(pane.locator("#pane-cited")).to_contain_text("interlock of the laser")
    _look_at_both(ann, pictures)
    ann.keyboard.press("Escape")
    expect(pane).to_be_hidden()
    ann.set_viewport_size(PHONE)
    ann.locator(".answer .cite").first.click()
    expect(ann).to_have_url(re.compile("/document/"))
    ann.set_viewport_size(DESK)
    _look_at_end_of_long_one(ann, link)
    ann.goto(link)
    with ann.expect_download() as downloading:
        ann.get_by_role("link", name="Download").click()
    written = downloading.value.path().read_text(encoding="utf-8")
    lost = f"*{said}The summary was not written in time.*"
    assert f"is open [1].\n\n{lost}\n\n## References\n\n1. [" in written

    company.let_read(f"user:{BOB}")
    ann.reload()
    expect(ann.get_by_text(WITHHELD)).to_be_visible()
    expect(ann.locator(".bubble")).to_have_text(QUESTION)
    assert "interlock" not in ann.content()
    assert "scanners" not in ann.content()
    expect(ann.locator(".aside")).to_be_hidden()
    check_looks(ann, pictures, "shared-withheld")
    ann.get_by_role("button", name="Continue from here").click()
    expect(ann.locator("#status")).to_contain_text("You may read none of its answers")
    ann.goto(f"{company.server.url}/feedback")
    expect(ann.get_by_text(WITHHELD)).to_be_visible()
    # Neither is what was said of it, which may quote it.
    assert "It does not say what to do." not in ann.content()
    assert "interlock" not in ann.content()
    check_looks(ann, pictures, "feedback-withheld")

    company.let_read("public")
    ann.reload()
    expect(ann.get_by_text("It does not say what to do.")).to_be_visible()
    ann.locator("summary").filter(has_text="Answer and how").click()
    expect(ann.locator(".opinion .answer")).to_contain_text("interlock of the laser")
    check_looks(ann, pictures, "feedback")

    ann.goto(link)
    ann.get_by_role("button", name="Continue from here").click()
    expect(ann).to_have_url(re.compile(r"/chat/[\w-]{16,}$"))
    expect(ann.locator(".answer strong")).to_have_text("interlock of the laser")

    company.stop_answers()
    ann.goto(link)
    expect(ann.locator(".ended")).to_have_text("The answer was stopped.")
    ann.locator(".answer .cite").hover()
    expect(ann.locator("#card")).to_contain_text("scanners")
    expect(ann.get_by_role("heading", name="References")).to_be_visible()

    _stop_sharing(bob)
    ann.goto(link)
    expect(ann.get_by_role("alert")).to_contain_text("Nothing is shared under this link")
    assert QUESTION not in ann.locator("main").inner_text()
    check_looks(ann, pictures, "shared-missing")
    bobs.close()
    anns.close()


def _look_at_end_of_long_one(page: Page, link: str) -> None:
    said = page.get_by_text("Earlier messages are not shown.")

    def lengthen(route: Route) -> None:
        found = route.fetch()
        route.fulfill(response=found, json={**found.json(), "has_earlier": True})

    page.goto(link)
    expect(page.locator(".answer strong")).to_be_visible()
    expect(said).to_be_hidden()
    page.route("**/api/shared/*", lengthen)
    page.reload()
    expect(said).to_be_visible()
    page.unroute("**/api/shared/*", lengthen)


def _look_at_both(page: Page, pictures: Path) -> None:
    page.screenshot(path=pictures / "shared-with-document.png")
    assert _objections(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _judge(page: Page, pictures: Path) -> None:
    """By keyboard: open the form, leave it, say what is wrong, and find it again."""
    bad = page.get_by_role("button", name="Bad")
    bad.focus()
    page.keyboard.press("Enter")
    form = page.get_by_role("form", name="Say what is wrong with this answer")
    expect(form.get_by_text("The admins see this with your question")).to_be_visible()
    expect(form.get_by_label("Why?")).to_be_focused()
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    expect(bad).to_be_focused()
    expect(bad).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Enter")
    form.get_by_label("What is wrong").select_option(label="Source 1: Error codes of the scanners")
    form.get_by_label("Why?").fill("It does not say what to do.")
    check_looks(page, pictures, "chat-feedback")
    form.get_by_role("button", name="Send").click()
    expect(page.locator("#status")).to_have_text("Thank you. The admins see it with your question.")
    expect(bad).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(bad).to_have_attribute("aria-pressed", "true")
    bad.click()
    expect(form.get_by_label("What is wrong")).to_have_value("1")
    form.get_by_role("button", name="Cancel").click()


def _stop_sharing(page: Page) -> None:
    page.get_by_role("button", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog", name="Share this conversation")
    dialog.get_by_role("button", name="Stop sharing").click()
    expect(dialog.get_by_text("It is not shared any more.")).to_be_visible()
    expect(dialog.get_by_label("Link")).to_be_hidden()
    dialog.get_by_role("button", name="Close").click()
