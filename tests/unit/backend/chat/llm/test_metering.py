"""The tokens of a turn: as reported, else as counted."""

import json
from contextlib import closing

import pytest

from backend.chat.llm.client import LanguageModel, ModelError
from backend.chat.llm.messages import CallMessage, ModelMessage, ToolCall, ToolResult
from backend.chat.llm.metering import MeteredModel, UsageMeter
from backend.chat.llm.model_settings import ModelSettings
from backend.chat.llm_step import StepRequest, start_stream
from backend.search.llm_protocol import ChatMessage
from backend.store.llm.model_usage import TokenCounts
from indexing.embedding.token_counting import rough_tokens
from indexing.runtime.deadline import Deadline
from tests.support.scripted_model import Manner, Raw, Refuse, Say, ScriptedModel

ASKED = [ChatMessage("user", "x" * 40)]


@pytest.fixture
def metered(server: ScriptedModel) -> MeteredModel:
    settings = ModelSettings(
        base_url=server.base_url, model="scripted", name="large", first_backoff=0.01
    )
    return MeteredModel(LanguageModel(settings), UsageMeter(), rough_tokens)


def test_what_the_server_reports_adds_up(server: ScriptedModel, metered: MeteredModel) -> None:
    server.play([Say("12345678"), Say("1234")])
    for _ in range(2):
        list(metered.stream(ASKED, Deadline.after(5)))
    counts = TokenCounts(input_tokens=14, output_tokens=3, calls=2)
    assert metered.meter.read() == {"large": counts}


def test_without_a_report_it_is_counted(server: ScriptedModel, metered: MeteredModel) -> None:
    said = b'data: {"choices": [{"delta": {"content": "12345678"}, "finish_reason": "stop"}]}\n\n'
    server.play([Raw(said)])
    call = ToolCall("1", "search", "y" * 8)
    messages: list[ModelMessage] = [*ASKED, CallMessage("", (call,)), ToolResult("1", "z" * 12)]
    list(metered.stream(messages, Deadline.after(5)))
    counts = TokenCounts(input_tokens=10 + 2 + 3, output_tokens=2, calls=1)
    assert metered.meter.read() == {"large": counts}


def test_what_was_written_until_it_was_stopped_counts(
    server: ScriptedModel, metered: MeteredModel
) -> None:
    server.play([Say("12345678" * 10, manner=Manner(stall_after=2))])
    with closing(metered.stream(ASKED, Deadline.after(5))) as stream:
        next(stream)
        next(stream)
    counts = TokenCounts(input_tokens=10, output_tokens=2, calls=1)
    assert metered.meter.read() == {"large": counts}


def test_what_has_come_counts_while_another_thread_still_reads(
    server: ScriptedModel, metered: MeteredModel
) -> None:
    """A turn that is stopped reads the meter at once; the thread that asks the model ends later."""
    server.play([Say("12345678" * 10, manner=Manner(stall_after=2))])
    with closing(start_stream(metered, StepRequest(ASKED, Deadline.after(5)))) as stream:
        next(stream)
        next(stream)
        counts = TokenCounts(input_tokens=10, output_tokens=2, calls=1)
        assert metered.meter.read() == {"large": counts}


@pytest.mark.parametrize("reported", [-1_000_000, 10**30])
def test_what_no_call_can_take_is_counted_here(
    server: ScriptedModel, metered: MeteredModel, reported: int
) -> None:
    choice = {"delta": {"content": "12345678"}, "finish_reason": "stop"}
    said = {"choices": [choice], "usage": {"prompt_tokens": reported, "completion_tokens": 1}}
    server.play([Raw(f"data: {json.dumps(said)}\n\n".encode())])
    list(metered.stream(ASKED, Deadline.after(5)))
    counts = TokenCounts(input_tokens=10, output_tokens=2, calls=1)
    assert metered.meter.read() == {"large": counts}


def test_a_refusal_costs_nothing(server: ScriptedModel, metered: MeteredModel) -> None:
    server.play(lambda _: Refuse(401, "wrong key"))
    with pytest.raises(ModelError):
        list(metered.stream(ASKED, Deadline.after(5)))
    assert metered.meter.read() == {}
