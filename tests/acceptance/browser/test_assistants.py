"""Assistants in a browser: made, tried, asked, shared with another person, taken back."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.accounts import PASSWORD
from tests.support.browser import Watched, check_looks
from tests.support.home import Home
from tests.support.scripted_model import Call, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.serving import Serving, serving

QUESTION = "How many weeks of parental leave are there?"
ANN, BOB = "ann@example.com", "bob@example.com"
NAME = "Depot desk"
ORDINARY = re.compile(r"of (404|409|422)|^dialog: $")
"""What a browser reports of what is not there or refused, and that it asks before what was typed is lost."""
COMPLETE = re.compile(r"The answer is complete\.")
ANSWER = "There are 9 weeks"
SOURCES = {
    "depot": "Parental leave has 9 weeks at the depot.",
    "office": "Parental leave has 26 weeks.",
}


def script(request: Request) -> Reply:
    """A model that says what it was found, and how it was told to answer."""
    if not request.has_sources:
        if request.tool_names:
            return Call(ToolUse("internal_search", {"queries": ["parental leave weeks"]}))
        return Say("parental leave weeks")
    found = request.sources
    numbers = sorted({one["number"] for one in found})
    weeks = "9" if all("depot" in one["title"].lower() for one in found) else "9 or 26"
    rhymes = " In rhyme." if "Rhyme" in request.text else ""
    return Say(f"There are {weeks} weeks{''.join(f'[{n}]' for n in numbers)}.{rhymes}")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(script) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel) -> Iterator[Serving]:
    """With two sources, and two people: Ann, an admin, and Bob, of the group `support`."""
    home = Home(tmp_path_factory.mktemp("assistants"))
    for name, text in SOURCES.items():
        folder = tmp_path_factory.mktemp("files") / name
        folder.mkdir()
        (folder / "leave.md").write_text(f"# Leave at the {name}\n\n{text}\n")
        (folder / "access.yaml").write_text('rules:\n  - match: "**"\n    readers: [public]\n')
        added = home.quarry("add", "folder", str(folder))
        assert added.code == 0, added.err
    assert home.quarry("sync").code == 0
    settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
    with serving(home, **settings) as running:
        _make_account(home, running, ANN, "Ann Lee", "--role", "admin")
        _make_account(home, running, BOB, "Bob Day")
        for arguments in (("create", "support"), ("add", "support", BOB)):
            done = home.quarry("groups", *arguments)
            assert done.code == 0, done.err
        yield running


def _make_account(home: Home, server: Serving, email: str, name: str, *role: str) -> None:
    port = server.url.rpartition(":")[2]
    link = home.quarry("users", "invite", email, *role, "--port", port).out.strip()
    form = {"code": link.partition("=")[2], "name": name, "password": PASSWORD}
    assert server.client.post("/invitation", data=form).status_code == 303


@contextmanager
def _signed_in(browser: Browser, server: Serving, email: str) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page(), server.url)
        page = watched.open("/chat")
        page.get_by_label("E-mail address").fill(email)
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        yield page
        assert [one for one in watched.wrong if not ORDINARY.search(one)] == []


def _send(page: Page, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Ask the API as the person who has signed in on the page."""
    token = page.locator('meta[name="csrf-token"]').get_attribute("content")
    address = "/".join(page.url.split("/")[:3]) + path
    headers = {"X-CSRF-Token": token or ""}
    answer = page.context.request.fetch(address, method=method, data=body, headers=headers)
    assert answer.ok, answer.text()
    return answer.json() if answer.body() else None


def _cards(page: Page) -> Locator:
    return page.locator(".gallery li")


def _make(page: Page) -> None:
    """Make the assistant that is limited to the depot, having tried it."""
    page.goto(page.url.partition("/chat")[0] + "/assistants")
    page.get_by_role("link", name="New assistant").click()
    page.get_by_label("Question", exact=True).fill(QUESTION)
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("group", name="Answer")).to_contain_text("9 or 26 weeks")
    page.get_by_label("Name", exact=True).fill(NAME)
    page.get_by_label("Description").fill("What counts at the depot.")
    page.get_by_label("Instructions").fill("Rhyme, in one sentence.")
    page.get_by_label("Questions to begin with").fill(f"{QUESTION}\nWhere is the depot?")
    page.get_by_label("Only some sources or document sets").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose a source")
    page.get_by_role("checkbox", name="depot").check()
    page.get_by_role("button", name="Ask").click()
    tried = page.get_by_role("group", name="Answer")
    expect(tried).to_contain_text("There are 9 weeks")
    expect(tried).to_contain_text("In rhyme.")


def _share(page: Page, with_whom: str) -> None:
    page.get_by_role("link", name=f"Edit {NAME}").click()
    page.get_by_label(with_whom).check()
    if with_whom == "Members of groups":
        page.get_by_role("checkbox", name="support").check()
    page.get_by_role("button", name="Save").click()
    expect(_cards(page)).to_have_count(2)


def test_an_assistant_from_its_making_to_its_end(
    browser: Browser, server: Serving, pictures: Path
) -> None:
    with _signed_in(browser, server, ANN) as ann, _signed_in(browser, server, BOB) as bob:
        _make(ann)
        check_looks(ann, pictures, "assistant-editor")
        ann.get_by_role("button", name="Save").click()
        expect(_cards(ann)).to_have_count(2)
        check_looks(ann, pictures, "assistants")

        # Asked, it answers from the depot alone.
        ann.get_by_role("link", name=f"Ask {NAME}").click()
        expect(ann.locator("#starters")).to_contain_text("What counts at the depot.")
        check_looks(ann, pictures, "assistant-chat")
        ann.get_by_role("button", name=QUESTION).click()
        expect(ann.get_by_role("status")).to_have_text(COMPLETE)
        expect(ann.locator(".message .answer")).to_contain_text("There are 9 weeks")
        expect(ann.locator(".message .references")).to_contain_text("Leave at the depot")
        expect(ann.locator(".message .references")).not_to_contain_text("office")
        expect(ann.locator("#assistant")).to_have_text(f"Answered by {NAME}")
        ann.reload()
        expect(ann.locator("#assistant")).to_have_text(f"Answered by {NAME}")
        ann.get_by_role("link", name=NAME).click()
        own = ann.url

        # For another it is not there, until it is shared.
        bob.goto(f"{server.url}/assistants")
        expect(_cards(bob)).to_have_count(1)
        bob.goto(own)
        expect(bob.get_by_role("main")).to_contain_text("There is no such assistant.")
        ann.goto(f"{server.url}/assistants")
        _share(ann, "Members of groups")
        bob.goto(f"{server.url}/assistants")
        expect(_cards(bob)).to_have_count(2)
        bob.get_by_role("link", name=f"Details of {NAME}").click()
        expect(bob.get_by_role("main")).to_contain_text("Rhyme, in one sentence.")
        check_looks(bob, pictures, "assistant-details")
        bob.get_by_role("link", name="Ask", exact=True).click()
        bob.get_by_role("button", name=QUESTION).click()
        expect(bob.get_by_role("status")).to_have_text(COMPLETE)

        # Deleted, what was said stays, and the default assistant goes on.
        ann.get_by_role("link", name=f"Edit {NAME}").click()
        ann.get_by_role("button", name="Delete").click()
        ann.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(_cards(ann)).to_have_count(1)
        bob.reload()
        expect(
            bob.get_by_role("heading", name="This assistant is no longer available")
        ).to_be_visible()
        expect(bob.locator(".message .answer")).to_contain_text("There are 9 weeks")
        expect(bob.get_by_label("Your question", exact=True)).to_be_disabled()
        check_looks(bob, pictures, "assistant-gone")
        bob.get_by_role("button", name="Use the default assistant").press("Enter")
        box = bob.get_by_label("Your question", exact=True)
        expect(box).to_be_focused()
        box.fill("And at the office?")
        box.press("Enter")
        expect(bob.locator(".message .answer").last).to_contain_text("9 or 26 weeks")


def test_what_the_default_assistant_begins_with(browser: Browser, server: Serving) -> None:
    with _signed_in(browser, server, ANN) as ann:
        ann.goto(f"{server.url}/assistants/default")
        expect(ann.get_by_label("Name", exact=True)).to_have_count(0)
        ann.get_by_label("Questions to begin with").fill("Who fixes the scanner?")
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("heading", name="Default assistant")).to_be_visible()
    with _signed_in(browser, server, BOB) as bob:
        expect(bob.get_by_role("button", name="Who fixes the scanner?")).to_be_visible()
        bob.goto(f"{server.url}/assistants/default")
        expect(bob.get_by_role("button", name="Save")).to_have_count(0)
        bob.goto(f"{server.url}/chat?assistant=never-was")
        expect(
            bob.get_by_role("heading", name="This assistant is no longer available")
        ).to_be_visible()
        bob.get_by_role("button", name="Use the default assistant").click()
        expect(bob).to_have_url(f"{server.url}/chat")
        expect(bob.get_by_label("Your question", exact=True)).to_be_enabled()


def test_who_limits_an_assistant_chooses_something(browser: Browser, server: Serving) -> None:
    """No source and no set mean everything: unchecking the last box must not do that."""
    with _signed_in(browser, server, ANN) as ann:
        ann.goto(f"{server.url}/assistants/new")
        ann.get_by_label("Name", exact=True).fill("Office desk")
        ann.get_by_label("Only some sources or document sets").check()
        ann.get_by_role("checkbox", name="office").check()
        ann.get_by_role("button", name="Save").click()
        ann.get_by_role("link", name="Edit Office desk").click()
        ann.get_by_role("checkbox", name="office").uncheck()
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("alert")).to_contain_text("Choose a source or a document set")
        ann.get_by_role("checkbox", name="depot").check()
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("heading", name="Assistants")).to_be_visible()
        ann.get_by_role("link", name="Edit Office desk").click()
        expect(ann.get_by_label("Only some sources or document sets")).to_be_checked()
        expect(ann.get_by_role("checkbox", name="depot")).to_be_checked()
        expect(ann.get_by_role("checkbox", name="office")).not_to_be_checked()


def test_what_another_admin_changed_meanwhile_stays(browser: Browser, server: Serving) -> None:
    with _signed_in(browser, server, ANN) as ann:
        made = _send(ann, "POST", "/api/assistants", {"name": "Shared desk", "model": None})
        one = f"/api/assistants/{made['id']}"
        ann.goto(f"{server.url}/assistants/{made['id']}")
        _send(ann, "PATCH", one, {"instructions": "Of the other.", "temperature": 0.5})
        ann.get_by_label("Description").fill("Of this one.")
        with ann.expect_request(lambda request: request.method == "PATCH") as sent:
            ann.get_by_role("button", name="Save").click()
        assert sent.value.post_data_json == {"description": "Of this one."}
        expect(ann.get_by_role("heading", name="Assistants")).to_be_visible()
        now = _send(ann, "GET", one)
        assert (now["description"], now["instructions"]) == ("Of this one.", "Of the other.")
        # Nothing changed: nothing is sent.
        ann.goto(f"{server.url}/assistants/{made['id']}")
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("heading", name="Assistants")).to_be_visible()
        assert _send(ann, "GET", one)["updated_at"] == now["updated_at"]
        _send(ann, "DELETE", one)


def test_what_was_typed_is_not_lost_without_a_warning(browser: Browser, server: Serving) -> None:
    with _signed_in(browser, server, ANN) as ann:
        made = _send(ann, "POST", "/api/assistants", {"name": "Typed desk"})
        for address in ("new", made["id"]):
            ann.goto(f"{server.url}/assistants/{address}")
            ann.get_by_label("Instructions").press_sequentially("Rhyme.")
            with ann.expect_event("dialog") as asked:
                ann.evaluate("setTimeout(() => location.reload())")
            assert asked.value.type == "beforeunload"
            # Nobody has agreed: the page stays, with what was typed.
            expect(ann.get_by_label("Instructions")).to_have_value("Rhyme.")
            ann.get_by_role("link", name="Cancel").click()
            expect(ann.get_by_role("heading", name="Assistants")).to_be_visible()
        ann.goto(f"{server.url}/assistants/{made['id']}")
        ann.get_by_label("Name", exact=True).fill("   ")
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("alert")).to_have_text("Give the assistant a name.")
        ann.get_by_label("Name", exact=True).fill("Typed desk")
        ann.get_by_label("Questions to begin with").fill("\n".join(map(str, range(12))))
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("alert")).to_have_text("There are at most 8 starters.")
        ann.get_by_role("link", name="Cancel").click()
        _send(ann, "DELETE", f"/api/assistants/{made['id']}")


def test_one_that_is_saved_by_a_double_click_is_made_once(
    browser: Browser, server: Serving
) -> None:
    with _signed_in(browser, server, ANN) as ann:
        ann.goto(f"{server.url}/assistants/new")
        ann.get_by_label("Name", exact=True).fill("Twice")
        ann.get_by_role("button", name="Save").dblclick()
        expect(ann.get_by_role("heading", name="Assistants")).to_be_visible()
        found = _send(ann, "GET", "/api/assistants")["assistants"]
        made = [one["id"] for one in found if one["name"] == "Twice"]
        for one in made:
            _send(ann, "DELETE", f"/api/assistants/{one}")
        assert len(made) == 1


def test_one_that_is_deleted_during_a_conversation_leaves_a_way_on(
    browser: Browser, server: Serving
) -> None:
    with _signed_in(browser, server, ANN) as ann:
        made = _send(ann, "POST", "/api/assistants", {"name": "Brief desk"})
        ann.goto(f"{server.url}/chat?assistant={made['id']}")
        box = ann.get_by_label("Your question", exact=True)
        box.fill(QUESTION)
        box.press("Enter")
        expect(ann.get_by_role("status")).to_have_text(COMPLETE)
        _send(ann, "DELETE", f"/api/assistants/{made['id']}")
        box.fill("And at the office?")
        box.press("Enter")
        gone = ann.get_by_role("heading", name="This assistant is no longer available")
        expect(gone).to_be_visible()
        ann.get_by_role("button", name="Use the default assistant").click()
        expect(gone).to_be_hidden()
        expect(box).to_have_value("And at the office?")
        box.press("Enter")
        expect(ann.locator(".message .answer").last).to_contain_text("9 or 26 weeks")


def test_one_that_may_not_search_the_web_says_so_at_the_switch(
    browser: Browser, server: Serving
) -> None:
    with _signed_in(browser, server, ANN) as ann:
        _send(ann, "PATCH", "/api/admin/web", {"is_on": True})
        ann.goto(f"{server.url}/assistants/new")
        ann.get_by_label("Name", exact=True).fill("Offline desk")
        ann.get_by_role("checkbox", name="It may search the web").uncheck()
        expect(ann.get_by_label("Allowed domains")).to_be_disabled()
        ann.get_by_role("button", name="Save").click()
        ann.get_by_role("link", name="Edit Offline desk").click()
        expect(ann.get_by_role("checkbox", name="It may search the web")).not_to_be_checked()
        made = ann.url.rpartition("/")[2]
        ann.goto(f"{server.url}/chat")
        switch = ann.get_by_role("switch", name="Web")
        switch.click()
        expect(switch).to_be_checked()
        ann.goto(f"{server.url}/chat?assistant={made}")
        expect(switch).to_have_attribute("title", "This assistant does not search the web.")
        expect(switch).not_to_be_checked()
        switch.press("Enter")
        expect(ann.get_by_role("status")).to_have_text("This assistant does not search the web.")
        ann.goto(f"{server.url}/chat")
        expect(switch).to_be_checked()
        _send(ann, "DELETE", f"/api/assistants/{made}")
        _send(ann, "PATCH", "/api/admin/web", {"is_on": False})


def test_one_whose_document_set_is_removed_says_that_it_finds_nothing(
    browser: Browser, server: Serving
) -> None:
    with _signed_in(browser, server, ANN) as ann:
        _send(ann, "POST", "/api/admin/document-sets", {"name": "Policies", "sources": ["office"]})
        made = _send(ann, "POST", "/api/assistants", {"name": "Policy desk", "sets": ["Policies"]})
        ann.goto(f"{server.url}/chat?assistant={made['id']}")
        expect(ann.get_by_role("main")).to_contain_text("Policy desk")
        expect(ann.locator("#assistant-empty")).to_be_hidden()
        _send(ann, "DELETE", "/api/admin/document-sets/Policies")
        ann.reload()
        expect(ann.locator("#assistant-empty")).to_contain_text(
            "It finds none of their documents for you"
        )
        ann.goto(f"{server.url}/assistants/{made['id']}")
        expect(ann.locator("#some")).to_contain_text("The limit stays until you change it.")
        ann.get_by_label("Description").fill("Of what is gone.")
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("heading", name="Assistants")).to_be_visible()
        ann.goto(f"{server.url}/assistants/{made['id']}")
        expect(ann.get_by_label("Only some sources or document sets")).to_be_checked()


def test_a_question_that_is_too_long_is_not_tried(browser: Browser, server: Serving) -> None:
    with _signed_in(browser, server, ANN) as ann:
        ann.goto(f"{server.url}/assistants/new")
        ann.get_by_label("Question", exact=True).fill("x" * 8_001)
        ann.get_by_role("button", name="Ask").click()
        expect(ann.get_by_role("alert")).to_have_text(
            "The question has 8,001 characters. At most 8,000 are allowed."
        )
        expect(ann.get_by_label("Question", exact=True)).to_have_value("x" * 8_001)


def test_an_answer_says_beside_it_that_the_model_of_its_assistant_was_removed(
    browser: Browser, server: Serving, model: ScriptedModel
) -> None:
    with _signed_in(browser, server, ANN) as ann:
        other = {"name": "other", "base_url": model.base_url, "model": "scripted-other"}
        _send(ann, "POST", "/api/admin/models", other)
        made = _send(ann, "POST", "/api/assistants", {"name": "Other desk", "model": "other"})
        _send(ann, "DELETE", "/api/admin/models/other")
        ann.goto(f"{server.url}/assistants/{made['id']}")
        expect(ann.get_by_label("Language model")).to_have_value("other")
        expect(ann.locator("#model-removed")).to_contain_text("other is no longer available.")
        ann.get_by_label("Description").fill("As before.")
        ann.get_by_role("button", name="Save").click()
        expect(ann.get_by_role("heading", name="Assistants")).to_be_visible()
        ann.goto(f"{server.url}/chat?assistant={made['id']}")
        ann.get_by_role("textbox", name="Your question").fill(QUESTION)
        ann.keyboard.press("Enter")
        expect(ann.get_by_role("status")).to_have_text(COMPLETE)
        said = "The language model “other” is no longer available. “scripted” answers instead."
        expect(ann.locator(".aside")).to_contain_text(said)
        ann.reload()
        expect(ann.locator(".aside")).to_contain_text(said)
