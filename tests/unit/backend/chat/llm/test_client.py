"""The language model over real HTTP: what it says, and every way in which it may fail to."""

import itertools
import json
import socket
import struct
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.llm import client
from backend.chat.llm.client import (
    LanguageModel,
    MalformedCompletionError,
    ModelError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
    ToolsUnsupportedError,
    make_complete,
)
from backend.chat.llm.event_stream import read_event_data
from backend.chat.llm.messages import (
    CallMessage,
    Finished,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from backend.chat.llm.model_settings import ModelSettings
from backend.chat.llm.surrogates import SurrogateJoiner, join_surrogates
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.settings import variable
from indexing.runtime.deadline import Deadline
from tests.support.scripted_model import (
    Call,
    HangUp,
    Manner,
    Raw,
    Refuse,
    Say,
    ScriptedModel,
    Silent,
    ToolUse,
)

QUESTION = (ChatMessage("user", "How many days?"),)
TOOL = ToolSpec("internal_search", "Search.", {"type": "object", "properties": {}})


def settings_for(base_url: str, **others: object) -> ModelSettings:
    values: dict[str, object] = {"model": "scripted", "api_key": "sk-secret", "first_backoff": 0.01}
    return ModelSettings(base_url=base_url, **(values | others))  # type: ignore[arg-type]


@pytest.fixture
def model(server: ScriptedModel) -> Iterator[LanguageModel]:
    model = LanguageModel(settings_for(server.base_url))
    yield model
    model.close()


def soon() -> Deadline:
    return Deadline.after(5)


def said(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def thought(events: Sequence[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def sse(*payloads: object) -> bytes:
    return "".join(f"data: {json.dumps(payload)}\n\n" for payload in payloads).encode()


def delta(finish: str | None = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def test_a_text_arrives_piece_by_piece_and_ends_with_its_reason_and_usage(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Say(["25 ", "days ", "有給。"])])
    events = list(model.stream(QUESTION, soon()))
    assert events == [
        TextDelta("25 "),
        TextDelta("days "),
        TextDelta("有給。"),
        Finished("stop", Usage(prompt_tokens=7, completion_tokens=3)),
    ]


def test_the_first_piece_is_reported_before_the_last_is_made(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Say(["first", "never"], manner=Manner(stall_after=1))])
    stream = model.stream(QUESTION, soon())
    assert next(iter(stream)) == TextDelta("first")


def test_a_request_says_everything_once(server: ScriptedModel) -> None:
    server.play([Say("ok")])
    call = ToolCall("call-1", "internal_search", '{"queries": ["a"]}')
    messages = (
        ChatMessage("system", "Be brief."),
        *QUESTION,
        CallMessage("", (call,)),
        ToolResult("call-1", "nothing"),
    )
    model = LanguageModel(settings_for(server.base_url, temperature=0.0))
    list(model.stream(messages, soon(), [TOOL]))
    model.close()
    [request] = server.requests
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert request.body["temperature"] == 0.0
    assert request.tool_choice == "auto"
    assert request.tool_names == ["internal_search"]
    assert [message["role"] for message in request.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert request.messages[2]["tool_calls"][0]["function"]["arguments"] == '{"queries": ["a"]}'
    assert request.messages[3]["tool_call_id"] == "call-1"


def test_what_is_not_set_is_not_sent(server: ScriptedModel, model: LanguageModel) -> None:
    server.play([Say("ok")])
    list(model.stream(QUESTION, soon()))
    assert not {"temperature", "tools", "tool_choice"} & set(server.requests[0].body)


def test_the_environment_of_the_library_is_not_sent_along(
    server: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-private")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    server.play([Say("ok")])
    model = LanguageModel(settings_for(server.base_url, api_key=None))
    list(model.stream(QUESTION, soon()))
    model.close()
    assert "private" not in str(server.requests[0].headers)
    assert "sk-from" not in str(server.requests[0].headers)


def test_tool_calls_are_put_together_from_their_fragments(
    server: ScriptedModel, model: LanguageModel
) -> None:
    first = ToolUse("internal_search", {"queries": ["annual leave"]})
    second = ToolUse("open_url", {"url": "https://example.com/"})
    server.play([Call([first, second], text="Let me look.")])
    events = list(model.stream(QUESTION, soon(), [TOOL]))
    assert events == [
        TextDelta("Let me look."),
        ToolCall("call_0", "internal_search", '{"queries": ["annual leave"]}'),
        ToolCall("call_1", "open_url", '{"url": "https://example.com/"}'),
        Finished("tool_calls", Usage(7, 2)),
    ]


def test_calls_sent_whole_under_one_index_are_distinguished_by_their_ids(
    server: ScriptedModel, model: LanguageModel
) -> None:
    calls = [
        {"index": 0, "id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"
    ]
    server.play([Raw(sse(delta(tool_calls=calls), delta("tool_calls")))])
    events = list(model.stream(QUESTION, soon(), [TOOL]))
    assert events[:2] == [ToolCall("a", "a", "{}"), ToolCall("b", "b", "{}")]


def test_a_call_without_an_id_is_given_one(server: ScriptedModel, model: LanguageModel) -> None:
    calls = [{"function": {"name": "internal_search", "arguments": "{}"}}]
    server.play([Raw(sse(delta(tool_calls=calls), delta("stop")))])
    first, *_ = model.stream(QUESTION, soon(), [TOOL])
    assert first == ToolCall("call-1", "internal_search", "{}")


def test_reasoning_is_separated_from_the_answer(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Say("25", reasoning="Leave, hm.")])
    assert list(model.stream(QUESTION, soon()))[:2] == [
        ReasoningDelta("Leave, hm."),
        TextDelta("25"),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_thoughts_in_the_text_are_separated_from_the_answer(
    server: ScriptedModel, model: LanguageModel, size: int
) -> None:
    text = "\n<think>1 < 2, </thin king</think>\n\nYes: `<think>` and <think> are tags."
    server.play([Say([text[i : i + size] for i in range(0, len(text), size)])])
    events = list(model.stream(QUESTION, soon()))
    assert thought(events) == "1 < 2, </thin king"
    assert said(events) == "Yes: `<think>` and <think> are tags."


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    ("text", "finish", "answer", "thoughts"),
    [
        ("25 <think>see [1]</think> days", "stop", "25  days", "see [1]"),
        ("25 <THINKING>a</thinking><think>b</think> days", "stop", "25  days", "ab"),
        ("25 <think>so [1] and", "length", "25 ", "so [1] and"),
        ("25 </think>days", "stop", "25 days", ""),
        ("<think>a <think>b</think>25", "stop", "25", "a b"),
        (
            "```\n<think>x</think>\n```\n<think>y</think>z",
            "stop",
            "```\n<think>x</think>\n```\nz",
            "y",
        ),
    ],
)
def test_thoughts_within_an_answer_are_distinguished(
    server: ScriptedModel,
    model: LanguageModel,
    size: int,
    text: str,
    finish: str,
    answer: str,
    thoughts: str,
) -> None:
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    server.play([Say(pieces, finish=finish)])
    events = list(model.stream(QUESTION, soon()))
    assert said(events) == answer
    assert thought(events) == thoughts


def test_a_text_that_only_begins_like_thoughts_is_text(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Say(["<thi"]), Say(["<", "thing>"])])
    assert said(list(model.stream(QUESTION, soon()))) == "<thi"
    assert said(list(model.stream(QUESTION, soon()))) == "<thing>"


@pytest.mark.parametrize("status", [500, 503, 408, 409])
def test_a_passing_failure_is_repeated(
    server: ScriptedModel, model: LanguageModel, status: int
) -> None:
    server.play([Refuse(status), HangUp(), Say("here")])
    assert said(list(model.stream(QUESTION, soon()))) == "here"
    assert len(server.requests) == 3


def test_after_three_tries_it_is_unavailable(server: ScriptedModel, model: LanguageModel) -> None:
    server.play([Refuse(500, "boom")] * 5)
    with pytest.raises(ModelUnavailableError, match="boom"):
        list(model.stream(QUESTION, soon()))
    assert len(server.requests) == 3


def test_too_many_requests_waits_as_long_as_the_server_asks(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Refuse(429, headers={"Retry-After": "0.3"}), Say("here")])
    start = time.monotonic()
    assert said(list(model.stream(QUESTION, soon()))) == "here"
    assert time.monotonic() - start >= 0.3


@pytest.mark.parametrize(
    "after",
    ["30", format_datetime(datetime.now(UTC) + timedelta(hours=2))],
    ids=["seconds", "moment"],
)
def test_a_wait_beyond_the_deadline_is_reported_at_once(
    server: ScriptedModel, model: LanguageModel, after: str
) -> None:
    server.play([Refuse(429, headers={"Retry-After": after})] * 3)
    with pytest.raises(ModelUnavailableError) as caught:
        list(model.stream(QUESTION, soon()))
    assert len(server.requests) == 1
    assert caught.value.retry_after.total_seconds() in {30.0, 60.0}


@pytest.mark.parametrize("after", ["soon", "-5", "nan", ""])
def test_a_senseless_wait_is_passed_over(
    server: ScriptedModel, model: LanguageModel, after: str
) -> None:
    server.play([Refuse(429, headers={"Retry-After": after}), Say("here")])
    assert said(list(model.stream(QUESTION, soon()))) == "here"


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (Refuse(401, "Incorrect key sk-secret"), variable("llm_key")),
        (Refuse(403), variable("llm_key")),
        (Refuse(404, "no such model"), variable("llm_model")),
        (Refuse(400, "context_length_exceeded"), variable("llm_window")),
        (Refuse(429, code="insufficient_quota"), "used up"),
        (Raw(b"<html>Welcome</html>", "text/html"), variable("llm_url")),
    ],
)
def test_what_a_person_must_change_is_not_repeated(
    server: ScriptedModel, model: LanguageModel, reply: Refuse | Raw, advice: str
) -> None:
    server.play([reply, Say("never")])
    with pytest.raises(ModelRequestError, match=advice) as caught:
        list(model.stream(QUESTION, soon()))
    assert len(server.requests) == 1
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("status", [400, 404, 422, 500, 501])
def test_a_server_that_knows_no_tools_is_distinguished(
    server: ScriptedModel, model: LanguageModel, status: int
) -> None:
    server.play([Refuse(status, "this model does not support tools")])
    with pytest.raises(ToolsUnsupportedError):
        list(model.stream(QUESTION, soon(), [TOOL]))
    assert len(server.requests) == 1


def test_without_tools_the_word_means_nothing(server: ScriptedModel, model: LanguageModel) -> None:
    server.play([Refuse(400, "toolbox is broken")])
    with pytest.raises(ModelRequestError) as caught:
        list(model.stream(QUESTION, soon()))
    assert not isinstance(caught.value, ToolsUnsupportedError)


def test_an_older_server_is_asked_without_usage(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Refuse(400, "unknown field: stream_options"), Say("here")])
    assert said(list(model.stream(QUESTION, soon()))) == "here"
    assert "stream_options" not in server.requests[1].body


REASONS = Refuse(400, "Unsupported value: 'temperature' does not support 0.2 with this model.")


def test_a_model_that_refuses_a_temperature_is_asked_without_one(server: ScriptedModel) -> None:
    cold = LanguageModel(settings_for(server.base_url)).with_temperature(0.2)
    server.play([REASONS, Say("here"), Say("again")])
    assert said(list(cold.stream(QUESTION, soon()))) == "here"
    assert cold.refuses_temperature
    # Later steps of the same turn do not ask for the refusal again.
    assert said(list(cold.stream(QUESTION, soon()))) == "again"
    assert [one.body.get("temperature") for one in server.requests] == [0.2, None, None]
    # What one assistant sets says nothing of what another one may set.
    assert not cold.with_temperature(1.0).refuses_temperature
    # The next turn takes a copy of its own.
    assert cold.with_temperature(0.2).refuses_temperature
    cold.close()


def test_a_server_may_refuse_both_options(server: ScriptedModel) -> None:
    model = LanguageModel(settings_for(server.base_url, temperature=0.2))
    server.play([REASONS, Refuse(400, "unknown field: stream_options"), Say("here")])
    assert said(list(model.stream(QUESTION, soon()))) == "here"
    assert not {"temperature", "stream_options"} & set(server.requests[2].body)
    model.close()


def test_without_a_temperature_the_word_means_nothing(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([REASONS, Say("never")])
    with pytest.raises(ModelRequestError):
        list(model.stream(QUESTION, soon()))
    assert not model.refuses_temperature


def test_an_older_server_that_fails_as_well_is_no_silence(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Refuse(500), Refuse(500), Refuse(400, "unknown field: stream_options")])
    with pytest.raises(ModelRequestError):
        list(model.stream(QUESTION, soon()))


@pytest.mark.parametrize(
    "reply",
    [
        Say("cut off here", manner=Manner(cut_after=2)),
        Raw(b'data: {"choices": [{"delta": {"content": "no end"}}]}\n\n'),
        Say("then garbage", manner=Manner(garbage_after=1)),
        Say("then an error", manner=Manner(error_after=1)),
        Raw(b"data: \xff\xfe\n\n"),
        Raw(b'data: "hello"\n\n'),
        Raw(b"data: [1, 2]\n\n"),
        Raw(b'data: {"choices": 7}\n\n'),
        Raw(b'data: {"choices": [{"delta": {"content": {"a": 1}}}]}\n\n'),
        Raw(b'data: {"choices": [null]}\n\n'),
        Raw(b"data: " + b"[" * 100_000 + b"\n\n"),
        Raw(b"Good morning."),
        Raw(b""),
    ],
)
def test_garbage_and_what_breaks_off_is_reported_as_such(
    server: ScriptedModel, model: LanguageModel, reply: Say | Raw
) -> None:
    server.play([reply, Say("never")])
    with pytest.raises(MalformedCompletionError):
        list(model.stream(QUESTION, soon()))
    assert len(server.requests) == 1


def test_a_stream_that_ends_without_a_reason_is_whole(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Say("25 days.", finish=None), Call(ToolUse("internal_search", "{}"))])
    assert said(events := list(model.stream(QUESTION, soon()))) == "25 days."
    assert events[-1] == Finished("stop")


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS"])
def test_the_reason_for_the_end_is_reported_in_lower_case(
    server: ScriptedModel, model: LanguageModel, reason: str
) -> None:
    server.play([Say("25 days.", finish=reason)])
    assert list(model.stream(QUESTION, soon()))[-1] == Finished(reason.lower(), Usage(7, 2))


def test_halves_of_characters_are_joined_and_replaced(
    server: ScriptedModel, model: LanguageModel
) -> None:
    arguments = ['{"queries": ["\ud83d', '\ude00 \udc80"]}']
    calls = [
        delta(
            tool_calls=[{"index": 0, "id": "a\ud83d", "function": {"name": "n", "arguments": one}}]
        )
        for one in arguments
    ]
    halves = (
        delta(reasoning_content="hm \ud83d"),
        delta(reasoning_content="\ude00"),
        delta(content="\ude00a\ud83d"),
        delta(content="\ude00b\ud83d"),
        delta(content="c"),
        *calls,
        delta("stop", content="\ud83d"),
    )
    server.play([Raw(sse(*halves))])
    events = list(model.stream(QUESTION, soon()))
    assert thought(events) == "hm 😀"
    assert said(events) == "\ufffda😀b\ufffdc\ufffd"
    assert events[-2] == ToolCall("a\ufffd", "n", '{"queries": ["😀 \ufffd"]}')


@given(st.lists(st.text(st.characters(), max_size=4) | st.sampled_from(["\ud83d", "\ude00", "a"])))
def test_no_half_of_a_character_comes_through(pieces: list[str]) -> None:
    joiner = SurrogateJoiner()
    actual = "".join([*map(joiner.feed, pieces), joiner.end()])
    assert actual == join_surrogates("".join(pieces))
    assert actual.encode().decode() == actual


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.data(),
)
def test_events_are_read_however_their_bytes_are_cut(
    texts: list[str], newline: str, data: st.DataObject
) -> None:
    lines = [f": c{newline}id: 1{newline}data: {text}{newline * 2}" for text in texts]
    whole = "".join(lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=9)))
    pieces = [whole[i:j] for i, j in itertools.pairwise([0, *cuts, len(whole)])]
    assert list(read_event_data(pieces)) == texts


def test_what_was_said_before_the_break_is_reported(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Say(["one ", "two ", "three"], manner=Manner(cut_after=2))])
    heard: list[ModelEvent] = []
    with pytest.raises(MalformedCompletionError):
        heard.extend(model.stream(QUESTION, soon()))
    assert said(heard) == "one two "


def test_an_error_before_the_first_piece_is_repeated(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Say("x", manner=Manner(error_after=0)), Say("here")])
    assert said(list(model.stream(QUESTION, soon()))) == "here"


@pytest.mark.parametrize(
    "reply",
    [
        Silent(),
        Say("never", manner=Manner(stall_after=0)),
        Say("stalls here", manner=Manner(stall_after=2)),
        Say("slowly " * 1000, manner=Manner(delay=0.02)),
    ],
)
def test_a_stream_is_cut_at_the_deadline(
    server: ScriptedModel, model: LanguageModel, reply: Say | Silent
) -> None:
    server.play([reply] * 3)
    start = time.monotonic()
    with pytest.raises(ModelTimeoutError, match="time allowed"):
        list(model.stream(QUESTION, Deadline.after(0.4)))
    assert 0.3 < time.monotonic() - start < 20
    assert len(server.requests) == 1


def test_nothing_is_asked_after_the_deadline(server: ScriptedModel, model: LanguageModel) -> None:
    with pytest.raises(ModelTimeoutError):
        list(model.stream(QUESTION, Deadline.after(0)))
    assert server.requests == []


def test_closing_the_stream_closes_the_connection(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Say(["one", "two"], manner=Manner(stall_after=1))])
    stream = model.stream(QUESTION, soon())
    next(iter(stream))
    stream.close()
    assert server.hung_up.wait(30)


def test_where_nothing_listens_the_message_says_what_to_check() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    model = LanguageModel(settings_for(f"http://127.0.0.1:{port}/v1"))
    with pytest.raises(ModelUnavailableError, match="Check that it runs"):
        list(model.stream(QUESTION, soon()))
    model.close()


def test_a_connection_that_is_reset_at_once_is_reported_as_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reset = threading.Event()
    ask_for_peer = socket.socket.getpeername

    def ask_late(connected: socket.socket) -> object:
        assert reset.wait(10)
        return ask_for_peer(connected)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=_reset_one, args=(listening, reset))
        accepting.start()
        monkeypatch.setattr(socket.socket, "getpeername", ask_late)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        broken = LanguageModel(settings_for(address, first_backoff=60.0))
        with pytest.raises(ModelUnavailableError, match="is not reached"):
            next(broken.stream(QUESTION, soon()))
        accepting.join()
        broken.close()


def _reset_one(listening: socket.socket, reset: threading.Event) -> None:
    connection, _ = listening.accept()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    reset.set()


def test_an_error_body_that_breaks_off_is_still_one_of_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        broken = LanguageModel(
            settings_for(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", first_backoff=9.0)
        )
        stream = broken.stream(QUESTION, soon())
        with pytest.raises(ModelError):
            _answer_half_an_error(listening, stream)
        broken.close()


def _answer_half_an_error(listening: socket.socket, stream: Iterator[ModelEvent]) -> None:
    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 500 Oops\r\nContent-Length: 1000\r\n\r\nhalf")

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        next(stream)
    finally:
        thread.join()


def test_half_a_character_does_not_stop_a_request(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Say("here")])
    assert said(list(model.stream((ChatMessage("user", "a\udc80b"),), soon()))) == "here"
    assert server.requests[0].messages[0]["content"] == "a?b"


@pytest.mark.parametrize("key", ["sk-secret-clé", "sk-secret\n", "sk-sec\nret", "sk-secret "])
def test_a_key_that_cannot_be_sent_is_reported_and_not_quoted(
    server: ScriptedModel, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A line break at its end comes with many a file that holds a key."""
    model = LanguageModel(settings_for(server.base_url, api_key=key))
    with pytest.raises(ModelRequestError, match=variable("llm_key")) as caught:
        list(model.stream(QUESTION, soon()))
    model.close()
    assert "sk-sec" not in "".join(traceback.format_exception(caught.value))
    assert "sk-sec" not in caplog.text
    assert not server.requests


def test_the_key_is_not_shown_with_the_settings() -> None:
    assert "sk-secret" not in repr(settings_for("http://127.0.0.1/v1"))


def test_a_quarter_of_a_small_window_is_the_most_that_an_answer_takes() -> None:
    assert settings_for("http://x/v1", context_window=4_000).prompt_tokens == 3_000
    assert settings_for("http://x/v1", context_window=32_000).prompt_tokens == 32_000 - 2_048


@pytest.mark.parametrize(
    "script", [[Refuse(401, "Incorrect key sk-sec")], [Refuse(500, "sk-sec")] * 3, [HangUp()] * 3]
)
def test_what_a_server_said_goes_to_the_log_alone(
    server: ScriptedModel,
    model: LanguageModel,
    script: list[Refuse | HangUp],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.play(script)
    with pytest.raises(ModelError) as caught:
        list(model.stream(QUESTION, soon()))
    assert caught.value.summary.startswith("The language model ")
    assert not {"sk-sec", "QUARRY_", "127.0.0.1"} & set(caught.value.summary.split())
    assert str(caught.value).startswith(caught.value.summary)
    assert [record.getMessage() for record in caplog.records] == [str(caught.value)]


def test_a_completion_fails_without_what_the_server_said(
    server: ScriptedModel, model: LanguageModel
) -> None:
    server.play([Refuse(401, "Incorrect key sk-sec")])
    with pytest.raises(CompletionError) as caught:
        make_complete(model)(QUESTION, soon())
    assert str(caught.value) == "The language model refused the key."
    assert "sk-sec" in str(caught.value.__cause__)


def test_a_completion_is_the_text_alone(server: ScriptedModel, model: LanguageModel) -> None:
    server.play([Say(" annual leave \n", reasoning="hm")])
    assert make_complete(model)(QUESTION, soon()) == "annual leave"


@pytest.mark.parametrize("reply", [Refuse(401), Refuse(500), Say(""), Say(" \n"), Raw(b"data: {")])
def test_a_completion_fails_in_one_way_only(
    server: ScriptedModel, model: LanguageModel, reply: Refuse | Say | Raw
) -> None:
    server.play([reply] * 3)
    with pytest.raises(CompletionError):
        make_complete(model)(QUESTION, soon())


def test_nothing_is_sent_to_where_a_machine_gets_its_credentials(
    server: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a name resolves to: the address of the connection counts."""
    monkeypatch.setattr(client, "find_forbidden", lambda host: f"{host} is the metadata service")
    server.play([Say("secrets")])
    settings = ModelSettings(base_url=server.base_url, model="m", first_backoff=0.01)
    with pytest.raises(ModelUnavailableError, match="metadata service"):
        list(LanguageModel(settings).stream([], Deadline.after(5)))
    assert server.requests == []
