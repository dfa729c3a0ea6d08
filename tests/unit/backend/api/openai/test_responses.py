"""`POST /v1/responses`, asked by OpenAI's own client."""

from typing import Any

import openai
import pytest
from openai.types.responses import Response

from tests.support.language_models import add_model
from tests.support.scripted_model import Refuse, Say, ScriptedModel
from tests.unit.backend.api.conftest import SOURCE
from tests.unit.backend.api.openai.conftest import BAND, PICTURE, QUESTION, Office, cite_all


def ask(client: openai.OpenAI, question: Any = QUESTION, **more: Any) -> Response:
    found: Response = client.responses.create(**({"model": "default", "input": question} | more))
    return found


def stream(client: openai.OpenAI, question: Any = QUESTION, **more: Any) -> list[Any]:
    asked = {"model": "default", "input": question, "stream": True}
    return list(client.responses.create(**(asked | more)))


def read_citations(answer: Response) -> list[Any]:
    (message,) = answer.output
    assert message.type == "message"
    (part,) = message.content
    assert part.type == "output_text"
    return list(part.annotations)


def test_an_answer_has_its_sources_as_annotations(office: Office, ann: openai.OpenAI) -> None:
    answer = ask(ann)
    assert (answer.status, answer.model) == ("completed", "default")
    assert answer.output_text == "Parents have 26 weeks [1]."
    (cited,) = read_citations(answer)
    assert answer.output_text[cited.start_index : cited.end_index] == "[1]"
    assert cited.url == f"{office.url}/document/{SOURCE}:leave.md"
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0


def test_a_stream_ends_with_the_whole_answer(ann: openai.OpenAI) -> None:
    events, whole = stream(ann), ask(ann)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 3
    assert "".join(deltas) == whole.output_text == events[-1].response.output_text
    others = [event.type for event in events if event.type != "response.output_text.delta"]
    assert others == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.annotation.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert read_citations(events[-1].response) == read_citations(whole)


def test_the_clients_own_helper_gathers_a_stream(ann: openai.OpenAI) -> None:
    with ann.responses.stream(model="default", input=QUESTION) as events:
        for _ in events:
            pass
        assert events.get_final_response().output_text == "Parents have 26 weeks [1]."


def test_what_was_said_before_and_instructions_reach_the_model(
    ann: openai.OpenAI, model: ScriptedModel
) -> None:
    said = [
        {"role": "user", "content": "Do you know the handbook?"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look things up.", "annotations": []}],
        },
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
    ]
    ask(ann, said, instructions="Answer like a pirate.")
    (asked,) = [request for request in model.requests if request.answers]
    assert "Answer like a pirate." in asked.messages[0]["content"]
    assert "I look things up." in asked.text
    assert asked.questions[-1] == QUESTION


def test_a_limit_leaves_the_answer_incomplete(ann: openai.OpenAI) -> None:
    answer = ask(ann, max_output_tokens=4)
    assert (answer.status, answer.output_text) == ("incomplete", "Parents have 26")
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert stream(ann, max_output_tokens=4)[-1].type == "response.incomplete"


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"background": True}, "background"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"text": {"format": {"type": "json_object"}}}, "text"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input"),
        ({"input": [{"role": "assistant", "content": "I have 26"}]}, "input"),
        ({"input": ""}, "input"),
        ({"mystery": 1}, "mystery"),
    ],
)
def test_what_cannot_be_honored_is_refused_by_its_name(
    ann: openai.OpenAI, sent: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(ann, extra_body=sent)
    assert (refused.value.param or "").startswith(param)


def test_what_is_harmless_is_taken(ann: openai.OpenAI) -> None:
    answer = ask(
        ann,
        temperature=0.2,
        top_p=0.9,
        store=True,
        metadata={"team": "hr"},
        reasoning={"effort": "low"},
        text={"format": {"type": "text"}, "verbosity": "low"},
        truncation="auto",
        tools=[],
        include=[],
        background=False,
        user="u-1",
    )
    assert answer.status == "completed"


def test_a_picture_is_shown_to_a_model_that_sees(
    office: Office, ann: openai.OpenAI, model: ScriptedModel
) -> None:
    parts = [
        {"type": "input_text", "text": QUESTION},
        {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
    ]
    asked = [{"role": "user", "content": parts}]
    with pytest.raises(openai.BadRequestError, match="does not accept images") as refused:
        ask(ann, asked)
    assert refused.value.param == "input"
    add_model(office.container, "watcher", model.base_url, sees_pictures=True)
    assistant = office.add_assistant(model="watcher")
    answer = ann.responses.create(model=assistant, input=asked)  # type: ignore[arg-type]
    assert answer.output_text == "Parents have 26 weeks [1]."
    shown = [one for one in model.requests if one.answers]
    assert PICTURE in str(shown[-1].messages[-1]["content"])


def test_a_turn_that_fails_is_an_error(ann: openai.OpenAI, model: ScriptedModel) -> None:
    model.play(lambda _: Refuse(401))
    with pytest.raises(openai.InternalServerError, match="refused the key"):
        ask(ann, "zzzqqq xyzzy plugh")
    last = stream(ann, "zzzqqq xyzzy plugh")[-1]
    assert (last.type, last.response.status) == ("response.failed", "failed")
    assert "refused the key" in last.response.error.message


def test_what_is_too_long_for_the_model_is_the_fault_of_the_request(
    office: Office, ann: openai.OpenAI, model: ScriptedModel
) -> None:
    add_model(office.container, "narrow", model.base_url, context_window=4_000)
    assistant, long = office.add_assistant(model="narrow"), "a b " * 1_990
    with pytest.raises(openai.BadRequestError) as failed:
        ask(ann, long, model=assistant)
    assert failed.value.code == "context_length_exceeded"
    last = stream(ann, long, model=assistant)[-1]
    assert (last.type, last.response.error.code) == ("response.failed", "context_length_exceeded")


def test_a_member_is_never_told_of_what_others_read(
    ann: openai.OpenAI, bob: openai.OpenAI, model: ScriptedModel
) -> None:
    model.play(cite_all)
    for client, may_read in ((ann, True), (bob, False)):
        for answer in (ask(client, BAND), stream(client, BAND)[-1].response):
            assert ("finance/pay.md" in str(read_citations(answer))) is may_read


def test_an_answer_says_nothing_of_reasoning(ann: openai.OpenAI, model: ScriptedModel) -> None:
    model.play(lambda _: Say("So [1].", reasoning="A secret thought."))
    assert "secret thought" not in ask(ann).to_json() + str(stream(ann))
