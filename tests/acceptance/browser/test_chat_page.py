"""Conversations in a browser: asked on, edited, walked through, left and found again."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.support.accounts import PASSWORD
from tests.support.browser import Opens
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

QUESTION = "What should a customer do when the scanner shows QX-4031?"
ANSWER = "QX-4031 means that the **interlock of the laser** is open [{n}]. Close the cover until it clicks [{n}]."
CODE = (
    'def reset(port):\n    """Send it to sleep."""\n    return open(port, 9600)  # bits a second\n'
)
SLOWLY = "Slowly, one word after the other. "
COMPLETE = re.compile(r"The answer is complete\.")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}

Script: TypeAlias = Callable[[Request], Reply]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def server(home: Home, model: ScriptedModel) -> Iterator[Serving]:
    with serving(home, QUARRY_LLM_URL=model.base_url, QUARRY_LLM_MODEL="scripted") as running:
        yield running


@pytest.fixture
def address(server: Serving) -> str:
    """Of a server that holds no conversation."""
    for one in server.client.get("/api/conversations").json()["conversations"]:
        server.client.delete(f"/api/conversations/{one['id']}")
    return server.url


def _answering(text: str = ANSWER, manner: Manner | None = None) -> Script:
    """A model that searches, then says `text` of the document on scanners' codes."""

    def script(request: Request) -> Reply:
        if request.has_sources:
            numbers = [r["number"] for r in request.sources if "scanners" in r["title"].lower()]
            return Say(text.format(n=numbers[0]), manner=manner or Manner())
        if request.tool_names:
            return Call(ToolUse("internal_search", {"queries": ["QX-4031 interlock"]}))
        return Say("QX-4031 laser interlock open")

    return script


def _echoing(request: Request) -> Reply:
    """A model that says which questions it was given."""
    return Say("You asked: " + " | ".join(request.questions))


def _held(until: threading.Event, text: str = ANSWER) -> Script:
    """A model that answers only after `until` is set."""

    def script(request: Request) -> Reply:
        if request.has_sources:
            until.wait(30)
        return _answering(text)(request)

    return script


def _ask(page: Page, question: str) -> None:
    box = page.get_by_label("Your question", exact=True)
    box.fill(question)
    box.press("Enter")


def _answers(page: Page) -> Locator:
    return page.locator(".message.answering .answer")


def _questions(page: Page) -> Locator:
    return page.locator(".message.asked .bubble")


def _titles(page: Page) -> Locator:
    return (
        page.get_by_role("navigation", name="Conversations").get_by_role("list").get_by_role("link")
    )


def _is_complete(page: Page) -> None:
    expect(page.get_by_role("status")).to_have_text(COMPLETE)


def _begin(page: Page, question: str) -> None:
    """Ask in a new conversation, to the end of the answer."""
    page.get_by_role("link", name="New conversation").click()
    _ask(page, question)
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(re.escape(question[:20])))
    _is_complete(page)


def _options(page: Page, title: str, action: str) -> None:
    page.get_by_role("button", name=f"Options of {title}").click()
    page.get_by_role("menuitem", name=action).click()


def test_asked_and_asked_on(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_answering())
    with opens(address) as watched:
        page = watched.open("/chat")
        expect(page.get_by_label("Your question", exact=True)).to_be_focused()
        page.screenshot(path=pictures / "chat-empty-light.png")
        _ask(page, QUESTION)
        expect(page).to_have_url(re.compile(r"/chat/[\w-]{16,}$"))
        expect(page).to_have_title(re.compile("^What should a customer"))
        expect(_answers(page).locator("strong")).to_have_text("interlock of the laser")
        _is_complete(page)
        expect(_titles(page)).to_have_count(1)
        expect(_titles(page).first).to_have_attribute("aria-current", "page")
        _answers(page).locator(".cite").first.hover()
        expect(page.get_by_role("tooltip")).to_contain_text("Supported by this source.")
        where = page.get_by_role("tooltip").locator(".dim").text_content()
        assert where is not None
        page.screenshot(path=pictures / "chat-card.png")

        model.play(_echoing)
        _ask(page, "And where is the switch?")
        expect(_answers(page)).to_have_count(2)
        expect(_answers(page).last).to_contain_text("And where is the switch?")
        expect(_answers(page).last).to_contain_text(QUESTION)
        assert any(
            "interlock of the laser" in str(m["content"]) for m in model.requests[-1].messages
        )
        _is_complete(page)
        page.reload()
        expect(_questions(page)).to_have_text([QUESTION, "And where is the switch?"])
        expect(_answers(page).first.locator("strong")).to_have_text("interlock of the laser")
        _answers(page).locator(".cite").first.hover()
        expect(page.get_by_role("tooltip")).to_contain_text("QX-4031 means that the interlock")
        # Its source and its day are kept with the answer.
        expect(page.get_by_role("tooltip").locator(".dim")).to_have_text(where)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_is_colored_and_copied_and_a_table_is_one(
    scheme: str, opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(
        lambda _: Say(f"```python\n{CODE}```\n\n| Part | Price |\n|---|---|\n| Lens | 40 |\n")
    )
    permissions = ["clipboard-read", "clipboard-write"]
    with opens(address, color_scheme=scheme, permissions=permissions) as watched:
        page = watched.open("/chat")
        _ask(page, "How do I reset it?")
        _is_complete(page)
        answer = _answers(page)
        expect(answer.locator("pre .code-keyword").first).to_have_text("def")
        expect(answer.locator("pre code")).to_have_text(CODE)
        expect(answer.get_by_role("cell", name="Lens")).to_be_visible()
        button = answer.get_by_role("button", name="Copy code")
        page.screenshot(path=pictures / f"chat-code-{scheme}.png")
        assert Axe().run(page).response["violations"] == []
        button.press("Enter")
        expect(answer.get_by_role("button", name="Copied.")).to_be_focused()
        assert page.evaluate("navigator.clipboard.readText()") == CODE
        page.reload()
        expect(answer.get_by_role("button", name="Copy code")).to_be_visible()


def test_the_next_question_waits_for_no_slow_server(
    opens: Opens, address: str, model: ScriptedModel
) -> None:
    """When an answer is complete, the page reads the conversation once more, which here takes until the next answer stands."""
    model.play(_echoing)
    readings = list[Route]()
    with opens(address) as watched:
        page = watched.open("/chat")
        page.route(re.compile(r"/api/conversations/[^/?]+$"), lambda one: readings.append(one))  # noqa: PLW0108 (Playwright marks it)
        _begin(page, "First question")
        _ask(page, "Second question")
        expect(_answers(page).last).to_contain_text("Second question")
        assert readings
        for one in readings:
            one.continue_()
        page.unroute_all()
        _is_complete(page)
        expect(_questions(page)).to_have_text(["First question", "Second question"])


def test_an_edited_question_is_a_branch(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_echoing)
    with opens(address) as watched:
        page = watched.open("/chat")
        _begin(page, "First question")
        _ask(page, "Second question")
        expect(_answers(page).last).to_contain_text("Second question")
        _is_complete(page)
        page.get_by_role("button", name="Edit").first.click()
        box = page.get_by_label("Edit your question").first
        expect(box).to_be_focused()
        box.press("Escape")
        expect(box).to_be_hidden()
        expect(page.get_by_role("button", name="Edit").first).to_be_focused()
        page.keyboard.press("Enter")
        box.fill("Another first question")
        page.screenshot(path=pictures / "chat-editing.png")
        # However often it is sent, it is one version.
        box.evaluate(
            """(box) => {
              for (const _ of "ab") box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
            }"""
        )
        expect(_questions(page)).to_have_text(["Another first question"])
        expect(_answers(page)).to_have_text(["You asked: Another first question"])
        _is_complete(page)
        versions = page.get_by_role("group", name="Versions")
        expect(versions).to_contain_text("2/2")
        page.get_by_role("button", name="Previous version").click()
        expect(_questions(page)).to_have_text(["First question", "Second question"])
        expect(versions).to_contain_text("1/2")
        expect(page.get_by_role("button", name="Next version")).to_be_focused()
        page.screenshot(path=pictures / "chat-branches.png")
        page.reload()
        expect(_questions(page)).to_have_text(["First question", "Second question"])
        page.get_by_role("button", name="Next version").click()
        expect(_questions(page)).to_have_text(["Another first question"])


def test_regenerated_and_both_kept(opens: Opens, address: str, model: ScriptedModel) -> None:
    model.play(lambda _: Say("One."))
    with opens(address) as watched:
        page = watched.open("/chat")
        _begin(page, "What is it?")
        model.play(lambda _: Say("Two."))
        page.get_by_role("button", name="Regenerate").click()
        expect(_answers(page)).to_have_text(["Two."])
        _is_complete(page)
        expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
        page.get_by_role("button", name="Previous version").click()
        expect(_answers(page)).to_have_text(["One."])


def test_reloaded_in_mid_answer(opens: Opens, address: str, model: ScriptedModel) -> None:
    """What was written before is there, and what is written after comes."""
    model.play(_answering(SLOWLY * 40 + ANSWER, Manner(delay=0.02)))
    with opens(address) as watched:
        page = watched.open("/chat")
        _ask(page, QUESTION)
        expect(_answers(page)).to_contain_text("Slowly, one word")
        page.reload()
        expect(page.get_by_role("list", name="Steps")).to_contain_text("Searched:")
        expect(_answers(page)).to_contain_text("Slowly, one word")
        expect(_answers(page).locator(".cite").first).to_be_visible()
        _is_complete(page)
        text = _answers(page).inner_text()
        assert text.count(SLOWLY.strip()) == 40
        assert text.count("Close the cover until it clicks") == 1


def test_a_lost_connection_goes_on_by_itself(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    looked = threading.Event()
    model.play(_held(looked))
    with opens(address) as watched:
        page = watched.open("/chat")
        lost = threading.Event()
        page.route("**/events", lambda route: route.abort() if lost.is_set() else route.continue_())
        lost.set()
        _ask(page, QUESTION)
        expect(page.get_by_role("status")).to_have_text("Reconnecting…")
        page.screenshot(path=pictures / "chat-reconnecting.png")
        lost.clear()
        expect(page.get_by_role("list", name="Steps")).to_contain_text("Searched:")
        expect(page.get_by_role("status")).not_to_have_text("Reconnecting…")
        looked.set()
        expect(_answers(page).locator("strong")).to_have_text("interlock of the laser")
        _is_complete(page)
        watched.wrong[:] = [line for line in watched.wrong if "ERR_FAILED" not in line]


_SET_HIDDEN = """(is) => {
  Object.defineProperty(document, "hidden", { get: () => is, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_hidden_tab_lets_its_answer_go_and_takes_it_up_again(
    opens: Opens, address: str, model: ScriptedModel
) -> None:
    model.play(_answering(SLOWLY * 40 + ANSWER, Manner(delay=0.02)))
    with opens(address) as watched:
        page = watched.open("/chat")
        said = page.get_by_role("status")
        _ask(page, QUESTION)
        expect(said).to_have_text("Searching")
        expect(_answers(page)).to_contain_text("Slowly, one word")
        expect(said).to_have_text("Writing")
        with page.expect_event("requestfailed", lambda one: one.url.endswith("/events")):
            page.evaluate(_SET_HIDDEN, arg=True)
        page.wait_for_timeout(2_500)  # a lost connection is spoken of after two seconds
        expect(said).to_have_text("Writing")
        with page.expect_request("**/events") as again:
            page.evaluate(_SET_HIDDEN, arg=False)
        assert int(again.value.headers["last-event-id"]) > 0
        _is_complete(page)
        text = _answers(page).inner_text()
        assert text.count(SLOWLY.strip()) == 40
        assert text.count("Close the cover until it clicks") == 1


def test_hidden_tabs_leave_a_connection_to_the_one_that_is_seen(
    opens: Opens, address: str, model: ScriptedModel
) -> None:
    """Over HTTP/1.1 Chromium has six to a server, for all tabs together."""
    looked = threading.Event()
    model.play(_held(looked))
    with opens(address) as watched:
        page = watched.open("/chat")
        _ask(page, QUESTION)
        expect(page).to_have_url(re.compile(r"/chat/[\w-]{16,}$"))
        others = [page.context.new_page() for _ in range(5)]
        for other in others:
            other.goto(page.url)
            expect(other.get_by_role("list", name="Steps")).to_contain_text("Searched:")
        for other in others:
            other.evaluate(_SET_HIDDEN, arg=True)
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".ended")).to_contain_text("stopped")
        expect(page.get_by_role("status")).to_have_text("Stopped")
        expect(others[0].locator(".ended")).to_be_hidden()
        others[0].evaluate(_SET_HIDDEN, arg=False)
        expect(others[0].locator(".ended")).to_contain_text("stopped")
        looked.set()


def test_stop_stops_also_what_is_not_shown(
    opens: Opens, address: str, model: ScriptedModel
) -> None:
    looked = threading.Event()
    model.play(_held(looked))
    with opens(address) as watched:
        page = watched.open("/chat")
        _ask(page, QUESTION)
        expect(page.get_by_role("list", name="Steps")).to_contain_text("Searched:")
        page.get_by_role("button", name="Edit").click()
        page.get_by_label("Edit your question").fill("What does QX-4031 mean?")
        page.get_by_label("Edit your question").press("Enter")
        expect(page.get_by_role("list", name="Steps")).to_contain_text("Searched:")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("status")).to_have_text("Stopped")
        page.get_by_role("button", name="Previous version").click()
        expect(_questions(page)).to_have_text(QUESTION)
        expect(page.locator(".ended")).to_contain_text("stopped")
        looked.set()


def test_a_server_that_cannot_be_reached_is_said(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open("/chat")
        page.route("**/api/conversations", lambda route: route.abort())
        _ask(page, QUESTION)
        expect(page.get_by_role("status")).to_have_text(
            "The connection to Quarry was lost."
            " Check your network, then try again. If that does not help, tell whoever runs Quarry."
        )
        watched.wrong[:] = [line for line in watched.wrong if "ERR_FAILED" not in line]


def test_stopped_and_what_was_written_is_kept(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_answering("The interlock is open [{n}]. " + SLOWLY * 200, Manner(delay=0.05)))
    with opens(address, permissions=["clipboard-read", "clipboard-write"]) as watched:
        page = watched.open("/chat")
        _ask(page, QUESTION)
        expect(_answers(page)).to_contain_text("Slowly, one word")
        model.hung_up.clear()
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".ended")).to_contain_text("stopped")
        assert model.hung_up.wait(5)
        kept = _answers(page).inner_text()
        assert kept.startswith("The interlock is open")
        page.screenshot(path=pictures / "chat-stopped.png")
        page.reload()
        expect(_answers(page)).to_have_text(kept)
        _shows_its_source(page)
        model.play(_answering())
        page.get_by_role("button", name="Ask again").click()
        expect(_answers(page).locator("strong")).to_have_text("interlock of the laser")


def _shows_its_source(page: Page) -> None:
    """An answer that was stopped has its chip, the card with its passage, the document, and the source where it is copied."""
    title = "Error codes of the Stonesight scanners"
    expect(page.get_by_role("heading", name="References")).to_be_visible()
    page.get_by_role("button", name="Copy with sources").click()
    expect(page.get_by_role("button", name="Copied with sources")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    address = page.evaluate("location.origin")
    listed = rf"open \[\d+\]\. Slowly.*\n\[\d+\] {title}.*QX-4031 means that.*\n    {address}/document/\S+\n"
    assert re.search(listed, copied, re.DOTALL)
    chip = _answers(page).locator(".cite")
    chip.hover()
    expect(page.get_by_role("tooltip")).to_contain_text(title)
    expect(page.get_by_role("tooltip")).to_contain_text("QX-4031 means that")
    expect(page.get_by_role("tooltip").locator(".dim")).to_contain_text("handbook")
    chip.click()
    pane = page.get_by_role("region", name="Document")
    expect(pane).to_contain_text(title)
    page.keyboard.press("Escape")
    expect(pane).to_be_hidden()
    # The chip has the focus again, which shows its card as the pointer does.
    page.mouse.move(0, 0)
    chip.blur()
    expect(page.get_by_role("tooltip")).to_be_hidden()


def test_found_renamed_archived_and_deleted(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(lambda _: Say("It says much."))
    with opens(address) as watched:
        page = watched.open("/chat")
        for question in ("How long is leave?", "Where do bikes go?", "Who pays for trains?"):
            _begin(page, question)
        expect(_titles(page)).to_have_count(3)
        expect(page.get_by_role("heading", name="Today")).to_be_visible()

        page.get_by_label("Search your conversations").fill("bikes")
        expect(_titles(page)).to_have_text(["Where do bikes go?"])
        page.get_by_label("Search your conversations").fill("zebra")
        expect(page.get_by_text("Nothing found.")).to_be_visible()
        page.keyboard.press("Escape")
        expect(_titles(page)).to_have_count(3)

        _options(page, "Where do bikes go?", "Rename")
        title = page.get_by_label("Title of the conversation")
        expect(title).to_be_focused()
        title.fill("Bikes")
        title.press("Enter")
        expect(page.get_by_role("status")).to_have_text("Renamed.")
        expect(page.get_by_role("link", name="Bikes", exact=True)).to_be_visible()

        _options(page, "Bikes", "Rename")
        title.fill("  ")
        title.press("Enter")
        expect(page.get_by_role("status")).to_have_text(
            "A title has at least one visible character. It was not renamed."
        )
        expect(page.get_by_role("link", name="Bikes", exact=True)).to_be_visible()

        _options(page, "Bikes", "Archive")
        expect(_titles(page)).to_have_count(2)
        page.get_by_role("button", name="Archived").click()
        expect(_titles(page)).to_have_text(["Bikes"])
        page.screenshot(path=pictures / "chat-archived.png")
        page.get_by_role("button", name="Archived").click()
        page.get_by_label("Search your conversations").fill("bikes")
        expect(page.get_by_text("There are archived conversations that match.")).to_be_visible()
        # A list that is read again, as after a change in another tab, leaves the focus.
        page.get_by_role("button", name="Show them").focus()
        with page.expect_response("**/api/conversations?**"):
            page.evaluate("new BroadcastChannel('quarry conversations').postMessage('other')")
        expect(page.get_by_role("button", name="Show them")).to_be_focused()
        page.get_by_role("button", name="Show them").click()
        expect(_titles(page)).to_have_text(["Bikes"])
        expect(page.get_by_role("link", name="Bikes", exact=True)).to_be_focused()
        expect(page.get_by_role("button", name="Show them")).to_have_count(0)
        page.get_by_label("Search your conversations").fill("")
        _options(page, "Bikes", "Unarchive")
        expect(page.get_by_text("Nothing is archived.")).to_be_visible()
        page.get_by_role("button", name="Archived").click()
        expect(_titles(page)).to_have_count(3)

        _options(page, "Who pays for trains?", "Delete")
        page.screenshot(path=pictures / "chat-deleting.png")
        page.get_by_role("button", name="Keep it").click()
        expect(_titles(page)).to_have_count(3)
        _options(page, "Who pays for trains?", "Delete")
        gone = page.url
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(_titles(page)).to_have_count(2)
        expect(page).to_have_url(f"{address}/chat")  # it was the one that was open
        page.goto(gone)
        expect(page.get_by_role("alert")).to_contain_text("There is no such conversation")
        watched.wrong[:] = [line for line in watched.wrong if "of 404" not in line]


def test_drafts_survive_a_reload(opens: Opens, address: str, model: ScriptedModel) -> None:
    model.play(lambda _: Say("It says much."))
    with opens(address) as watched:
        page = watched.open("/chat")
        box = page.get_by_label("Your question", exact=True)
        _begin(page, "How long is leave?")
        box.fill("And for parents")
        page.get_by_role("link", name="New conversation").click()
        expect(box).to_have_value("")
        box.fill("Something new")
        page.reload()
        expect(box).to_have_value("Something new")
        _titles(page).first.click()
        expect(box).to_have_value("And for parents")
        box.press("Enter")
        _is_complete(page)
        page.reload()
        expect(_answers(page)).to_have_count(2)
        expect(box).to_have_value("")


def test_an_edit_survives_a_reload_until_it_is_left_or_sent(
    opens: Opens, address: str, model: ScriptedModel
) -> None:
    model.play(_echoing)
    with opens(address) as watched:
        page = watched.open("/chat")
        editing = page.get_by_label("Edit your question")
        _begin(page, "First question")
        page.get_by_role("button", name="Edit").click()
        editing.fill("First question in other words")
        page.get_by_role("link", name="New conversation").click()
        expect(editing).to_have_count(0)
        page.go_back()
        expect(editing).to_have_value("First question in other words")
        page.reload()
        expect(editing).to_have_value("First question in other words")
        editing.press("Escape")
        expect(_questions(page)).to_have_text("First question")
        page.reload()
        expect(_questions(page)).to_have_text("First question")
        expect(editing).to_have_count(0)

        page.get_by_role("button", name="Edit").click()
        expect(editing).to_have_value("First question")
        editing.fill("Another question")
        editing.press("Enter")
        _is_complete(page)
        page.get_by_role("button", name="Previous version").click()
        expect(_questions(page)).to_have_text("First question")
        expect(editing).to_have_count(0)


def test_two_tabs_show_the_same(opens: Opens, address: str, model: ScriptedModel) -> None:
    looked = threading.Event()
    model.play(_echoing)
    with opens(address) as watched:
        page = watched.open("/chat")
        _begin(page, "First question")
        other = page.context.new_page()
        other.goto(page.url)
        expect(_answers(other)).to_have_text(["You asked: First question"])
        model.play(_held(looked))
        _ask(page, QUESTION)
        expect(_questions(other)).to_have_text(["First question", QUESTION])
        expect(other.get_by_role("button", name="Stop")).to_be_visible()
        looked.set()
        for tab in (page, other):
            expect(_answers(tab).last.locator("strong")).to_have_text("interlock of the laser")
        _is_complete(other)


def test_an_open_menu_outlasts_a_new_list(opens: Opens, address: str, model: ScriptedModel) -> None:
    """The list is read again every five seconds while an answer is being written."""
    looked = threading.Event()
    model.play(_held(looked))
    with opens(address) as watched:
        page = watched.open("/chat")
        _ask(page, QUESTION)
        more = _titles(page).locator("xpath=..").get_by_role("button")
        with page.expect_response("**/api/conversations?*"):
            more.click()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        page.get_by_role("menuitem", name="Rename").click()
        title = page.get_by_label("Title of the conversation")
        with page.expect_response("**/api/conversations?*"):
            title.fill("Scanner")
        title.press("Enter")
        expect(_titles(page)).to_contain_text(["Scanner"])
        looked.set()
        _is_complete(page)


def test_by_the_keyboard_alone(opens: Opens, address: str, model: ScriptedModel) -> None:
    model.play(_echoing)
    with opens(address) as watched:
        page = watched.open("/chat")
        box = page.get_by_label("Your question", exact=True)
        expect(box).to_be_focused()
        page.keyboard.type("First question")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("on two lines")
        page.keyboard.press("Enter")
        expect(_questions(page)).to_have_text(["First question\non two lines"])
        _is_complete(page)
        page.keyboard.press("Alt+n")
        expect(page).to_have_url(f"{address}/chat")
        expect(box).to_be_focused()
        page.keyboard.type("Second question")
        page.keyboard.press("Enter")
        _is_complete(page)
        page.keyboard.press("Alt+l")
        expect(page.get_by_label("Search your conversations")).to_be_focused()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(_titles(page).nth(1)).to_be_focused()
        page.keyboard.press("Enter")
        expect(_questions(page)).to_have_text(["First question\non two lines"])
        page.keyboard.press("F2")
        page.keyboard.type("Renamed")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="Renamed")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(page.get_by_role("menuitem", name="Delete")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Options of Renamed")).to_be_focused()
        page.keyboard.press("/")
        expect(box).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(page.get_by_label("Edit your question")).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard")).to_contain_text("New conversation")


@pytest.mark.parametrize(
    ("look", "options"),
    [("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", PHONE)],
    ids=["light", "dark", "phone"],
)
def test_nothing_that_axe_objects_to(
    opens: Opens,
    address: str,
    model: ScriptedModel,
    pictures: Path,
    look: str,
    options: dict[str, object],
) -> None:
    model.play(_answering())
    with opens(address, **options) as watched:
        page = watched.open("/chat")
        assert Axe().run(page).response["violations"] == []
        _ask(page, QUESTION)
        _is_complete(page)
        model.play(_echoing)
        page.get_by_role("button", name="Regenerate").click()
        _is_complete(page)
        page.screenshot(path=pictures / f"chat-{look}.png")
        assert Axe().run(page).response["violations"] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_on_a_phone_the_list_is_a_drawer(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_echoing)
    with opens(address, **PHONE) as watched:
        page = watched.open("/chat")
        for question in ("First question", "Second question"):
            page.goto(f"{address}/chat")
            _ask(page, question)
            _is_complete(page)
        drawer = page.get_by_role("navigation", name="Conversations")
        opener = page.get_by_role("button", name="Conversations", exact=True)
        expect(drawer).to_be_hidden()
        opener.tap()
        expect(_titles(page)).to_have_count(2)
        expect(page.get_by_role("button", name="Close the list")).to_be_focused()
        page.wait_for_timeout(400)  # of the transition
        page.screenshot(path=pictures / "chat-drawer.png")
        # The heading of the page is behind the drawer.
        rules = {"rules": {"page-has-heading-one": {"enabled": False}}}
        assert Axe().run(page, options=rules).response["violations"] == []
        page.keyboard.press("Escape")
        expect(drawer).to_be_hidden()
        expect(opener).to_be_focused()
        opener.tap()
        page.get_by_role("link", name="First question").tap()
        expect(drawer).to_be_hidden()
        expect(_questions(page)).to_have_text(["First question"])


def test_conversations_are_grouped_by_the_days_of_the_reader(opens: Opens, address: str) -> None:
    """Also where a day has 25 hours, as on 25 October 2026 in Berlin."""
    moments = {
        "2026-10-26T22:30:00Z": "Today",
        "2026-10-25T23:30:00Z": "Today",
        "2026-10-25T22:30:00Z": "Yesterday",
        "2026-10-24T22:30:00Z": "Yesterday",
        "2026-10-24T21:30:00Z": "Previous 7 days",
        "2026-10-18T22:30:00Z": "Previous 7 days",
        "2026-10-18T21:30:00Z": "Older",
    }
    with opens(address, timezone_id="Europe/Berlin") as watched:
        page = watched.open("/chat")
        groups = page.evaluate(
            """async (moments) => {
              const script = document.querySelector('script[src$="/chat.js"]').src;
              const { groupByDay } = await import(script.replace("chat.js", "local_days.js"));
              return groupByDay(moments, (moment) => moment, new Date("2026-10-26T22:45:00Z"));
            }""",
            list(moments),
        )
    assert {moment: name for name, found in groups for moment in found} == moments


def test_quotes_of_tables_and_addresses_of_sources_are_for_people(
    opens: Opens, address: str
) -> None:
    quoted, wiki = "Product · Warranty Lens · 2 years", "https://wiki.example/bikes"
    with opens(address) as watched:
        page = watched.open("/chat")
        card, copied = page.evaluate(
            """async () => {
              const script = document.querySelector('script[src$="/chat.js"]').src;
              const load = (name) => import(script.replace("chat.js", name));
              const { watchCards } = await load("cards.js");
              const { asText } = await load("copying.js");
              const quote = "| Product | Warranty |\\n|---|---|\\n| Lens | 2 years |";
              const [root, card] = [document.createElement("p"), document.createElement("p")];
              root.innerHTML = '<a class="cite">1</a>';
              watchCards(root, card, () => ({ title: "Lenses", quote }));
              root.firstChild.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
              const cited = (number, rest) => ({ number, title: "A", link: "", section: 1, span: [2, 5], ...rest });
              const citations = [
                cited(1, { document_id: "a b", link: "file:///srv/a.md", quote }),
                cited(2, { document_id: "b", link: "https://wiki.example/bikes", quote: "a | b" }),
                cited(3, { document_id: "memory/1", kind: "memory" }),
              ];
              const text = asText({ text: "So [1].", answer: null, citations, question: "" });
              return [card.querySelector(".quote").textContent, text];
            }"""
        )
    assert card == quoted
    assert copied.partition("References\n\n")[2] == (
        f"[1] A\n    “{quoted}”\n    {address}/document/a%20b\n"
        f"[2] A\n    “a | b”\n    {wiki}\n[3] A\n    {address}/memories\n"
    )


def test_without_javascript_it_says_what_works(opens: Opens, address: str) -> None:
    with opens(address, java_script_enabled=False) as watched:
        page = watched.open("/chat")
        assert "Conversations need JavaScript." in page.content()
        expect(page.get_by_label("Your question", exact=True)).to_be_hidden()
        page.locator("noscript a").click()
        expect(page).to_have_url(f"{address}/")


BOB = "bob@example.com"


def _may_read(folder: Path, reader: str) -> None:
    rules = f'rules:\n  - match: "**"\n    readers: ["{reader}"]\n'
    (folder / "access.yaml").write_text(rules, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents that everybody may read, until a test says otherwise."""
    made = tmp_path / "docs"
    made.mkdir()
    _may_read(made, "public")
    text = "# Error codes of the scanners\n\nQX-4031 means that the interlock of the laser is open."
    (made / "scanners.md").write_text(text, encoding="utf-8")
    return made


def test_an_answer_is_withheld_once_its_sources_may_not_be_read(
    browser: Browser, model: ScriptedModel, tmp_path: Path, folder: Path, pictures: Path
) -> None:
    own = Home(tmp_path / "home")
    own.path.mkdir()
    own.quarry("add", "folder", str(folder), "--name", "docs")
    assert own.quarry("sync").code == 0
    model.play(_answering())
    settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
    with serving(own, **settings) as server, browser.new_context() as context:
        port = server.url.rpartition(":")[2]
        for email, role in (("ann@example.com", "admin"), (BOB, "member")):
            invited = own.quarry("users", "invite", email, "--role", role, "--port", port)
            code = invited.out.strip().partition("=")[2]
            form = {"code": code, "name": email, "password": PASSWORD}
            assert server.client.post("/invitation", data=form).status_code == 303
        page = context.new_page()
        page.goto(f"{server.url}/chat")
        page.get_by_label("E-mail address").fill(BOB)
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_label("Your question", exact=True)).to_be_focused()
        _ask(page, QUESTION)
        expect(_answers(page)).to_contain_text("interlock of the laser")
        _is_complete(page)

        _may_read(folder, "user:ann@example.com")
        assert own.quarry("sync").code == 0
        page.reload()
        expect(_questions(page)).to_have_text([QUESTION])
        expect(
            page.get_by_text(
                "This answer rests on sources that were deleted, or that you may not read."
            )
        ).to_be_visible()
        page.screenshot(path=pictures / "chat-withheld.png")
        expect(page.get_by_role("button", name="Ask again")).to_be_visible()
        expect(page.get_by_role("button", name="Regenerate")).to_be_hidden()
        expect(page.get_by_role("group", name="Feedback")).to_be_hidden()
        assert "interlock" not in page.content()
        assert "scanners.md" not in page.content()

        model.play(_echoing)
        _ask(page, "And now?")
        expect(_answers(page).last).to_contain_text("And now?")
        assert all("interlock of the laser" not in request.text for request in model.requests[-1:])

        page.get_by_label("Your question", exact=True).fill("My salary, and")
        page.evaluate("localStorage.setItem('draft somebody else', '{}')")
        assert _drafts(page) != {"draft somebody else": "{}"}
        other = context.new_page()
        other.goto(f"{server.url}/account")
        other.get_by_role("main").get_by_role("button", name="Sign out", exact=True).click()
        expect(other.get_by_label("E-mail address")).to_be_visible()
        # The tab that still shows what was typed stores none of it any more.
        page.get_by_label("Your question", exact=True).press_sequentially(" pension")
        assert _drafts(page) == {"draft somebody else": "{}"}
        page.get_by_role("link", name="New conversation").click()
        assert _drafts(other) == {"draft somebody else": "{}"}


def _drafts(page: Page) -> object:
    return page.evaluate(
        "Object.fromEntries(Object.entries(localStorage).filter(([key]) => key.startsWith('draft ')))"
    )
