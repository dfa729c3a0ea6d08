"""An answer whose server was killed, in a browser: it says so, and is asked again beside what was there."""

import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.support.browser import Opens
from tests.support.home import Home
from tests.support.scripted_model import Call, Manner, Reply, Request, Say, ScriptedModel, ToolUse
from tests.support.server_processes import SOON, wait_for
from tests.support.serving import serving

QUESTION = "What should a customer do when the scanner shows QX-4031?"
WORDS = ["Close ", "the ", "cover ", "until ", "it ", "clicks, ", "then ", "scan ", "again."]


def _answer(request: Request, manner: Manner) -> Reply:
    if request.has_sources:
        return Say(WORDS, manner=manner)
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["QX-4031"]}))
    return Say("QX-4031")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def test_a_broken_answer_says_so_and_is_asked_again(
    opens: Opens, home: Home, model: ScriptedModel
) -> None:
    settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
    model.play(lambda request: _answer(request, Manner(stall_after=4)))
    with serving(home, **settings) as server:
        begun = server.client.post("/api/conversations", json={"question": QUESTION}).json()
        path = f"/chat/{begun['conversation']['id']}"
        wait_for(lambda: any(one.has_sources for one in model.requests))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(SOON)
    model.play(lambda request: _answer(request, Manner()))
    with serving(home, **settings) as server, opens(server.url) as watched:
        page = watched.open(path)
        answers = page.locator(".message.answering")
        notice = answers.get_by_text("This answer was interrupted: the server ended. Ask again.")
        expect(notice).to_be_visible()
        expect(page.locator(".message.asked .bubble")).to_have_text(QUESTION)
        page.get_by_role("button", name="Ask again").click()
        expect(answers.locator(".answer")).to_contain_text("".join(WORDS))
        expect(notice).to_be_hidden()
        expect(answers).to_have_count(1)
        # The broken one stays beside it.
        page.get_by_role("button", name="Previous version").click()
        expect(notice).to_be_visible()
        page.reload()
        expect(page.locator(".message.asked .bubble")).to_have_count(1)
        expect(answers).to_have_count(1)
