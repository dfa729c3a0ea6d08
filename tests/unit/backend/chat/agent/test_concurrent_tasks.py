"""Calls that run side by side: their events as they come, their outcomes, and what happens to those that fail or are late."""

import threading
import time
from collections.abc import Generator

import pytest

from backend.chat.agent.concurrent_tasks import Task, TaskFailure, run_concurrently
from backend.chat.events import ChatEvent, TextPiece
from connectors.errors import ActionRequiredError
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError


def say(
    text: str, after: threading.Event | None = None, then: threading.Event | None = None
) -> Task[str]:
    def run() -> Generator[ChatEvent, None, str]:
        if after is not None:
            assert after.wait(20)
        yield TextPiece(text)
        if then is not None:
            then.set()
        return text.upper()

    return run


def follow(
    tasks: dict[str, Task[str]], deadline: Deadline
) -> tuple[list[ChatEvent], dict[str, str | TaskFailure]]:
    events: list[ChatEvent] = []
    running = run_concurrently(tasks, deadline)
    while True:
        try:
            events.append(next(running))
        except StopIteration as end:
            return events, end.value


def test_events_come_as_they_happen_and_outcomes_by_their_keys() -> None:
    first = threading.Event()
    tasks = {"a": say("late", after=first), "b": say("early", then=first)}
    events, outcomes = follow(tasks, Deadline.after(20))
    assert events == [TextPiece("early"), TextPiece("late")]
    assert outcomes == {"a": "LATE", "b": "EARLY"}


def test_nothing_to_run_is_done_at_once() -> None:
    assert follow({}, Deadline.after(0)) == ([], {})


def test_a_failure_is_an_outcome() -> None:
    def fail() -> Generator[ChatEvent, None, str]:
        yield TextPiece("begun")
        raise ActionRequiredError("Rebuild it.")

    events, outcomes = follow({"a": fail, "b": say("x")}, Deadline.after(20))
    assert len(events) == 2
    assert outcomes["b"] == "X"
    lost = outcomes["a"]
    assert isinstance(lost, TaskFailure)
    assert isinstance(lost.error, ActionRequiredError)


@pytest.mark.parametrize("seconds", [0.1, 60.0])
def test_what_is_late_or_cancelled_is_lost(seconds: float) -> None:
    released, token = threading.Event(), CancelToken()
    tasks = {"slow": say("slow", after=released), "fast": say("fast")}
    if seconds > 1:
        threading.Timer(0.2, token.cancel).start()
    began = time.monotonic()
    _, outcomes = follow(tasks, Deadline.after(seconds, token))
    assert time.monotonic() - began < 10
    released.set()
    assert outcomes["fast"] == "FAST"
    lost = outcomes["slow"]
    assert isinstance(lost, TaskFailure)
    assert isinstance(lost.error, DeadlineExceededError)
