"""`quarry ask` with a language model behind its real protocol, well and ill."""

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
    return int(next(r["number"] for r in request.sources if "scanners" in r["title"].lower()))


def _well(request: Request) -> Reply:
    """A model that searches, answers, and helps with the search where it is asked to."""
    if request.has_sources:
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


def test_what_cites_nothing_is_listed(home: Home, server: ScriptedModel) -> None:
    server.play(_well)
    assert _ask(home, server, "--json").json["uncited"] == []

    def saying(text: str) -> Any:
        def script(request: Request) -> Reply:
            is_answer = request.has_sources
            return Say(text.format(n=_number_of_errors(request))) if is_answer else _well(request)

        return script

    server.play(saying("QX-4031 is an open interlock [{n}]. The laser costs 900 euros."))
    assert _ask(home, server, "--json").json["uncited"] == ["The laser costs 900 euros."]
    assert "Without a source:\n    The laser costs 900 euros.\n" in _ask(home, server).out
    server.play(saying("The laser costs 900 euros."))
    run = _ask(home, server)
    assert "From general knowledge, not from a source. Check it before you rely on it." in run.out


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
        is_answer = request.has_sources
        return Say("The interlock is open.", manner=manner) if is_answer else reply

    return script


def _calling_for_ever(request: Request) -> Reply:
    """A model that calls a tool whether or not it is offered one."""
    return Call(ToolUse("internal_search", {"queries": [f"QX-4031 {len(request.messages)}"]}))


FAILED = "The language model did not answer. These passages come closest."
REFUSED = (
    "The language model could not be used; only an admin can change that."
    " These passages come closest."
)
BROKE_OFF = "The language model did not finish this answer. These passages come closest."
SECRET = "sk-secret-part"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (lambda _: Refuse(401, f"wrong key {SECRET}"), REFUSED),
        (lambda _: HangUp(), FAILED),
        (_calling_for_ever, FAILED),
    ],
    ids=["401", "hang-up", "calls"],
)
def test_a_model_that_fails_leaves_the_passages_and_one_sentence(
    home: Home, server: ScriptedModel, script: Any, said: str
) -> None:
    server.play(script)
    run = _ask(home, server, "--json")
    assert run.code == 0, run.err
    answer = run.json
    assert (answer["answered"], answer["answer"], answer["citations"]) == (False, said, [])
    assert answer["model"] is None
    assert answer["passages"][0]["document_id"] == ERRORS
    assert "QX-4031" in answer["passages"][0]["quote"]
    assert SECRET not in run.out + run.err
    assert "Traceback" not in run.err


def test_the_terminal_shows_the_passages_of_a_failed_answer(
    home: Home, server: ScriptedModel
) -> None:
    server.play(lambda _: Refuse(401, f"wrong key {SECRET}"))
    run = _ask(home, server)
    assert run.code == 0, run.err
    assert " ".join(run.out.split()).count(REFUSED) == 1
    assert "Close the cover until it clicks" in " ".join(run.out.split())
    assert SECRET not in run.out + run.err


def test_what_was_written_before_a_failure_stays_with_the_passages(
    home: Home, server: ScriptedModel
) -> None:
    server.play(_spoiled(Manner(cut_after=4)))
    answer = _ask(home, server, "--json").json
    assert (answer["answered"], answer["answer"]) == (False, "The interlock is")
    assert answer["passages"][0]["document_id"] == ERRORS
    out = _ask(home, server).out
    assert out.index("The interlock is") < out.index(BROKE_OFF)


def test_a_model_that_stalls_is_given_up_at_the_deadline(home: Home, server: ScriptedModel) -> None:
    server.play(_spoiled(Manner(stall_after=0)))
    run = home.quarry(
        "ask",
        QUESTION,
        "--json",
        QUARRY_LLM_URL=server.base_url,
        QUARRY_LLM_MODEL="scripted",
        QUARRY_ANSWER_SECONDS="4",
    )
    # On a slow machine the search may be late as well: then nothing was found.
    assert "error" in run.json or (run.json["answer"] == FAILED and run.json["passages"])
    assert "Traceback" not in run.err


def test_where_nothing_was_found_a_failure_is_an_error(home: Home, server: ScriptedModel) -> None:
    server.play(lambda _: Refuse(401, f"wrong key {SECRET}"))
    settings = {"QUARRY_LLM_URL": server.base_url, "QUARRY_LLM_MODEL": "scripted"}
    run = home.quarry("ask", "zzzqqq xyzzy plugh", "--json", **settings)
    assert run.code == 1
    assert run.json["error"].startswith("The language model refused the key.")
    assert SECRET not in run.out + run.err


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
