"""Long conversations and long questions in a browser: what they must not carry, and what is not lost of them."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import CDPSession, Locator, Page, expect

from backend.schemas.question import LONGEST_QUESTION
from backend.store.database import open_database, sqlite_url
from tests.support.browser import Opens
from tests.support.conversations import ask, begin, finish
from tests.support.home import Home
from tests.support.scripted_model import Say, ScriptedModel
from tests.support.serving import Serving, serving

PAIRS = 130
ANSWER = {
    "question": "How long is leave?",
    "answer": "26 weeks.",
    "model": "scripted",
    "citations": [],
    "seconds": 1.0,
    "answered": True,
}
COMPLETE = re.compile(r"The answer is complete\.")
LONG = "a😀" * (LONGEST_QUESTION // 2)
"""As long as a question may be, and longer by the count of a browser's text fields."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("long"))


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Serving]:
    settings = {"QUARRY_LLM_MODEL": "scripted"}
    with (
        ScriptedModel(lambda _: Say("So it is.")) as model,
        serving(home, QUARRY_LLM_URL=model.base_url, **settings) as running,
    ):
        yield running


def _store_long_conversation(home: Path) -> str:
    """Return the id of a conversation of many messages."""
    with closing(open_database(sqlite_url(home / "state" / "quarry.db"))) as database:
        begun = begin(database, "Question 0")
        conversation = begun.question.conversation_id
        for number in range(1, PAIRS):
            finish(database, begun.answer.id, answer=ANSWER)
            begun = ask(database, conversation, begun.answer.id, f"Question {number}")
        finish(database, begun.answer.id, answer=ANSWER)
    return conversation


def _box(page: Page) -> Locator:
    return page.get_by_label("Your question", exact=True)


def _ask(page: Page, question: str) -> None:
    _box(page).fill(question)
    _box(page).press("Enter")
    expect(page.locator(".message.answering .answer").last).to_have_text("So it is.")
    expect(page.get_by_role("status")).to_have_text(COMPLETE)


def _stands_above_box(page: Page, button: Locator) -> None:
    at, box = button.bounding_box(), page.locator(".composer").bounding_box()
    assert at
    assert box
    assert at["y"] >= 0
    assert at["y"] + at["height"] <= box["y"]


def _lay_out_by_typing(page: Page) -> float:
    """Return the seconds for which a typed line lays out the page: the least of three."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    return min(_type_line(page, session) for _ in range(3))


def _type_line(page: Page, session: CDPSession) -> float:
    def measure() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in found if one["name"] == "LayoutDuration"))

    _box(page).fill("")
    _box(page).focus()
    before = measure()
    page.keyboard.type("How long is leave?")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    spent = measure() - before
    _box(page).fill("")
    return spent


def test_closed_forms_are_not_in_the_page(opens: Opens, home: Home, server: Serving) -> None:
    """Chromium looks through all forms of a page whenever one comes or goes: with thousands that takes seconds."""
    conversation = _store_long_conversation(home.path)
    with opens(server.url) as watched:
        page = watched.open(f"/chat/{conversation}")
        messages, forms = page.locator(".message"), page.locator("#thread form")
        expect(messages.last).to_be_visible()
        while page.locator("#earlier").is_visible():
            before = messages.count()
            page.locator("#earlier").click()
            expect(messages).not_to_have_count(before)
        expect(messages).to_have_count(2 * PAIRS)
        expect(page.locator("#thread").locator("form, textarea, select, input")).to_have_count(0)

        as_it_is = _lay_out_by_typing(page)
        page.evaluate("document.getElementById('thread').style.contain = 'none'")
        assert as_it_is < 0.7 * _lay_out_by_typing(page)
        page.evaluate("document.getElementById('thread').style.contain = ''")

        last = messages.nth(2 * PAIRS - 2)
        last.get_by_role("button", name="Edit").press("Enter")
        box = page.get_by_label("Edit your question")
        expect(box).to_be_focused()
        expect(box).to_have_value(f"Question {PAIRS - 1}")
        _stands_above_box(page, last.get_by_role("button", name="Cancel"))
        expect(last.locator(".bubble")).to_be_hidden()
        expect(forms).to_have_count(1)
        last.get_by_role("button", name="Cancel").click()
        expect(forms).to_have_count(0)
        expect(last.get_by_role("button", name="Edit")).to_be_focused()

        bad = messages.last.get_by_role("button", name="Bad")
        good = messages.last.get_by_role("button", name="Good")
        bad.press("Enter")
        expect(page.get_by_role("textbox", name="Why?")).to_be_focused()
        _stands_above_box(page, page.get_by_role("button", name="Send"))
        expect(bad).to_have_attribute("aria-expanded", "true")
        expect(forms).to_have_count(1)
        page.get_by_role("textbox", name="Why?").fill("Not today.")
        good.press("Enter")
        expect(forms).to_have_count(1)
        expect(bad).to_have_attribute("aria-expanded", "false")
        page.keyboard.press("Escape")
        expect(forms).to_have_count(0)
        expect(good).to_be_focused()
        bad.press("Enter")
        page.get_by_role("textbox", name="Why?").fill("Not today.")
        page.get_by_role("button", name="Send").click()
        expect(forms).to_have_count(0)
        expect(bad).to_have_attribute("aria-pressed", "true")
        expect(bad).to_be_focused()
        bad.press("Enter")
        expect(page.get_by_role("textbox", name="Why?")).to_have_value("Not today.")
        page.get_by_role("button", name="Take back").click()
        expect(bad).to_have_attribute("aria-pressed", "false")


def test_a_question_that_is_too_long_is_neither_cut_nor_sent(opens: Opens, server: Serving) -> None:
    with opens(server.url) as watched:
        page, said = watched.open("/chat"), watched.page.get_by_role("status")
        _box(page).fill(LONG + "!")
        expect(said).to_have_text(
            "The question has 8,001 characters. At most 8,000 are allowed."
            " Shorten it, or attach the long text as a file."
        )
        page.evaluate("document.getElementById('status').textContent = ''")
        _box(page).press("Enter")
        expect(said).to_contain_text("The question has 8,001 characters.")
        expect(_box(page)).to_have_value(LONG + "!")
        expect(page).to_have_url(f"{server.url}/chat")
        page.reload()
        expect(_box(page)).to_have_value(LONG + "!")
        _box(page).fill(f"{LONG}!?")
        expect(said).to_contain_text("The question has 8,002 characters.")
        _box(page).fill(LONG)
        expect(said).to_have_text("")
        _ask(page, LONG)

        page.get_by_role("button", name="Edit").click()
        editing = page.get_by_label("Edit your question")
        editing.fill(LONG + "!")
        expect(said).to_contain_text("The question has 8,001 characters.")
        editing.press("Enter")
        expect(editing).to_have_value(LONG + "!")
        editing.fill("Shorter?")
        expect(said).to_have_text("")
        editing.press("Enter")
        expect(page.locator(".message.asked .bubble")).to_have_text("Shorter?")
        expect(said).to_have_text(COMPLETE)


def test_a_question_that_is_too_long_in_chinese(opens: Opens, server: Serving) -> None:
    with opens(server.url, locale="zh-CN") as watched:
        page = watched.open("/chat")
        page.locator("#q").fill(LONG + "!")
        page.locator("#q").press("Enter")
        expect(page.get_by_role("status")).to_have_text(
            "问题有 8,001 个字符，最多只能有 8,000 个。请缩短问题，或将长文本作为文件添加。"
        )


def test_an_edited_question_keeps_its_filters(opens: Opens, server: Serving) -> None:
    body = {"question": "How long is leave?", "filters": {"sources": ["handbook"]}}
    begun = server.client.post("/api/conversations", json=body).json()
    with opens(server.url) as watched:
        page = watched.open(f"/chat/{begun['conversation']['id']}")
        expect(page.locator(".message.answering .answer")).to_have_text("So it is.")
        page.get_by_role("button", name="Edit").click()
        editing = page.get_by_label("Edit your question")
        editing.fill("How long is leave now?")
        with page.expect_request("**/messages") as sent:
            editing.press("Enter")
        assert (sent.value.post_data_json or {})["filters"]["sources"] == ["handbook"]
        expect(page.locator(".message.asked .bubble")).to_have_text("How long is leave now?")
        expect(page.get_by_role("status")).to_have_text(COMPLETE)
    path = f"/api/conversations/{begun['conversation']['id']}"
    (question, _) = server.client.get(path).json()["messages"]
    assert question["text"] == "How long is leave now?"
    assert question["filters"]["sources"] == ["handbook"]


def _open_back_to(page: Page, question: str) -> Locator:
    """Show earlier messages until this question is among them, and return it."""
    asked = page.locator(".message.asked").filter(has=page.get_by_text(question, exact=True))
    messages = page.locator(".message")
    expect(messages.last).to_be_visible()
    while asked.count() == 0:
        before = messages.count()
        page.locator("#earlier").click()
        expect(messages).not_to_have_count(before)
    return asked


def test_what_was_loaded_stays_and_two_tabs_show_the_same_branch(
    opens: Opens, home: Home, server: Serving
) -> None:
    conversation = _store_long_conversation(home.path)
    path = f"/chat/{conversation}"
    with opens(server.url) as watched:
        page = watched.open(path)
        other = page.context.new_page()
        other.goto(f"{server.url}{path}")
        asked, elsewhere = (_open_back_to(one, "Question 60") for one in (page, other))
        _ask(page, "Behind all others?")
        for one in (page, other):
            expect(one.locator(".message.asked").last).to_contain_text("Behind all others?")
        for found in (asked, elsewhere):
            expect(found).to_be_visible()

        asked.get_by_role("button", name="Edit").press("Enter")
        page.get_by_label("Edit your question").fill("Question 60 in other words")
        page.get_by_label("Edit your question").press("Enter")
        for one in (page, other):
            last = one.locator(".message.asked").last
            expect(last).to_contain_text("Question 60 in other words")
            expect(last.locator("[data-part='place']")).to_have_text("2/2")
            expect(one.locator(".message.answering .answer").last).to_have_text("So it is.")

        # Of the former version many messages follow.
        page.get_by_role("button", name="Previous version").last.click()
        expect(page.get_by_role("status")).to_have_text("Version 1 of 2")
        for one, version in ((page, asked), (other, elsewhere)):
            expect(version.locator("[data-part='place']")).to_have_text("1/2")
            expect(one.locator(".message.asked").last).to_contain_text("Behind all others?")


def test_a_version_that_another_program_made_is_shown_with_the_next_answer(
    opens: Opens, home: Home, server: Serving
) -> None:
    conversation = _store_long_conversation(home.path)
    address = f"/api/conversations/{conversation}"
    with opens(server.url) as watched:
        page = watched.open(f"/chat/{conversation}")
        asked = _open_back_to(page, "Question 60")
        expect(asked.locator("[data-part='versions']")).to_be_hidden()
        leaf = server.client.get(address).json()["messages"][-1]["id"]
        first = int(asked.get_attribute("data-message") or "")
        before = server.client.get(address, params={"leaf": first, "limit": 200}).json()
        (parent,) = (one["parent_id"] for one in before["messages"] if one["id"] == first)
        body = {"question": "Question 60 elsewhere", "parent_id": parent}
        server.client.post(f"{address}/messages", json=body).raise_for_status()
        server.client.patch(address, json={"leaf_id": leaf}).raise_for_status()
        with page.expect_response(lambda one: one.url.partition("?")[0].endswith(address)) as read:
            _ask(page, "And then?")
        expect(asked.locator("[data-part='place']")).to_have_text("1/2")
        assert len(read.value.json()["messages"]) == 50
