"""A model that nobody waits for any more: its connection is closed, wherever it is."""

import threading
import time
from collections.abc import Iterator

import pytest

from backend.chat.llm.client import LanguageModel, ModelTimeoutError, make_complete
from backend.chat.llm.messages import ModelEvent
from backend.chat.llm.model_settings import ModelSettings
from backend.chat.llm_step import StepRequest, start_stream
from backend.search.futures import run_in_background
from backend.search.llm_protocol import ChatMessage, CompletionError
from indexing.runtime.deadline import CancelToken, Deadline
from tests.support.scripted_model import Manner, Refuse, Reply, Say, ScriptedModel, Silent

HELLO = (ChatMessage("user", "Hello"),)
SOON = 10.0
"""Seconds; far from the minute that each request has here, and enough for a busy machine."""


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def _model(server: ScriptedModel) -> LanguageModel:
    return LanguageModel(
        ModelSettings(base_url=server.base_url, model="scripted", first_backoff=30.0)
    )


def _stopped(server: ScriptedModel, reply: Reply) -> list[ModelEvent]:
    """What a model says until it is stopped, a moment after it was asked."""
    server.play([reply])
    cancel_token = CancelToken()
    stopping = threading.Thread(target=_set_when_asked, args=(server, cancel_token))
    stopping.start()
    said: list[ModelEvent] = []
    began = time.monotonic()
    with pytest.raises(ModelTimeoutError):
        said.extend(_model(server).stream(HELLO, Deadline.after(60, cancel_token)))
    assert time.monotonic() - began < SOON
    stopping.join()
    return said


def _set_when_asked(server: ScriptedModel, cancel_token: CancelToken) -> None:
    while not server.requests:
        time.sleep(0.005)
    time.sleep(0.1)
    cancel_token.cancel()


def test_one_that_is_read_ahead_ends_with_its_stream(server: ScriptedModel) -> None:
    """Where another model takes over, and not only at the end of the turn."""
    server.play([Say("One two three four.", manner=Manner(stall_after=2))])
    stream = start_stream(_model(server), StepRequest(HELLO, Deadline.after(60)))
    next(stream)
    stream.close()
    assert server.hung_up.wait(SOON)


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
    cancel_token, sleep = CancelToken(), Deadline.sleep

    def stopped_in_it(deadline: Deadline, seconds: float) -> None:
        threading.Timer(0.1, cancel_token.cancel).start()
        sleep(deadline, seconds)

    monkeypatch.setattr(Deadline, "sleep", stopped_in_it)
    began = time.monotonic()
    with pytest.raises(ModelTimeoutError):
        list(_model(server).stream(HELLO, Deadline.after(60, cancel_token)))
    assert time.monotonic() - began < SOON
    assert len(server.requests) == 1


def test_what_runs_in_the_background(server: ScriptedModel) -> None:
    server.play([Silent()])
    cancel_token = CancelToken()
    deadline = Deadline.after(60, cancel_token)
    complete = make_complete(_model(server))
    pending = run_in_background(lambda: complete(HELLO, deadline), deadline.limited_to(50))
    threading.Thread(target=_set_when_asked, args=(server, cancel_token)).start()
    with pytest.raises(CompletionError):
        pending.result()
    assert server.hung_up.wait(SOON)


def test_before_it_was_asked(server: ScriptedModel) -> None:
    cancel_token = CancelToken()
    cancel_token.cancel()
    with pytest.raises(ModelTimeoutError):
        list(_model(server).stream(HELLO, Deadline.after(60, cancel_token)))
    assert server.requests == []


def test_a_connection_is_used_once(server: ScriptedModel) -> None:
    """One that was used before could not be found to be cut."""
    server.play([Say("One."), Silent()])
    model = _model(server)
    assert list(model.stream(HELLO, Deadline.after(60)))
    cancel_token = CancelToken()
    threading.Timer(0.2, cancel_token.cancel).start()
    with pytest.raises(ModelTimeoutError):
        list(model.stream(HELLO, Deadline.after(60, cancel_token)))
    assert server.hung_up.wait(SOON)
