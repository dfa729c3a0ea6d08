"""Long conversations in a browser: named by the model, and summarized where they outgrow its window."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.browser import Opens, check_looks
from tests.support.home import Home
from tests.support.scripted_model import Refuse, Reply, Request, Say, ScriptedModel
from tests.support.serving import Serving, serving

SUMMARY = "They asked about bikes and trains.\nBikes stand in the yard; the firm pays for trains."
LONG = "Bikes stand in the yard, behind the second gate, where nobody parks a car. " * 40
BUSY = "Quarry is busy: too many followed answers are under way."


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def server(home: Home, model: ScriptedModel) -> Iterator[Serving]:
    settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
    with serving(home, QUARRY_LLM_WINDOW="4000", **settings) as running:
        yield running


def _is_summary(request: Request) -> bool:
    return request.text.startswith("You shorten a conversation")


def _summarizing(request: Request) -> Reply:
    return Say(SUMMARY if _is_summary(request) else LONG)


def _failing_to_summarize(request: Request) -> Reply:
    return Refuse(400, "no") if _is_summary(request) else Say(LONG)


def _ask(page: Page, question: str, answers: int) -> None:
    box = page.get_by_label("Your question", exact=True)
    box.fill(question)
    box.press("Enter")
    expect(page.locator(".message.answering")).to_have_count(answers)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_hidden()
    expect(page.locator(".message.answering .answer").last).to_contain_text("second gate")


def test_a_title_comes_by_itself(
    opens: Opens, server: Serving, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_summarizing)
    model.title = "Where bikes stand"
    with opens(server.url) as watched:
        page = watched.open("/chat")
        _ask(page, "Where may I leave a bike, and who pays for a lock?", 1)
        expect(page.get_by_role("heading", level=1)).to_have_text("Where bikes stand")
        navigation = page.get_by_role("navigation", name="Conversations")
        expect(navigation.get_by_role("link", name="Where bikes stand")).to_be_visible()
        page.screenshot(path=pictures / "chat-title.png")
    model.title = ""


def test_what_was_summarized_is_shown(
    opens: Opens, server: Serving, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_summarizing)
    with opens(server.url) as watched:
        page = watched.open("/chat")
        for number in range(1, 4):
            _ask(page, f"Where do bikes go? {number}", number)
        summarized = page.locator(".summarised:visible")
        expect(summarized).to_have_count(1)
        summarized.get_by_text("Earlier messages were summarized").click()
        expect(summarized).to_contain_text("Bikes stand in the yard; the firm pays for trains.")
        told = [one.text for one in model.requests if "What did we talk about before" in one.text]
        assert told
        assert SUMMARY in told[-1]
        check_looks(page, pictures, "chat-summarised")
        page.reload()
        expect(page.locator(".summarised:visible")).to_have_count(1)


def test_where_nothing_can_be_summarized_the_asker_is_told(
    opens: Opens, server: Serving, model: ScriptedModel
) -> None:
    model.play(_failing_to_summarize)
    with opens(server.url) as watched:
        page = watched.open("/chat")
        for number in range(1, 4):
            _ask(page, f"Where do bikes go? {number}", number)
        expect(page.locator(".aside").last).to_contain_text(
            "Done without the earliest messages of this conversation"
        )
        expect(page.locator(".summarised:visible")).to_have_count(0)


def test_a_follower_without_a_place_waits_as_long_as_it_is_told(
    opens: Opens, server: Serving, model: ScriptedModel
) -> None:
    model.play(_summarizing)
    refused: list[str] = []
    problem = {"type": "about:blank", "title": "Busy", "status": 503, "detail": BUSY}

    def refuse_once(route: Route) -> None:
        if refused:
            route.continue_()
            return
        refused.append(route.request.url)
        route.fulfill(status=503, headers={"Retry-After": "4"}, json=problem)

    with opens(server.url) as watched:
        page = watched.open("/chat")
        page.route("**/events", refuse_once)
        box = page.get_by_label("Your question", exact=True)
        box.fill("Where do bikes go?")
        box.press("Enter")
        expect(page.get_by_role("status")).to_have_text(BUSY)
        expect(page.locator(".message.answering .answer")).to_contain_text("second gate")
        watched.wrong[:] = [line for line in watched.wrong if "of 503" not in line]
    assert len(refused) == 1


def test_without_a_model_the_page_says_where_a_follow_up_could_not_be_worked_out(
    opens: Opens, home: Home, pictures: Path
) -> None:
    with serving(home) as server, opens(server.url) as watched:
        page = watched.open("/chat")
        questions = (
            "What should a customer do when the scanner shows QX-4031?",
            "And what about QX-4032?",
            "Who wrote the second one?",
        )
        for number, question in enumerate(questions, 1):
            box = page.get_by_label("Your question", exact=True)
            box.fill(question)
            box.press("Enter")
            expect(page.locator(".message.answering")).to_have_count(number)
            expect(page.get_by_role("button", name="Stop", exact=True)).to_be_hidden()
        steps = page.locator('[data-part="steps"]')
        expect(steps.nth(1)).to_contain_text(
            "Searched: What should a customer do when the scanner shows QX-4032?"
        )
        expect(page.locator(".aside:visible")).to_have_text(
            "Done without what was said before: only a language model can tell what “the second one” means here. Ask a complete question."
        )
        page.screenshot(path=pictures / "chat-follow-up.png")
