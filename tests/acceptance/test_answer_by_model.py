"""`quarry ask` with a language model behind its real protocol, well and ill."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.home import Home, Run
from tests.support.scripted_model import (
    Call,
    HangUp,
    Manner,
    Refuse,
    Reply,
    Request,
    Say,
    ScriptedModel,
    ToolUse,
)

QUESTION = "What should a customer do when the scanner shows QX-4031?"
ERRORS = "handbook:support/error-codes-scanners.html"
ANSWER = "QX-4031 means that the interlock of the laser is open [{n}]. It costs 900 euros [{n}]. See [99]."


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def _ask(home: Home, server: ScriptedModel, *arguments: str) -> Run:
    return home.quarry(
        "ask", QUESTION, *arguments, QUARRY_LLM_URL=server.base_url, QUARRY_LLM_MODEL="scripted"
    )


def _number_of_errors(request: Request) -> int:
    """The citation number under which the model was shown the right document."""
    (shown,) = [m["content"] for m in request.messages if m["role"] == "tool"]
    found = json.loads(shown)["results"]
    return int(next(r["document"] for r in found if "scanners" in r["title"].lower()))


def _well(request: Request) -> Reply:
    """A model that searches, answers, and helps with the search where it is asked to."""
    roles = [message["role"] for message in request.messages]
    if "tool" in roles:
        return Say(ANSWER.format(n=_number_of_errors(request)))
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["QX-4031 interlock"]}))
    return Say("QX-4031 laser interlock open")


def test_an_answer_is_written_and_each_citation_checked(home: Home, server: ScriptedModel) -> None:
    server.play(_well)
    run = _ask(home, server, "--json")
    assert run.code == 0, run.err
    answer = run.json
    assert answer["model"] == "scripted"
    first, second = answer["citations"]
    assert {first["document_id"], second["document_id"]} == {ERRORS}
    assert "QX-4031" in first["quote"]
    assert second["verdict"] != "supported"  # nothing there speaks of 900 euros
    assert "See." in answer["answer"]  # the number that no document has is gone
    assert f"[[{first['number']}]]({first['link']})" in answer["answer"]


def test_the_terminal_shows_the_answer_with_its_quotes(home: Home, server: ScriptedModel) -> None:
    server.play(_well)
    run = _ask(home, server)
    assert run.code == 0, run.err
    assert "interlock of the laser is open" in run.out
    assert "file://" in run.out
    assert "No language model" not in run.out


def test_an_answer_that_was_cut_says_so(home: Home, server: ScriptedModel) -> None:
    def cut(request: Request) -> Reply:
        reply = _well(request)
        return Say(reply.text, finish="length") if isinstance(reply, Say) else reply

    server.play(cut)
    assert _ask(home, server, "--json").json["cut"] is True
    assert "The answer was cut" in _ask(home, server).out


def _spoiled(manner: Manner) -> Any:
    def script(request: Request) -> Reply:
        reply = _well(request)
        is_answer = any(message["role"] == "tool" for message in request.messages)
        return Say("The interlock is open.", manner=manner) if is_answer else reply

    return script


@pytest.mark.parametrize(
    "script",
    [
        _spoiled(Manner(cut_after=2)),  # the connection ends in mid-sentence
        _spoiled(Manner(garbage_after=2)),  # what comes is no JSON
        lambda _: Refuse(401, "wrong key"),  # the owner must mend this
        lambda _: Refuse(500),  # and this passes, or not
        lambda _: HangUp(),
    ],
    ids=["cut", "garbage", "401", "500", "hang-up"],
)
def test_a_model_that_fails_is_told_of_in_words(
    home: Home, server: ScriptedModel, script: Any
) -> None:
    server.play(script)
    run = _ask(home, server, "--json")
    assert run.code == 1
    assert "Traceback" not in run.err
    assert run.json["error"].endswith((".", "s."))


def test_a_model_that_stalls_is_given_up_at_the_deadline(home: Home, server: ScriptedModel) -> None:
    server.play(_spoiled(Manner(stall_after=1)))
    run = home.quarry(
        "ask",
        QUESTION,
        "--json",
        QUARRY_LLM_URL=server.base_url,
        QUARRY_LLM_MODEL="scripted",
        QUARRY_ANSWER_SECONDS="4",
    )
    assert run.code == 1
    assert "error" in run.json


def test_what_the_asker_may_not_read_never_reaches_the_model(
    home: Home, server: ScriptedModel
) -> None:
    server.play(_well)
    home.quarry(
        "ask",
        "What is the salary band of a senior engineer?",
        QUARRY_LLM_URL=server.base_url,
        QUARRY_LLM_MODEL="scripted",
    )
    assert server.requests
    assert "salary-bands" not in " ".join(request.text for request in server.requests)
