"""Which language model answers: default, fast and fallback, changed while the server runs, and budgets."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from backend.chat import model_turn
from backend.chat.prompts import judging_prompt
from backend.container import Container
from backend.store.accounts.people import NOBODY
from backend.store.audit import OWNER
from backend.store.llm import model_usage
from backend.store.llm.language_models import ModelRole
from backend.store.llm.model_usage import ModelUsage, TokenCounts
from backend.store.sync.credential_vault import new_key
from tests.support.language_models import add_model
from tests.support.scripted_model import (
    Call,
    HangUp,
    Manner,
    Refuse,
    Reply,
    Request,
    Say,
    Script,
    ScriptedModel,
    Silent,
    ToolUse,
)
from tests.support.server_processes import wait_for
from tests.support.serving import Event, events
from tests.unit.backend.api.conftest import client_of, connected, make_container

QUESTION = "How long is parental leave?"
DEFAULT, FAST, FALLBACK = ModelRole.DEFAULT, ModelRole.FAST, ModelRole.FALLBACK
SECRET = "sk-part-of-a-key"


def well(request: Request) -> Reply:
    if request.has_sources:
        return Say("Parents have 26 weeks [1].")
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["parental leave"]}))
    return Say("parental leave weeks")


def asked(client: TestClient, question: str = QUESTION) -> list[Event]:
    got = client.post("/api/ask", json={"question": question})
    assert got.status_code == 200, got.text
    return list(events(got.text.splitlines()))


@pytest.fixture
def first() -> Iterator[ScriptedModel]:
    with ScriptedModel(well) as running:
        yield running


@pytest.fixture
def second() -> Iterator[ScriptedModel]:
    with ScriptedModel(well) as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Container:
    made = make_container(tmp_path_factory.mktemp("models"))
    connected(made, folder)
    return made


@pytest.fixture(scope="module")
def running(home: Container) -> Iterator[TestClient]:
    """A server that ran before any model was set."""
    with client_of(home) as client:
        yield client


@pytest.fixture
def client(home: Container, running: TestClient) -> Iterator[TestClient]:
    yield running
    for model in home.language_models.list_stored():
        home.model_service(OWNER).remove(model.name)


def test_a_change_counts_for_the_next_question(
    home: Container, client: TestClient, first: ScriptedModel, second: ScriptedModel
) -> None:
    assert asked(client)[-1].data["answer"]["model"] is None
    # As the command line does it, in another process.
    elsewhere = home.reopen()
    add_model(elsewhere, "one", first.base_url, DEFAULT)
    add_model(elsewhere, "two", second.base_url)
    assert asked(client)[-1].data["answer"]["model"] == "one"
    assert first.requests[0].headers["authorization"] == "Bearer key-of-one"
    elsewhere.model_service(OWNER).use("two", DEFAULT)
    assert asked(client)[-1].data["answer"]["model"] == "two"
    assert second.requests[0].headers["authorization"] == "Bearer key-of-two"
    elsewhere.model_service(OWNER).remove("two")
    assert asked(client)[-1].data["answer"]["model"] is None


def test_the_fast_model_does_all_but_answer(
    home: Container, client: TestClient, first: ScriptedModel, second: ScriptedModel
) -> None:
    cited = "Parents may stay away from work for half a year on full wages"

    def answering(request: Request) -> Reply:
        reply = well(request)
        return Say(f"{cited} [1].") if isinstance(reply, Say) else reply

    def helping(request: Request) -> Reply:
        if request.text.startswith(judging_prompt("")[0]):
            return Say('{"verdicts": [{"claim": 0, "verdict": "supported"}]}')
        if request.text.count('"id":') > 1:
            return Say(json.dumps({"sections": [{"id": 0, "read": "adjacent"}]}))
        return Say("parental leave weeks")

    first.play(answering)
    second.play(helping)
    add_model(home, "large", first.base_url, DEFAULT)
    add_model(home, "small", second.base_url, FAST)
    answer = asked(client)[-1].data["answer"]
    assert (answer["model"], answer["citations"][0]["verdict"]) == ("large", "supported")
    assert [request.answers for request in first.requests] == [True]
    helped = [request.text for request in second.requests]
    assert len(helped) >= 2
    assert any(text.startswith(judging_prompt("")[0]) for text in helped)
    assert len(first.requests) + len(second.requests) <= 6


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param(lambda _: Refuse(401, f"wrong key {SECRET}"), id="wrong key"),
        pytest.param(lambda _: Refuse(429, f"quota of {SECRET}"), id="busy for ever"),
        pytest.param(
            lambda _: Refuse(429, SECRET, code="insufficient_quota"), id="account used up"
        ),
        pytest.param(lambda _: Refuse(404, f"no model {SECRET}"), id="no such model"),
        pytest.param(lambda _: Refuse(503, f"out of order {SECRET}"), id="out of order"),
        pytest.param(lambda _: HangUp(), id="hangs up"),
        pytest.param(
            lambda _: Say("Parents", manner=Manner(error_after=0)), id="error in the stream"
        ),
    ],
)
def test_the_fallback_answers_where_the_default_fails(
    home: Container,
    client: TestClient,
    first: ScriptedModel,
    second: ScriptedModel,
    failing: Script,
) -> None:
    first.play(failing)
    add_model(home, "large", first.base_url, DEFAULT)
    add_model(home, "other", second.base_url, FALLBACK, FAST)
    stream = asked(client)
    answer = stream[-1].data["answer"]
    assert (stream[-1].name, answer["model"], answer["answered"]) == ("done", "other", True)
    assert answer["citations"]
    lost = [event.data for event in stream if event.name == "lost"]
    (step,) = [one for one in lost if one["step"] == "language_model"]
    assert step["reason"].endswith("Another one answers instead.")
    assert SECRET not in str([event.data for event in stream])


def test_it_answers_where_the_default_is_not_reached(
    home: Container, client: TestClient, second: ScriptedModel
) -> None:
    with ScriptedModel() as stopped:
        add_model(home, "large", stopped.base_url, DEFAULT)
    add_model(home, "other", second.base_url, FALLBACK, FAST)
    assert asked(client)[-1].data["answer"]["model"] == "other"


def test_it_answers_where_the_default_fails_after_the_search(
    home: Container, client: TestClient, first: ScriptedModel, second: ScriptedModel
) -> None:
    def script(request: Request) -> Reply:
        return Refuse(503, "out of order") if request.answers else well(request)

    first.play(script)
    add_model(home, "large", first.base_url, DEFAULT)
    add_model(home, "other", second.base_url, FALLBACK, FAST)
    stream = asked(client)
    assert stream[-1].data["answer"]["model"] == "other"
    assert [event.name for event in stream].count("selected") == 1
    # It goes on with what was found for the first one.
    assert any(request.has_sources for request in second.requests)


def test_a_fallback_without_tools_is_shown_what_the_default_has_found(
    home: Container, client: TestClient, first: ScriptedModel, second: ScriptedModel
) -> None:
    def script(request: Request) -> Reply:
        return Refuse(503, "out of order") if request.answers else well(request)

    def without_tools(request: Request) -> Reply:
        if any(m["role"] == "tool" or m.get("tool_calls") for m in request.messages):
            return Refuse(400, "this model knows no messages of tools")
        return Say("Parents have 26 weeks [1]." if request.has_sources else "leave")

    first.play(script)
    second.play(without_tools)
    add_model(home, "large", first.base_url, DEFAULT)
    add_model(home, "other", second.base_url, FALLBACK, FAST, calls_tools=False)
    stream = asked(client)
    answer = stream[-1].data["answer"]
    assert (answer["model"], answer["answered"]) == ("other", True)
    assert answer["citations"]
    assert [event.name for event in stream].count("selected") == 1


def test_a_default_that_says_nothing_is_not_waited_for_to_the_end(
    home: Container,
    client: TestClient,
    first: ScriptedModel,
    second: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_turn, "FIRST_EVENT_SECONDS", 0.3)
    first.play(lambda _: Silent())
    add_model(home, "large", first.base_url, DEFAULT)
    add_model(home, "other", second.base_url, FALLBACK, FAST)
    answer = asked(client)[-1].data["answer"]
    assert answer["model"] == "other"
    assert answer["seconds"] < home.settings.answer_seconds / 2
    assert first.hung_up.wait(30)


def test_a_default_that_reasons_may_be_silent_for_longer(
    home: Container,
    client: TestClient,
    first: ScriptedModel,
    second: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_turn, "FIRST_EVENT_SECONDS", 0.0)
    add_model(home, "large", first.base_url, DEFAULT, reasons=True)
    add_model(home, "other", second.base_url, FALLBACK, FAST)
    assert asked(client)[-1].data["answer"]["model"] == "large"


def test_an_answer_that_has_begun_is_not_begun_again(
    home: Container, client: TestClient, first: ScriptedModel, second: ScriptedModel
) -> None:
    def script(request: Request) -> Reply:
        reply = well(request)
        return (
            replace(reply, manner=Manner(cut_after=3))
            if isinstance(reply, Say) and reply.text != "parental leave weeks"
            else reply
        )

    first.play(script)
    add_model(home, "large", first.base_url, DEFAULT)
    add_model(home, "other", second.base_url, FALLBACK)
    stream = asked(client)
    answer = stream[-1].data["answer"]
    assert (answer["model"], answer["answered"]) == ("large", False)
    assert next(e.data["reason"] for e in stream if e.name == "passages") == "model_broke_off"
    assert second.requests == []


def test_where_both_fail_the_passages_are_shown(
    home: Container, client: TestClient, first: ScriptedModel, second: ScriptedModel
) -> None:
    first.play(lambda _: Refuse(503, f"out of order {SECRET}"))
    second.play(lambda _: Refuse(401, f"wrong key {SECRET}"))  # It is not asked again.
    add_model(home, "large", first.base_url, DEFAULT)
    add_model(home, "other", second.base_url, FALLBACK)
    stream = asked(client)
    assert next(e.data["reason"] for e in stream if e.name == "passages") == "model_refused"
    answer = stream[-1].data["answer"]
    assert (answer["model"], answer["answered"]) == (None, False)
    assert len([e for e in stream if e.name == "lost" and e.data["step"] == "language_model"]) == 1


def test_a_fallback_with_a_smaller_window_is_shown_what_fits(
    home: Container, client: TestClient, first: ScriptedModel, second: ScriptedModel
) -> None:
    first.play(lambda _: Refuse(401, "wrong key"))
    add_model(home, "large", first.base_url, DEFAULT, context_window=200_000)
    add_model(home, "other", second.base_url, FALLBACK, FAST, context_window=4_000)
    history = [
        {"role": "user", "text": "word " * 5_000},
        {"role": "assistant", "text": "I see."},
    ]
    got = client.post("/api/ask", json={"question": QUESTION, "history": history})
    done = list(events(got.text.splitlines()))[-1]
    assert done.data["answer"]["model"] == "other"
    assert all(len(request.text) < 4_000 * 5 for request in second.requests)


def test_a_model_that_calls_no_tools_is_offered_none(
    home: Container, client: TestClient, first: ScriptedModel
) -> None:
    first.play(lambda request: Say("26 weeks [1]." if request.has_sources else "leave"))
    add_model(home, "plain", first.base_url, DEFAULT, calls_tools=False)
    stream = asked(client)
    assert stream[-1].data["answer"]["citations"]
    assert [request.tool_names for request in first.requests if request.tool_names] == []
    assert [event.name for event in stream].count("first_results") == 1


def test_a_key_that_cannot_be_decrypted_leaves_the_fallback(
    home: Container, client: TestClient, first: ScriptedModel, second: ScriptedModel
) -> None:
    settings = home.settings.model_copy(update={"credential_keys": SecretStr(new_key())})
    first.play(lambda request: Refuse(401, request.headers["authorization"]))
    add_model(Container(settings), "large", first.base_url, DEFAULT)
    add_model(home, "other", second.base_url, FALLBACK)
    assert asked(client)[-1].data["answer"]["model"] == "other"
    assert first.requests[0].headers["authorization"] == "Bearer none"


def test_the_settings_go_on_until_the_database_has_a_default(
    folder: Path, tmp_path: Path, first: ScriptedModel, second: ScriptedModel
) -> None:
    container = make_container(tmp_path, llm_url=first.base_url, llm_model="of-settings")
    connected(container, folder)
    with client_of(container) as client:
        assert asked(client)[-1].data["answer"]["model"] == "of-settings"
        add_model(container, "other", second.base_url, FALLBACK)
        assert asked(client)[-1].data["answer"]["model"] == "of-settings"
        assert second.requests == []
        first.play(lambda _: Refuse(503, "out of order"))
        assert asked(client)[-1].data["answer"]["model"] == "other"
        container.model_service(OWNER).use("other", DEFAULT)
        before = len(first.requests)
        assert asked(client)[-1].data["answer"]["model"] == "other"
        assert len(first.requests) == before


def test_tokens_are_counted_by_the_model_that_used_them(
    folder: Path, tmp_path: Path, first: ScriptedModel, second: ScriptedModel
) -> None:
    container = make_container(tmp_path)
    connected(container, folder)
    add_model(container, "large", first.base_url, DEFAULT)
    add_model(container, "small", second.base_url, FAST)
    with client_of(container) as client:
        asked(client)
        asked(client)
    today = datetime.now(UTC).date()

    def find_usage() -> dict[str, ModelUsage]:
        return {one.model: one for one in model_usage.list_since(container.database, today)}

    # A turn is counted after its last event.
    wait_for(lambda: find_usage()["large"].counts.calls == len(first.requests))
    used = find_usage()
    assert {one.email for one in used.values()} == {None}
    # As the scripted servers report them: 7 in a request. The intent step of each turn is not among the kept ones.
    for name, made in (("large", len(first.requests)), ("small", len(second.requests) + 2)):
        assert used[name].counts.calls == made
        assert used[name].counts.input_tokens == 7 * made
    assert used["large"].counts.output_tokens > 0


@pytest.mark.parametrize(
    ("settings", "reason", "sentence"),
    [
        (
            {"llm_total_tokens": 100},
            "shared_budget_used",
            "Today's budget of language model tokens is used up. Search works as before;",
        ),
        ({"llm_person_tokens": 100}, None, None),
    ],
)
def test_a_budget_that_is_used_up_leaves_the_passages(
    folder: Path,
    tmp_path: Path,
    first: ScriptedModel,
    settings: dict[str, object],
    reason: str | None,
    sentence: str | None,
) -> None:
    """The person at the machine has no budget of their own."""
    container = make_container(tmp_path, **settings)
    connected(container, folder)
    add_model(container, "large", first.base_url, DEFAULT)
    today = datetime.now(UTC).date()
    nearly = TokenCounts(input_tokens=90, output_tokens=9, calls=1)
    model_usage.add(container.database, NOBODY, today, {"large": nearly})
    with client_of(container) as client:
        assert asked(client)[-1].data["answer"]["model"] == "large"
        before = len(first.requests)
        stream = asked(client)
        if reason is None:
            assert stream[-1].data["answer"]["model"] == "large"
            return
        assert len(first.requests) == before
        passages = next(event.data for event in stream if event.name == "passages")
        assert passages["reason"] == reason
        assert passages["sentence"].startswith(sentence)
        answer = stream[-1].data["answer"]
        assert (answer["model"], answer["answered"]) == (None, True)
        assert answer["passages_reason"] == reason
        assert "26 weeks" in answer["answer"]
        nothing = asked(client, "What colour is the moon of Jupiter?")
        assert next(e.data for e in nothing if e.name == "passages")["reason"] == reason
        assert nothing[-1].data["answer"]["answered"] is False
