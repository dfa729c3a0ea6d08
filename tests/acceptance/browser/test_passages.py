"""Asking in a browser where no language model answers: passages, and what seems to answer marked in them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.scripted_model import Say, ScriptedModel
from tests.support.serving import serving

ANSWERED = "/ask?q=What+should+a+customer+do+when+the+scanner+shows+QX-4031%3F"
UNANSWERED = "/ask?q=When+is+this+year%27s+company+football+tournament%3F"


@pytest.fixture(scope="module")
def address(home: Home) -> Iterator[str]:
    with serving(home) as server:
        yield server.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_passages_are_shown_with_what_answers_marked(
    opens: Opens, address: str, pictures: Path, scheme: str
) -> None:
    with opens(address, color_scheme=scheme) as watched:
        page = watched.open(ANSWERED)
        sentence = "No language model is set. These passages come closest."
        expect(page.get_by_role("status")).to_have_text(sentence)
        expect(page.locator("#passages .reason")).to_have_text(sentence)
        first = page.get_by_role("list", name="Passages").get_by_role("listitem").first
        expect(first).to_contain_text("QX-4031: laser interlock open")
        expect(first.locator("mark")).to_contain_text("Close the cover until it clicks")
        expect(page.locator("#answer")).to_be_hidden()
        expect(page.get_by_role("heading", name="Sources")).to_be_hidden()
        page.screenshot(path=pictures / f"passages-{scheme}.png")
        first.get_by_role("link").click()
        expect(page.locator("#cited")).to_contain_text("Close the cover until it clicks")
        page.go_back()
        expect(first.locator("mark")).to_contain_text("Close the cover until it clicks")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_where_nothing_seems_to_answer_the_closest_passages_are_folded(
    opens: Opens, address: str, pictures: Path, scheme: str
) -> None:
    with opens(address, color_scheme=scheme) as watched:
        page = watched.open(UNANSWERED)
        sentence = "Nothing that you may read seems to answer this."
        expect(page.get_by_role("status")).to_have_text(sentence)
        expect(page.locator("#passages .reason")).to_have_text(sentence)
        passages = page.get_by_role("list", name="Passages")
        expect(passages).to_be_hidden()
        page.screenshot(path=pictures / f"unanswered-{scheme}.png")
        count = page.locator("#passages .passages > li").count()
        label = "Show the closest passage" if count == 1 else f"Show the closest {count} passages"
        page.get_by_text(label, exact=True).click()
        expect(passages).to_be_visible()
        expect(passages.locator("mark")).to_have_count(0)
        page.screenshot(path=pictures / f"unanswered-open-{scheme}.png")


def test_why_no_model_answered_is_said_of_an_answer_that_is_opened_again(
    opens: Opens, home: Home
) -> None:
    with ScriptedModel() as model:
        model.play(lambda _: Say("Twenty-six weeks."))
        set_by = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        with serving(home, QUARRY_LLM_TOTAL_TOKENS="1", **set_by) as server:
            with opens(server.url) as watched:
                page = watched.open("/chat")
                box = page.get_by_label("Your question", exact=True)
                for question in (
                    "Hello?",
                    "What should a customer do when the scanner shows QX-4031?",
                ):
                    box.fill(question)
                    box.press("Enter")
                    expect(page.locator(".message.asked .bubble").last).to_have_text(question)
                    expect(page.get_by_role("button", name="Regenerate").last).to_be_visible()
                said = page.locator(".reason")
                expect(said).to_contain_text("Today's budget of language model tokens is used up.")
                page.reload()
                expect(said).to_have_text(
                    "The day's budget of language model tokens was used up. No language model wrote this answer."
                )
                expect(page.locator(".passages mark").first).to_contain_text("Close the cover")
            # An open page still reads what was said of its answers after it has shown them.
            for one in server.client.get("/api/conversations").json()["conversations"]:
                server.client.delete(f"/api/conversations/{one['id']}")


def test_the_next_question_begins_anew(opens: Opens, address: str) -> None:
    with opens(address) as watched:
        page = watched.open(UNANSWERED)
        expect(page.locator("#passages .reason")).to_contain_text("Nothing that you may read")
        page.locator("#q").fill("What should a customer do when the scanner shows QX-4031?")
        page.keyboard.press("Enter")
        expect(page.locator("#passages .reason")).to_contain_text("These passages come closest")
        expect(page.get_by_text("Show the closest")).to_have_count(0)
