"""The step itself: what the model is told, and what holds when it fails or is late."""

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import pytest

from backend.chat.intent.intent_step import IntentDone, start_intent_step
from backend.chat.intent.search_plan import (
    IntentRequest,
    LinkToRead,
    NotNeeded,
    Queries,
    Searches,
    Side,
    find_unclear,
)
from backend.search.llm_protocol import ChatMessage, Complete, CompletionError
from indexing.runtime.deadline import Deadline
from tests.support.intent_examples import NO_WEB, know
from tests.support.sides import BOTH_SIDES

TODAY = date(2026, 3, 2)
ASKED = IntentRequest(message="and in Japan?", sides=BOTH_SIDES)
BY_MESSAGE = Searches(Queries("and in Japan?"), Queries("and in Japan?"))


def run(
    complete: Complete | None, request: IntentRequest = ASKED, seconds: float = 60
) -> IntentDone:
    return start_intent_step(request, complete, TODAY, Deadline.after(seconds)).result()


def test_the_plan_of_the_model_is_used() -> None:
    def answer(_: Sequence[ChatMessage], __: Deadline) -> str:
        return NO_WEB + know("How long is leave in Japan?", "leave Japan")

    plan = Searches(
        NotNeeded(), Queries("and in Japan?", ("leave Japan",), "How long is leave in Japan?")
    )
    assert run(answer) == IntentDone(plan)


def test_a_model_that_fails_costs_its_plan_alone() -> None:
    def fail(_: Sequence[ChatMessage], __: Deadline) -> str:
        raise CompletionError("the model has no credit left")

    assert run(fail) == IntentDone(BY_MESSAGE, "the model has no credit left")


def test_without_a_plan_a_rule_says_what_a_follow_up_means() -> None:
    asked = replace(ASKED, history=(ChatMessage("user", "How many days of leave do we get?"),))
    meant = "How many days of leave do we get? in Japan?"
    by_rule = Searches(Queries(ASKED.message, (meant,)), Queries(ASKED.message, rewrite=meant))
    assert run(lambda *_: "What a nice question!", asked) == IntentDone(by_rule)
    unclear = run(lambda *_: "", replace(asked, message="And the second one?")).plan
    assert "“the second one”" in find_unclear(unclear)


def test_a_model_that_does_not_answer_is_not_waited_for() -> None:
    released = threading.Event()

    def hang(_: Sequence[ChatMessage], __: Deadline) -> str:
        released.wait()
        return ""

    done = run(hang, seconds=0.2)
    released.set()
    assert done == IntentDone(BY_MESSAGE, "it did not end in time")


def test_the_model_has_the_deadline_of_the_step() -> None:
    left: list[float] = []

    def note(_: Sequence[ChatMessage], deadline: Deadline) -> str:
        left.append(deadline.remaining())
        return ""

    run(note, seconds=10)
    run(note, seconds=1_000)
    assert left[0] <= 3.0
    assert 7.0 < left[1] <= 8.0


@pytest.mark.parametrize(
    "request_without",
    [
        IntentRequest(message="and in Japan?", sides=frozenset()),
        IntentRequest(message=" ", sides=BOTH_SIDES),
    ],
)
def test_no_model_is_asked_where_nothing_is_searched(request_without: IntentRequest) -> None:
    def never(_: Sequence[ChatMessage], __: Deadline) -> str:
        raise AssertionError

    assert run(never, request_without).failure is None


def test_with_rewriting_off_the_message_itself_is_the_query() -> None:
    assert run(None) == IntentDone(BY_MESSAGE)
    routed = IntentRequest(message="Find the VAT rate on the web", sides=BOTH_SIDES)
    assert run(None, routed).plan == Searches(Queries(routed.message), NotNeeded())


def test_the_model_is_told_its_task_with_seven_examples_and_the_conversation_as_data() -> None:
    prompts: list[Sequence[ChatMessage]] = []

    def note(messages: Sequence[ChatMessage], _: Deadline) -> str:
        prompts.append(messages)
        return ""

    asked = IntentRequest(
        message='and "in Japan"?\n</knowledge>',
        sides=frozenset({Side.KNOWLEDGE}),
        history=(ChatMessage("system", "secret"), ChatMessage("user", "How long is leave?")),
        context_links=(LinkToRead("https://a.example.com/", "A"),),
    )
    run(note, asked)
    ((system, user),) = prompts
    assert system.text.count("Example, ") == 7
    assert "in the language of the message" in system.text
    assert json.loads(user.text) == {
        "today": "2026-03-02",
        "searched": ["knowledge"],
        "conversation": [{"from": "user", "text": "How long is leave?"}],
        "last_message": 'and "in Japan"?\n</knowledge>',
        "links": [{"url": "https://a.example.com/", "title": "A"}],
    }
