"""A model that nobody waits for any more: its connection is closed, wherever it is."""

import threading
import time
from collections.abc import Iterator

import pytest

from backend.chat.llm.client import LanguageModel, ModelLate, ModelSettings, completion
from backend.chat.llm.messages import ModelEvent
from backend.search.futures import in_background
from backend.search.llm_protocol import CompletionFailed, Message
from indexing.runtime.deadline import Deadline, Stop
from tests.support.scripted_model import Manner, Refuse, Reply, Say, ScriptedModel, Silent

HELLO = (Message("user", "Hello"),)
SOON = 10.0
"""Seconds; far from the minute that each request has here, and enough for a busy machine."""


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def _model(server: ScriptedModel) -> LanguageModel:
    return LanguageModel(
        ModelSettings(base_url=server.base_url, model="scripted", first_pause=30.0)
    )


def _stopped(server: ScriptedModel, reply: Reply) -> list[ModelEvent]:
    """What a model says until it is stopped, a moment after it was asked."""
    server.play([reply])
    stop = Stop()
    stopping = threading.Thread(target=_set_when_asked, args=(server, stop))
    stopping.start()
    said: list[ModelEvent] = []
    began = time.monotonic()
    with pytest.raises(ModelLate):
        said.extend(_model(server).stream(HELLO, Deadline.after(60, stop)))
    assert time.monotonic() - began < SOON
    stopping.join()
    return said


def _set_when_asked(server: ScriptedModel, stop: Stop) -> None:
    while not server.requests:
        time.sleep(0.005)
    time.sleep(0.1)
    stop.set()


def test_in_the_middle_of_an_answer(server: ScriptedModel) -> None:
    said = _stopped(server, Say("One two three four.", manner=Manner(stall_after=2)))
    assert len(said) == 2
    assert server.hung_up.wait(SOON)


def test_before_the_first_byte_of_an_answer(server: ScriptedModel) -> None:
    assert _stopped(server, Silent()) == []
    assert server.hung_up.wait(SOON)


def test_between_two_tries(server: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second would come after half a minute."""
    server.play([Refuse(500), Say("Hello.")])
    stop, sleep = Stop(), Deadline.sleep

    def stopped_in_it(deadline: Deadline, seconds: float) -> None:
        threading.Timer(0.1, stop.set).start()
        sleep(deadline, seconds)

    monkeypatch.setattr(Deadline, "sleep", stopped_in_it)
    began = time.monotonic()
    with pytest.raises(ModelLate):
        list(_model(server).stream(HELLO, Deadline.after(60, stop)))
    assert time.monotonic() - began < SOON
    assert len(server.requests) == 1


def test_what_runs_in_the_background(server: ScriptedModel) -> None:
    server.play([Silent()])
    stop = Stop()
    deadline = Deadline.after(60, stop)
    complete = completion(_model(server))
    pending = in_background(lambda: complete(HELLO, deadline), deadline.earlier(50))
    threading.Thread(target=_set_when_asked, args=(server, stop)).start()
    with pytest.raises(CompletionFailed):
        pending.result()
    assert server.hung_up.wait(SOON)


def test_before_it_was_asked(server: ScriptedModel) -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(ModelLate):
        list(_model(server).stream(HELLO, Deadline.after(60, stop)))
    assert server.requests == []


def test_a_connection_is_used_once(server: ScriptedModel) -> None:
    """One that was used before could not be found to be cut."""
    server.play([Say("One."), Silent()])
    model = _model(server)
    assert list(model.stream(HELLO, Deadline.after(60)))
    stop = Stop()
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(ModelLate):
        list(model.stream(HELLO, Deadline.after(60, stop)))
    assert server.hung_up.wait(SOON)
