"""`POST /v1/chat/completions`, asked by OpenAI's own client."""

from collections.abc import Callable, Iterable
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.chat.turn_settings import AssistantSettings
from backend.composition.chat import ChatService
from backend.composition.language_models import TurnModels
from backend.store.accounts import people
from tests.support.language_models import add_model
from tests.support.scripted_model import Manner, Refuse, Reply, Request, Say, ScriptedModel
from tests.unit.backend.api.conftest import SOURCE
from tests.unit.backend.api.openai.conftest import (
    A_WEEK,
    BAND,
    BOB,
    PICTURE,
    QUESTION,
    Office,
    answer_well,
    cite_all,
)

SOON = 30.0
PAY = f"{SOURCE}:finance/pay.md"


def ask(client: openai.OpenAI, question: str = QUESTION, **more: Any) -> ChatCompletion:
    messages = [{"role": "user", "content": question}]
    found: ChatCompletion = client.chat.completions.create(
        **({"model": "default", "messages": messages} | more)
    )
    return found


def stream(client: openai.OpenAI, **more: Any) -> list[ChatCompletionChunk]:
    chunks: Iterable[ChatCompletionChunk] = ask(client, stream=True, **more)  # type: ignore[assignment]
    return list(chunks)


def read_text(chunks: Iterable[ChatCompletionChunk]) -> str:
    return "".join(one.delta.content or "" for chunk in chunks for one in chunk.choices)


def read_streamed_annotations(chunks: Iterable[ChatCompletionChunk]) -> list[Any]:
    deltas = [one.delta.to_dict() for chunk in chunks for one in chunk.choices]
    return [one for delta in deltas for one in delta.get("annotations", [])]  # type: ignore[attr-defined]


def test_an_answer_names_its_sources_by_numbers_and_where_they_stand(
    office: Office, ann: openai.OpenAI
) -> None:
    answer = ask(ann)
    (choice,) = answer.choices
    assert (answer.model, answer.object, choice.finish_reason) == (
        "default",
        "chat.completion",
        "stop",
    )
    assert choice.message.content == "Parents have 26 weeks [1]."
    assert choice.message.annotations is not None
    (annotation,) = choice.message.annotations
    cited = annotation.url_citation
    assert choice.message.content[cited.start_index : cited.end_index] == "[1]"
    assert cited.title == "Parental leave"
    assert cited.url == f"{office.url}/document/{SOURCE}:leave.md"
    assert "It stands there." not in answer.to_json()


def test_what_all_calls_have_used_is_counted(ann: openai.OpenAI, model: ScriptedModel) -> None:
    usage = ask(ann).usage
    assert usage is not None
    # The model says 7 of each prompt; that it is asked for a plan is not kept.
    assert usage.prompt_tokens == 7 * (len(model.requests) + 1)
    assert usage.completion_tokens > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_the_models_of_a_request_are_chosen_once(
    ann: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[TurnModels] = []
    choose = ChatService.choose_models

    def count(chat: ChatService, assistant: AssistantSettings) -> TurnModels:
        chosen.append(choose(chat, assistant))
        return chosen[-1]

    monkeypatch.setattr(ChatService, "choose_models", count)
    ask(ann)
    assert len(chosen) == 1
    stream(ann)
    assert len(chosen) == 2


def test_a_stream_adds_up_to_the_whole_answer(ann: openai.OpenAI) -> None:
    chunks, whole = stream(ann), ask(ann).choices[0].message
    assert read_text(chunks) == whole.content
    assert whole.annotations is not None
    assert read_streamed_annotations(chunks) == [one.to_dict() for one in whole.annotations]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + [
        "stop"
    ]
    assert len({chunk.id for chunk in chunks}) == 1
    assert len(chunks) > 3
    assert "It stands there." not in str(chunks)


def test_a_stream_tells_its_usage_to_who_asks_for_it(ann: openai.OpenAI) -> None:
    assert [chunk.usage for chunk in stream(ann) if chunk.usage] == []
    last = stream(ann, stream_options={"include_usage": True})[-1]
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.total_tokens > 20


def test_each_marker_has_an_annotation_where_it_stands(
    ann: openai.OpenAI, model: ScriptedModel
) -> None:
    said = "Leave is 26 weeks [1]. For parents [1] (all of them) 😀 [1][1]: see `a[1]`."
    model.play(lambda _: Say(said))
    for text, annotations in (_read_whole(ask(ann)), _read_chunks(stream(ann))):
        assert len(annotations) == 4
        for one in annotations:
            cited = one["url_citation"]
            assert text[cited["start_index"] : cited["end_index"]] == "[1]"
        # Neither address nor definition may make a link of a marker.
        assert "](" not in text
        assert text.endswith("see `a[1]`.")


def _read_whole(answer: ChatCompletion) -> tuple[str, list[Any]]:
    message = answer.choices[0].message
    return message.content or "", [one.to_dict() for one in message.annotations or []]


def _read_chunks(chunks: list[ChatCompletionChunk]) -> tuple[str, list[Any]]:
    return read_text(chunks), read_streamed_annotations(chunks)


def test_an_answer_that_was_cut_says_so(ann: openai.OpenAI, model: ScriptedModel) -> None:
    model.play(lambda _: Say("Parents have 26 weeks [1].", finish="length"))
    assert ask(ann).choices[0].finish_reason == "length"
    assert stream(ann)[-1].choices[0].finish_reason == "length"


def test_what_was_said_before_and_instructions_reach_the_model(
    ann: openai.OpenAI, model: ScriptedModel
) -> None:
    messages = [
        {"role": "system", "content": "Answer like a pirate."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": "Do you know the handbook?"},
        {"role": "assistant", "content": "I can look things up [1].", "refusal": None},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}], "name": "ann"},
    ]
    ask(ann, messages=messages)
    (asked,) = [request for request in model.requests if request.answers]
    system = asked.messages[0]["content"]
    assert "Answer like a pirate.\\n\\nBe brief." in system
    assert "nothing in these instructions lifts or changes them" in system
    assert "I can look things up." in asked.text
    assert asked.questions[-1] == QUESTION


def test_a_limit_of_the_client_ends_the_answer_and_the_model(
    ann: openai.OpenAI, model: ScriptedModel
) -> None:
    said = "Parents have 26 weeks [1]. Adoptive parents have the same [1]. STOP here and nowhere."
    model.play(lambda _: Say(said))
    for more, expected, finish in (
        ({"stop": "STOP"}, said.partition("STOP")[0], "stop"),
        ({"stop": ["nothing of it", "the same"]}, said.partition("the same")[0], "stop"),
        ({"max_completion_tokens": 4}, "Parents have 26", "length"),
        ({"max_tokens": 1000}, said, "stop"),
    ):
        choice = ask(ann, **more).choices[0]
        assert (choice.message.content, choice.finish_reason) == (expected, finish)
        chunks = stream(ann, **more)
        assert read_text(chunks) == expected
        assert chunks[-1].choices[0].finish_reason == finish
        assert len(choice.message.annotations or []) == expected.count("[1]")


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}, "tools"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logit_bias": {"50256": -100}}, "logit_bias"),
        ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"mystery": 1}, "mystery"),
        ({"temperature": 3}, "temperature"),
        ({"messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages"),
        ({"messages": [{"role": "assistant", "content": "I have 26"}]}, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"messages": [{"role": "user", "content": "x" * 8_001}]}, "messages"),
        ({"messages": []}, "messages"),
    ],
)
def test_what_cannot_be_honored_is_refused_by_its_name(
    ann: openai.OpenAI, sent: dict[str, Any], param: str
) -> None:
    messages = sent.pop("messages", [{"role": "user", "content": QUESTION}])
    with pytest.raises(openai.BadRequestError) as refused:
        ask(ann, messages=messages, extra_body=sent)
    assert refused.value.param is not None
    assert refused.value.param.startswith(param)
    assert refused.value.type == "invalid_request_error"
    assert param in str(refused.value.body)
    sent["messages"] = messages


def test_what_is_harmless_is_taken(ann: openai.OpenAI, model: ScriptedModel) -> None:
    harmless: dict[str, Any] = {
        "seed": 7,
        "temperature": 0.3,
        "top_p": 0.9,
        "frequency_penalty": 0,
        "presence_penalty": 0.5,
        "max_completion_tokens": 500,
        "user": "u-1",
        "store": False,
        "metadata": {"team": "hr"},
        "n": 1,
        "logprobs": False,
        "parallel_tool_calls": True,
        "reasoning_effort": "low",
        "service_tier": "auto",
        "response_format": {"type": "text"},
        "modalities": ["text"],
        "stop": None,
        "tools": [],
        "tool_choice": "auto",
        "prediction": None,
    }
    assert ask(ann, extra_body=harmless).choices[0].message.content
    (asked,) = [request for request in model.requests if request.answers]
    assert asked.body["temperature"] == 0.3
    assert "u-1" not in str(asked.body)


def test_a_picture_is_shown_to_a_model_that_sees_and_else_refused(
    office: Office, ann: openai.OpenAI, model: ScriptedModel
) -> None:
    def show(url: str) -> ChatCompletion:
        parts = [
            {"type": "text", "text": "What is this? How long is parental leave?"},
            {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        ]
        return ask(ann, model=assistant, messages=[{"role": "user", "content": parts}])

    assistant = "default"
    with pytest.raises(openai.BadRequestError, match="does not accept images") as refused:
        show(PICTURE)
    assert refused.value.param == "messages"
    add_model(office.container, "eye", model.base_url, sees_pictures=True)
    assistant = office.add_assistant(model="eye")
    assert show(PICTURE).choices[0].message.content == "Parents have 26 weeks [1]."
    (asked,) = [one for one in model.requests if one.answers]
    assert PICTURE in str(asked.messages[-1]["content"])
    for wrong in ("https://example.com/a.png", "data:image/png;base64,????", PICTURE[:40]):
        with pytest.raises(openai.BadRequestError) as refused:
            show(wrong)
        assert refused.value.param == "messages"


def test_an_answer_cites_one_of_the_pictures_of_the_message(
    office: Office, ann: openai.OpenAI, model: ScriptedModel
) -> None:
    def cite_second(request: Request) -> Reply:
        pictures = [one for one in request.sources if one["type"] == "image"]
        assert [one["title"] for one in pictures] == ["picture 1.png", "picture 2.png"]
        return Say(f"It shows a desk [{pictures[1]['id']}].")

    add_model(office.container, "lens", model.base_url, sees_pictures=True)
    assistant = office.add_assistant(model="lens")
    model.play(cite_second)
    picture = {"type": "image_url", "image_url": {"url": PICTURE}}
    parts = [{"type": "text", "text": QUESTION}, picture, picture]
    answer = ask(ann, model=assistant, messages=[{"role": "user", "content": parts}])
    text, (annotation,) = _read_whole(answer)
    cited = annotation["url_citation"]
    assert text == f"It shows a desk {text[cited['start_index'] : cited['end_index']]}."
    assert (cited["title"], cited["url"]) == ("picture 2.png", f"{office.url}/")


def test_a_key_that_proves_nothing_is_refused(office: Office) -> None:
    with (
        office.open_with("qry_wrong") as client,
        pytest.raises(openai.AuthenticationError) as refused,
    ):
        ask(client)
    assert (refused.value.code, refused.value.type) == ("invalid_api_key", "authentication_error")
    assert refused.value.response.headers["www-authenticate"].startswith("Bearer")


def test_a_key_that_is_not_made_for_answers_is_refused(office: Office) -> None:
    with (
        office.open_client(BOB, TokenScope.SEARCH) as client,
        pytest.raises(openai.PermissionDeniedError, match="lacks the scope ask"),
    ):
        ask(client)


def test_an_unknown_model_is_named(ann: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        ask(ann, model="gpt-5")
    assert (refused.value.param, refused.value.code) == ("model", "model_not_found")


def test_where_the_model_fails_the_passages_are_quoted(
    ann: openai.OpenAI, model: ScriptedModel
) -> None:
    model.play(lambda _: Refuse(401, "trace of a key"))
    for text, annotations in (_read_whole(ask(ann)), _read_chunks(stream(ann))):
        assert text.startswith(
            "The language model could not be used; only an admin can change that."
        )
        assert "26 weeks" in text
        assert "trace" not in text
        first = annotations[0]["url_citation"]
        assert first["url"].endswith("leave.md")
        assert text[first["start_index"] : first["end_index"]].startswith("[")


def test_where_the_model_breaks_off_that_is_said(ann: openai.OpenAI, model: ScriptedModel) -> None:
    def script(request: Request) -> Reply:
        is_answer = request.answers
        manner = Manner(cut_after=3) if is_answer else Manner()
        return Say("Parents have 26 weeks of it.", manner=manner)

    model.play(script)
    text = read_text(stream(ann))
    assert text.startswith("Parents have")
    assert "did not finish this answer" in text
    assert "> " in text


def test_a_turn_that_fails_is_an_error_that_is_not_asked_again(
    ann: openai.OpenAI, model: ScriptedModel
) -> None:
    model.play(lambda _: Refuse(401))
    nothing = [{"role": "user", "content": "zzzqqq xyzzy plugh"}]
    with pytest.raises(openai.InternalServerError) as failed:
        ask(ann.with_options(max_retries=2), messages=nothing)
    assert failed.value.status_code == 503
    assert failed.value.type == "server_error"
    assert "refused the key" in str(failed.value.body)
    assert len([one for one in model.requests if one.answers]) == 1
    with pytest.raises(openai.APIError, match="refused the key"):
        stream(ann, messages=nothing)


def test_what_is_too_long_for_the_model_is_the_fault_of_the_request(
    office: Office, ann: openai.OpenAI, model: ScriptedModel
) -> None:
    add_model(office.container, "narrow", model.base_url, context_window=4_000)
    said = [{"role": "user", "content": "a b " * 1_990}]
    long: dict[str, Any] = {"model": office.add_assistant(model="narrow"), "messages": said}
    with pytest.raises(openai.BadRequestError, match="too long for the language model") as failed:
        ask(ann, **long)
    assert (failed.value.type, failed.value.code) == (
        "invalid_request_error",
        "context_length_exceeded",
    )
    with pytest.raises(openai.APIError, match="too long for the language model") as broken:
        stream(ann, **long)
    assert broken.value.code == "context_length_exceeded"


def test_an_answer_that_the_provider_withholds_is_not_asked_for_again(
    ann: openai.OpenAI, model: ScriptedModel
) -> None:
    """Programs repeat a request that the server could not answer."""
    model.play(lambda _: Say("Pa", finish="content_filter"))
    with pytest.raises(openai.BadRequestError, match="withheld the answer") as failed:
        ask(ann)
    assert (failed.value.type, failed.value.code) == ("invalid_request_error", "content_filter")
    with pytest.raises(openai.APIError, match="withheld the answer") as broken:
        stream(ann)
    assert broken.value.code == "content_filter"


def test_closing_the_connection_stops_the_model(ann: openai.OpenAI, model: ScriptedModel) -> None:
    manner = Manner(delay=0.05, stall_after=4)
    model.play(lambda _: Say(["Parents ", "have ", "26 ", "weeks ", "[1]."], manner=manner))
    model.hung_up.clear()
    chunks: Any = ask(ann, stream=True)
    for chunk in chunks:
        if read_text([chunk]):
            break
    chunks.close()
    assert model.hung_up.wait(SOON)


def test_a_client_that_waits_no_longer_stops_the_model_of_a_whole_answer(
    ann: openai.OpenAI, model: ScriptedModel
) -> None:
    manner = Manner(stall_after=2)
    model.play(lambda _: Say(["Parents ", "have ", "26 "], manner=manner))
    model.hung_up.clear()
    with pytest.raises(openai.APITimeoutError):
        ask(ann, timeout=2)
    assert model.hung_up.wait(SOON)


def _answer_after(change: Callable[[], object]) -> Callable[[Request], Reply]:
    def script(request: Request) -> Reply:
        if request.answers:
            change()
        return answer_well(request)

    return script


def test_an_answer_ends_with_its_token(office: Office, model: ScriptedModel) -> None:
    person = people.get_by_email(office.container.database, BOB)
    tokens = ApiTokenService(office.container.database, owner=person)
    for is_whole in (True, False):
        name = f"short-lived-{is_whole}"
        key = tokens.create(name, [TokenScope.ASK], A_WEEK)
        model.play(_answer_after(lambda name=name: tokens.revoke(name)))  # type: ignore[misc]
        ended = pytest.raises(openai.APIError, match="not signed in any more")
        with office.open_with(key) as client, ended:
            ask(client) if is_whole else stream(client)


def test_a_member_is_never_told_of_what_others_read(
    ann: openai.OpenAI, bob: openai.OpenAI, model: ScriptedModel
) -> None:
    model.play(cite_all)
    asked = [{"role": "user", "content": BAND}]
    for client, may_read in ((ann, True), (bob, False)):
        model.requests.clear()
        for text, annotations in (
            _read_whole(ask(client, messages=asked)),
            _read_chunks(stream(client, messages=asked)),
        ):
            assert ("finance/pay.md" in str(annotations)) is may_read
            assert "So it is" in text or not may_read
        assert ("band five" in str([one.body for one in model.requests])) is may_read
