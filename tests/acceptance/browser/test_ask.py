"""Asking in a browser, with a language model behind its real protocol, well and ill."""

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.scripted_model import (
    Call,
    Manner,
    Refuse,
    Reply,
    Request,
    Say,
    ScriptedModel,
    ToolUse,
)
from tests.support.serving import serving

QUESTION = "What should a customer do when the scanner shows QX-4031?"
ASKED = "/ask?q=What+should+a+customer+do+when+the+scanner+shows+QX-4031%3F"
SENTENCES = (
    "QX-4031 means that the **interlock of the laser** is open [{n}].",
    "Close the cover until it clicks [{n}].",
    "It costs 900 euros [{n}].",
)

Script: TypeAlias = Callable[[Request], Reply]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def address(home: Home, model: ScriptedModel) -> Iterator[str]:
    with serving(home, QUARRY_LLM_URL=model.base_url, QUARRY_LLM_MODEL="scripted") as server:
        yield server.url


def _answering(text: str = " ".join(SENTENCES), manner: Manner | None = None) -> Script:
    """A model that searches, then says `text` of the document on scanners' codes."""

    def script(request: Request) -> Reply:
        if request.has_sources:
            found = request.sources
            number = next(r["number"] for r in found if "scanners" in r["title"].lower())
            return Say(text.format(n=number), manner=manner or Manner())
        if request.tool_names:
            return Call(ToolUse("internal_search", {"queries": ["QX-4031 interlock"]}))
        return Say("QX-4031 laser interlock open")

    return script


def _waiting(looked: threading.Event, script: Script) -> Script:
    """The same, but it answers only after `looked` is set."""

    def waiting(request: Request) -> Reply:
        if request.has_sources:
            looked.wait(30)
        return script(request)

    return waiting


def _asks(page: Page) -> None:
    page.locator("#q").fill(QUESTION)
    page.keyboard.press("Enter")


def test_an_answer_with_sources_that_can_be_checked(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    looked = threading.Event()
    model.play(_waiting(looked, _answering()))
    with opens(address) as watched:
        page = watched.open("/ask")
        _asks(page)
        steps = page.get_by_role("list", name="Steps")
        expect(steps).to_contain_text("Searched:")
        expect(page.locator("#sources li").first).to_be_visible()
        expect(steps).to_contain_text("QX-4031 laser interlock open")
        expect(steps).to_contain_text("Reading Error codes of the Stonesight scanners")
        assert not page.locator("#answer").inner_text()  # sources stand there before the answer
        page.screenshot(path=pictures / "asking.png")
        looked.set()
        expect(page.locator("#answer strong")).to_have_text("interlock of the laser")
        expect(page.locator("#answer .cite").first).to_be_visible()
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 3 citations.")
        expect(page.locator("#references li.cited")).to_contain_text(
            "Error codes of the Stonesight"
        )

        page.locator("#answer .cite").first.hover()
        card = page.get_by_role("tooltip")
        expect(card).to_contain_text("Error codes of the Stonesight scanners")
        expect(card).to_contain_text("16 Feb 2026")
        expect(card.locator(".quote")).to_contain_text("QX-4031 means that the interlock")
        expect(card).to_contain_text("Supported by this source.")
        page.screenshot(path=pictures / "card.png")
        page.keyboard.press("Escape")
        expect(card).to_be_hidden()
        page.locator("#answer .cite").first.focus()
        page.keyboard.press("Tab")
        expect(card).to_contain_text("Close the cover until it clicks")
        page.keyboard.press("Tab")
        expect(card).not_to_contain_text("Supported by this source.")  # of the 900 euros

        requests = len(model.requests)
        page.locator("#answer .cite").first.click()
        expect(page.locator("#cited")).to_be_in_viewport()
        expect(page.locator("#cited")).to_contain_text("QX-4031 means that the interlock")
        page.screenshot(path=pictures / "passage.png")
        page.go_back()
        expect(page.locator("#answer strong")).to_have_text("interlock of the laser")
        expect(page.locator("#references li.cited")).to_be_visible()
        assert len(model.requests) == requests  # the answer was kept, and nobody asked again


def test_what_was_done_and_what_is_not_cited_is_folded(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_answering())
    with opens(address) as watched:
        page = watched.open(ASKED)
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 3 citations.")
        steps = page.get_by_role("list", name="Steps")
        expect(steps).to_be_hidden()
        expect(page.locator("#references li")).to_have_count(1)
        expect(page.locator("#sources li")).to_have_count(0)
        uncited = page.locator("#read-too li").first
        expect(uncited).to_be_hidden()
        page.get_by_text("found, not cited").click()
        expect(uncited).to_be_visible()
        page.get_by_text("Steps", exact=True).click()
        expect(steps).to_contain_text("Searched:")
        page.screenshot(path=pictures / "unfolded.png")


def test_where_nothing_is_cited_nothing_stands_beside(
    opens: Opens, address: str, model: ScriptedModel
) -> None:
    model.play(_answering("Nothing of what was found says so."))
    with opens(address) as watched:
        page = watched.open(ASKED)
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 0 citations.")
        expect(page.locator("#beside")).to_be_hidden()


def test_a_card_closes_with_its_answer(opens: Opens, address: str, model: ScriptedModel) -> None:
    model.play(_answering())
    with opens(address) as watched:
        page = watched.open(ASKED)
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 3 citations.")
        page.locator("#answer .cite").first.hover()
        card = page.get_by_role("tooltip")
        expect(card).to_be_visible()
        page.locator("#again").dispatch_event("click")  # the pointer stays where it is
        expect(card).to_be_hidden()
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 3 citations.")


def test_a_tap_opens_the_card_and_its_button_the_document(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_answering())
    with opens(address, viewport={"width": 390, "height": 844}, has_touch=True) as watched:
        page = watched.open(ASKED)
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 3 citations.")
        page.locator("#answer .cite").first.tap()
        card = page.get_by_role("dialog", name="Citation")
        expect(card).to_contain_text("Supported by this source.")
        page.screenshot(path=pictures / "card-phone.png")
        page.locator("h2").first.dispatch_event("pointerdown", {"pointerType": "touch"})
        expect(card).to_be_hidden()
        page.locator("#answer .cite").first.tap()
        card.get_by_role("link", name="Open the document").tap()
        expect(page.locator("#cited")).to_contain_text("QX-4031 means that the interlock")


def test_a_question_from_a_search_keeps_its_filters(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_answering())
    with opens(address) as watched:
        page = watched.open("/?q=QX-4031+type%3Aweb&source=handbook")
        page.get_by_role("link", name="Ask this instead").click()
        expect(page).to_have_url(f"{address}/ask?q=QX-4031&source=handbook&type=web")
        expect(page.get_by_role("link", name="Remove Type: Web page")).to_be_visible()
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 3 citations.")
        page.screenshot(path=pictures / "ask-filtered.png")
        with page.expect_request("**/api/ask") as sent:
            _asks(page)
        assert sent.value.post_data_json == {
            "question": QUESTION,
            "filters": {"sources": ["handbook"], "media_types": ["text/html"]},
            "mode": "chat",
            "knowledge": True,
            "web": False,
            "rewrite": True,
        }
        expect(page).to_have_url(re.compile(r"q=What\+should.*source=handbook&type=web$"))
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 3 citations.")
        page.get_by_role("link", name="Remove Type: Web page").click()
        expect(page).to_have_url(re.compile(r"/ask\?q=What\+should[^&]*&source=handbook$"))


def test_the_page_greets_with_questions_that_can_be_asked(
    opens: Opens, address: str, model: ScriptedModel
) -> None:
    model.play(lambda _: Say("It says much."))
    with opens(address) as watched:
        page = watched.open("/ask")
        expect(page.get_by_text("QUARRY_")).to_have_count(0)
        example = page.locator(".tries a").first
        question = example.inner_text()
        example.click()
        expect(page.locator("#q")).to_have_value(question)
        expect(page.locator("#answer")).to_contain_text("It says much.")


def test_an_answer_that_was_cut_says_so(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    def cut(request: Request) -> Reply:
        reply = _answering()(request)
        return replace(reply, finish="length") if isinstance(reply, Say) else reply

    model.play(cut)
    with opens(address) as watched:
        page = watched.open(ASKED)
        expect(page.get_by_text("The answer was cut off: the language model")).to_be_visible()
        expect(page.get_by_role("status")).to_have_text("The answer was cut off. 3 citations.")
        page.screenshot(path=pictures / "cut.png")
        model.play(_answering())
        page.get_by_role("button", name="Ask again").click()
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 3 citations.")
        expect(page.get_by_text("The answer was cut off: the language model")).to_be_hidden()


def test_copied_with_its_sources(opens: Opens, address: str, model: ScriptedModel) -> None:
    model.play(_answering())
    with opens(address, permissions=["clipboard-read", "clipboard-write"]) as watched:
        page = watched.open(ASKED)
        page.get_by_role("button", name="Copy with sources").click()
        expect(page.get_by_role("button", name="Copied with sources")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert re.search(r"interlock of the laser\*\* is open \[\d+\]\.", copied)
        assert re.search(r"\[\d+\] Error codes of the Stonesight scanners\n    “QX-4031", copied)


def test_stopped_in_mid_stream(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_answering("Slowly, one word after the other. " * 200, Manner(delay=0.05)))
    with opens(address) as watched:
        page = watched.open(ASKED)
        expect(page.locator("#answer")).to_contain_text("Slowly, one word")
        model.hung_up.clear()
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("list", name="Steps")).to_contain_text("Stopped")
        kept = page.locator("#answer").inner_text()
        assert kept.startswith("Slowly, one word")
        assert model.hung_up.wait(5)  # the model's stream was closed, not left running
        assert page.locator("#answer").inner_text() == kept
        page.screenshot(path=pictures / "stopped.png")
        model.play(_answering())
        page.get_by_role("button", name="Ask again").click()
        expect(page.locator("#answer strong")).to_have_text("interlock of the laser")


@pytest.mark.parametrize(
    "manner",
    [Manner(cut_after=12), Manner(garbage_after=12), Manner(error_after=12)],
    ids=["cut", "garbage", "error"],
)
def test_a_model_that_fails_in_mid_answer(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path, manner: Manner
) -> None:
    model.play(_answering("The interlock of the laser is open. " * 9, manner))
    with opens(address) as watched:
        page = watched.open(ASKED)
        sentence = "The language model did not finish this answer. These passages come closest."
        expect(page.get_by_role("status")).to_have_text(sentence)
        expect(page.locator("#passages .reason")).to_have_text(sentence)
        expect(page.locator("#answer")).to_contain_text("The interlock of the laser is open.")
        passages = page.get_by_role("list", name="Passages")
        expect(passages).to_contain_text("Close the cover until it clicks")
        expect(page.get_by_role("button", name="Copy with sources")).to_be_visible()
        page.screenshot(path=pictures / "broke-off.png")


LOOKS = [("light", 1280), ("dark", 1280), ("light", 390)]


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_a_model_that_answers_nothing_leaves_the_passages(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path, scheme: str, width: int
) -> None:
    model.play(lambda _: Refuse(401, "wrong key sk-part"))
    looks = {"color_scheme": scheme, "viewport": {"width": width, "height": 860}}
    with opens(address, **looks) as watched:
        page = watched.open(ASKED)
        sentence = "The language model could not be used; only an admin can change that. These passages come closest."
        expect(page.get_by_role("status")).to_have_text(sentence)
        expect(page.locator("#passages .reason")).to_have_text(sentence)
        expect(page.get_by_role("list", name="Passages")).to_contain_text("Close the cover")
        expect(page.locator("#answer")).to_be_hidden()
        expect(page.get_by_role("alert")).to_be_hidden()
        assert "sk-part" not in page.content()
        page.screenshot(path=pictures / f"model-failed-{scheme}-{width}.png")
        model.play(_answering())
        page.get_by_role("button", name="Ask again").click()
        expect(page.locator("#answer strong")).to_have_text("interlock of the laser")
        expect(page.locator("#passages .reason")).to_have_count(0)


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_sentences_without_a_source_are_marked(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path, scheme: str, width: int
) -> None:
    model.play(_answering(f"{' '.join(SENTENCES)} Spare lasers lie in hall four."))
    looks = {"color_scheme": scheme, "viewport": {"width": width, "height": 860}}
    with opens(address, **looks) as watched:
        page = watched.open(ASKED)
        expect(page.get_by_text("One sentence cites no document; it is marked.")).to_be_visible()
        expect(page.locator("#answer .uncited")).to_have_text(["no source"])
        expect(page.locator("#answer .cite")).to_have_count(3)
        page.screenshot(path=pictures / f"uncited-{scheme}-{width}.png")


def test_an_answer_without_any_source_says_so(
    opens: Opens, address: str, model: ScriptedModel, pictures: Path
) -> None:
    model.play(_answering("Spare lasers lie in hall four."))
    with opens(address) as watched:
        page = watched.open(ASKED)
        expect(page.get_by_text("From general knowledge, not from a source.")).to_be_visible()
        expect(page.locator("#answer .uncited")).to_have_count(0)
        page.screenshot(path=pictures / "uncited-all.png")
        model.play(lambda _: Say("Hello. What would you like to know?"))
        page.locator("#q").fill("Hi")
        page.keyboard.press("Enter")
        expect(page.locator("#answer")).to_have_text("Hello. What would you like to know?")
        expect(page.get_by_role("status")).to_have_text("The answer is complete. 0 citations.")
        expect(page.get_by_text("From general knowledge, not from a source.")).to_be_hidden()
        page.screenshot(path=pictures / "greeting.png")


def test_a_second_question_ends_the_first(opens: Opens, address: str, model: ScriptedModel) -> None:
    model.play(_answering("Slowly, one word after the other. " * 200, Manner(delay=0.05)))
    with opens(address) as watched:
        page = watched.open("/ask?q=How+do+I+clean+the+scanner%3F+QX-4031")
        expect(page.locator("#answer")).to_contain_text("Slowly")
        model.play(_answering())
        page.locator("#q").fill(QUESTION)
        page.keyboard.press("Enter")
        expect(page.locator("#answer strong")).to_have_text("interlock of the laser")
        expect(page.locator("#answer")).not_to_contain_text("Slowly")
