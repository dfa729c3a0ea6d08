"""A try of a model: what it can, what is wrong, what to do."""

import pytest

from backend.chat.llm.client import LanguageModel
from backend.chat.llm.model_check import check_model
from backend.chat.llm.model_settings import ModelSettings, SettingNames
from indexing.runtime.deadline import Deadline
from tests.support.scripted_model import (
    Call,
    Refuse,
    Reply,
    Request,
    Say,
    Script,
    ScriptedModel,
    Silent,
    ToolUse,
)

SECRET = "sk-secret-key"


def _check(server: ScriptedModel, script: Script, seconds: float = 10, **settings: object):  # type: ignore[no-untyped-def]
    server.play(script)
    usual = {
        "base_url": server.base_url,
        "model": "scripted",
        "api_key": SECRET,
        "first_backoff": 0.01,
        "name": "large",
        "names": SettingNames.of_stored("large"),
    }
    model = LanguageModel(ModelSettings(**(usual | settings)))  # type: ignore[arg-type]
    return check_model(model, Deadline.after(seconds))


def _well(request: Request) -> Reply:
    if request.tool_names:
        return Call(ToolUse(request.tool_names[0], {"text": "ready"}))
    return Say("one, two,\nthree, four, five")


def test_a_model_that_can_all_of_it(server: ScriptedModel) -> None:
    found = _check(server, _well)
    assert (found.answers, found.streams, found.calls_tools) == (True, True, True)
    assert found.answer == "one, two, three, four, five"
    assert found.takes_temperature is True
    assert (found.trouble, found.advice) == ("", "")


def test_one_that_refuses_a_temperature_is_told_apart(server: ScriptedModel) -> None:
    def refuse(request: Request) -> Reply:
        if "temperature" in request.body:
            return Refuse(400, "Unsupported value: 'temperature'")
        return _well(request)

    found = _check(server, refuse)
    assert found.takes_temperature is False
    # It is no trouble: assistants are answered without it.
    assert (found.answers, found.calls_tools, found.trouble) == (True, True, "")


def test_one_that_calls_no_tools_is_told_apart(server: ScriptedModel) -> None:
    for answer in (Refuse(400, "tools are not supported"), Say("ready")):
        script: list[Say | Refuse] = [Say(["one"]), answer]
        found = _check(server, script)
        assert (found.answers, found.streams, found.calls_tools) == (True, False, False)
        assert "calls no tools" in found.trouble
        assert "Set it" in found.advice
    told = _check(server, [Say("one"), Say("ready")], calls_tools=False)
    assert told.trouble == ""
    assert "Set it to call tools" in _check(server, _well, calls_tools=False).advice


def test_a_failure_of_the_second_question_is_no_failure(server: ScriptedModel) -> None:
    found = _check(server, [Say("one, two"), *[Refuse(500, "out of order")] * 6])
    assert (found.answers, found.calls_tools, found.trouble) == (True, None, "")
    assert found.takes_temperature is None


@pytest.mark.parametrize(
    ("script", "trouble", "advice"),
    [
        (lambda _: Refuse(401, f"wrong key {SECRET}"), "refused the key", "the key of large"),
        (lambda _: Refuse(404, "no such model"), "not found", "the model id of large"),
        (lambda _: Refuse(500, "out of order"), "failed", "out of order"),
        (lambda _: Refuse(429, "slow down"), "busy", "slow down"),
        (lambda _: Say(""), "empty answer", "chats"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    server: ScriptedModel, script: Script, trouble: str, advice: str
) -> None:
    found = _check(server, script)
    assert not found.answers
    assert trouble in found.trouble
    assert advice in found.advice
    assert SECRET not in f"{found}"
    assert "QUARRY_LLM" not in found.advice


def test_an_answer_does_not_repeat_the_key(server: ScriptedModel) -> None:
    found = _check(server, lambda request: Say(f"I was sent {request.headers['authorization']}."))
    assert found.answer == "I was sent Bearer …."


def test_a_silent_one_is_not_waited_for(server: ScriptedModel) -> None:
    found = _check(server, lambda _: Silent(), seconds=0.3)
    assert "time allowed" in found.trouble


def test_one_that_is_not_there(server: ScriptedModel) -> None:
    found = _check(server, _well, base_url="http://127.0.0.1:1/v1")
    assert found.trouble == "The language model did not answer."
    assert "the base URL of large is right" in found.advice
