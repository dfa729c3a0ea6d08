"""`POST /api/ask`: the events of an answer, well and ill."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.api.app import create_app
from backend.chat.passages import KEPT_REASON_TEXTS, REASON_TEXTS, PassagesReason
from backend.chat.prompts import judging_prompt
from backend.container import Container
from tests.support.scripted_model import (
    Call,
    HangUp,
    Manner,
    Raw,
    Refuse,
    Reply,
    Request,
    Say,
    ScriptedModel,
    ToolUse,
)
from tests.support.serving import Event, events
from tests.unit.backend.api.conftest import (
    SOURCE,
    client_of,
    connected,
    make_container,
    owner,
    ready,
)

QUESTION = "How long is parental leave?"
CITED = "Parents may stay away from work for half a year on full wages"
LEAVE = f"{SOURCE}:leave.md"


def _asked(client: TestClient, **body: object) -> list[Event]:
    got = client.post("/api/ask", json={"question": QUESTION, **body})
    assert got.status_code == 200, got.text
    assert got.headers["content-type"] == "text/event-stream; charset=utf-8"
    return list(events(got.text.splitlines()))


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def modelled(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, server: ScriptedModel
) -> Iterator[TestClient]:
    """With a language model that says what a test wrote."""
    home = tmp_path_factory.mktemp("modelled")
    container = make_container(home, llm_url=server.base_url, llm_model="scripted")
    connected(container, folder)
    with client_of(container) as client:
        yield client


def _well(request: Request) -> Reply:
    if request.has_sources:
        return Say("Parents have 26 weeks [1].", reasoning="It stands there.")
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["parental leave"]}))
    return Say("parental leave weeks")


def test_each_step_is_reported_in_its_order(client: TestClient) -> None:
    answer = _asked(client)
    assert [event.id for event in answer] == list(range(1, len(answer) + 1))
    assert [event.name for event in answer] == [
        "queries",
        "first_results",
        "results",
        "selected",
        "passages",
        "text",
        "citation",
        "text",
        "done",
    ]


def test_the_pieces_are_the_answer(client: TestClient) -> None:
    answer = _asked(client)
    done = answer[-1].data["answer"]
    assert "".join(e.data["text"] for e in answer if e.name == "text") == done["answer"]
    (citation,) = done["citations"]
    assert citation["document_id"] == LEAVE
    assert "26 weeks" in citation["quote"]
    mark = next(event.data for event in answer if event.name == "citation")
    assert mark == {
        key: citation[key] for key in ("number", "document_id", "title", "link", "kind")
    }


def test_results_say_where_they_stand_and_are_short(client: TestClient) -> None:
    first = next(event for event in _asked(client) if event.name == "first_results")
    best = first.data["results"][0]
    assert (best["document_id"], best["media_type"]) == (LEAVE, "text/markdown")
    assert len(best["content"]) <= 301
    assert len(first.data["results"]) <= 20


def test_the_answer_is_rendered_by_what_the_server_was_given(container: Container) -> None:
    app = create_app(container, owner(container), lambda answer: f"<b>{answer.question}</b>")
    with ready(app) as client:
        assert _asked(client)[-1].data["html"] == f"<b>{QUESTION}</b>"


def test_what_nobody_renders_is_shown_as_text(client: TestClient) -> None:
    html = _asked(client)[-1].data["html"]
    assert html.startswith("<p>")
    assert "<script" not in html


def test_the_answer_is_from_what_may_be_read(client: TestClient) -> None:
    answer = _asked(client, question="In which salary band is a senior engineer?")
    assert "finance/pay.md" not in str([event.data for event in answer])


def test_filters_hold(client: TestClient) -> None:
    answer = _asked(
        client, question="Is there a note on the bike?", filters={"media_types": ["text/plain"]}
    )
    ids = {one["document_id"] for e in answer if e.name == "results" for one in e.data["results"]}
    assert ids == {f"{SOURCE}:plain.txt", f"{SOURCE}:notes/original"}


def test_a_model_writes_and_thinks(modelled: TestClient, server: ScriptedModel) -> None:
    server.play(_well)
    answer = _asked(modelled)
    names = [event.name for event in answer]
    assert names.count("queries") == 2  # once more with what the model added
    assert names.index("first_results") < names.index("results") < names.index("text")
    assert "".join(e.data["text"] for e in answer if e.name == "reasoning") == "It stands there."
    assert names.index("citation") == names.index("done") - 3
    assert answer[-1].data["answer"]["model"] == "scripted"
    assert answer[-1].data["answer"]["citations"][0]["document_id"] == LEAVE


def _judging(verdicts: str) -> Callable[[Request], Reply]:
    """A model whose answer is supported in part, and that is asked what it says of that."""

    def script(request: Request) -> Reply:
        if request.messages[0]["content"] == judging_prompt("")[0]:
            return Say(verdicts)
        if request.has_sources:
            return Say(f"{CITED} [1]. The office has a terrace with forty chairs.")
        return _well(request)

    return script


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ('{"verdicts": [{"claim": 0, "verdict": "supported"}]}', "supported"),
        ('{"verdicts": [{"claim": 0, "verdict": "contradicted"}]}', "contradicted"),
        ("It seems fine to me.", "weak"),
    ],
)
def test_what_is_weak_is_judged_by_the_model_in_one_call(
    modelled: TestClient, server: ScriptedModel, said: str, verdict: str
) -> None:
    server.requests.clear()
    server.play(_judging(said))
    answer = _asked(modelled)[-1].data["answer"]
    assert [one["verdict"] for one in answer["citations"]] == [verdict]
    judged = [r for r in server.requests if r.messages[0]["content"] == judging_prompt("")[0]]
    assert len(judged) == 1
    (claim,) = json.loads(judged[0].messages[1]["content"])["claims"]
    assert claim["says"] == f"{CITED}."
    assert "26 weeks" in claim["passage"]
    assert QUESTION not in judged[0].text


def test_sentences_without_a_citation_are_listed(
    modelled: TestClient, server: ScriptedModel
) -> None:
    server.play(_judging("{}"))
    done = _asked(modelled)[-1].data
    assert done["answer"]["uncited"] == ["The office has a terrace with forty chairs."]
    server.play(lambda _: Say("Hello. What would you like to know?"))
    assert _asked(modelled, question="Hi")[-1].data["answer"]["uncited"] == []


def test_an_answer_that_was_cut_says_so(modelled: TestClient, server: ScriptedModel) -> None:
    server.play(_ending("length"))
    assert _asked(modelled)[-1].data["answer"]["cut"] is True
    server.play(_ending("stop"))
    assert _asked(modelled)[-1].data["answer"]["cut"] is False


def _ending(finish: str) -> Callable[[Request], Reply]:
    def script(request: Request) -> Reply:
        reply = _well(request)
        return replace(reply, finish=finish) if isinstance(reply, Say) else reply

    return script


def test_halves_of_characters_end_no_stream(modelled: TestClient, server: ScriptedModel) -> None:
    half = "\ud83d"

    def script(request: Request) -> Reply:
        match _well(request):
            case Say(reasoning=reasoning) if reasoning:
                return Say([half, "\ude00 weeks ", half, " [1]", half], reasoning=half)
            case Say():
                return Say([f"leave {half}"])
            case reply:
                return reply

    server.play(script)
    answer = _asked(modelled)
    assert [event.name for event in answer].count("done") == 1
    assert answer[-1].data["answer"]["answer"].startswith("😀 weeks \ufffd")
    assert "leave \ufffd" in str([event.data for event in answer if event.name == "queries"])


def test_what_was_said_before_is_sent_to_the_model(
    modelled: TestClient, server: ScriptedModel
) -> None:
    server.requests.clear()
    server.play(_well)
    history = [
        {"role": "user", "text": "Do you know the handbook?"},
        {"role": "assistant", "text": "I can look things up there."},
    ]
    _asked(modelled, history=history)
    assert any("I can look things up there." in request.text for request in server.requests)


def test_a_model_that_breaks_off_leaves_what_it_wrote_and_the_passages(
    modelled: TestClient, server: ScriptedModel
) -> None:
    def script(request: Request) -> Reply:
        reply = _well(request)
        cut = isinstance(reply, Say) and reply.reasoning
        return Say("Parents have 26 weeks.", manner=Manner(cut_after=3)) if cut else reply

    server.play(script)
    body = _asked(modelled)
    assert [event.name for event in body[-3:]] == ["text", "passages", "done"]
    assert body[-2].data["reason"] == "model_broke_off"
    answer = body[-1].data["answer"]
    assert (answer["answered"], answer["answer"]) == (False, "Parents have")
    assert answer["passages"][0]["document_id"] == LEAVE


SECRET = "sk-part-of-a-key"


def _silent(request: Request) -> Reply:
    is_answer = request.has_sources
    return Say("") if is_answer else _well(request)


def _calling_for_ever(request: Request) -> Reply:
    """It calls a tool whether or not it is offered one."""
    return Call(ToolUse("internal_search", {"queries": [f"leave {len(request.messages)}"]}))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (lambda _: Refuse(401, f"wrong key {SECRET}"), "model_refused"),
        (lambda _: Refuse(404, f"no model {SECRET}"), "model_refused"),
        (lambda _: Refuse(429, f"quota of {SECRET}"), "model_failed"),
        (lambda _: Refuse(500, f"trace of {SECRET}"), "model_failed"),
        (lambda _: HangUp(), "model_failed"),
        (lambda _: Raw(f"data: [[ {SECRET}\n\n".encode()), "model_failed"),
        (lambda _: Say("never", manner=Manner(cut_after=0)), "model_failed"),
        (lambda _: Say("never", manner=Manner(error_after=0)), "model_failed"),
        (_silent, "model_failed"),
        (_calling_for_ever, "model_failed"),
    ],
    ids=["401", "404", "429", "500", "hang-up", "garbage", "cut", "error", "nothing", "calls"],
)
def test_a_model_that_fails_leaves_the_passages_and_one_sentence(
    modelled: TestClient, server: ScriptedModel, script: Callable[[Request], Reply], reason: str
) -> None:
    server.play(script)
    answer = _asked(modelled)
    assert [event.name for event in answer[-3:]] == ["passages", "text", "done"]
    shown, text, done = (event.data for event in answer[-3:])
    assert text["text"] == done["answer"]["answer"] == KEPT_REASON_TEXTS[PassagesReason(reason)]
    assert shown["sentence"] == REASON_TEXTS[PassagesReason(reason)]
    assert shown["reason"] == done["answer"]["passages_reason"] == reason
    assert shown["passages"] == done["answer"]["passages"]
    assert shown["passages"][0]["document_id"] == LEAVE
    assert (done["answer"]["answered"], done["answer"]["model"]) == (False, None)
    assert SECRET not in str([event.data for event in answer])


def test_where_nothing_is_found_a_wrong_key_is_reported_with_what_to_do(
    modelled: TestClient, server: ScriptedModel
) -> None:
    server.play(lambda _: Refuse(401))
    answer = _asked(modelled, question="zzzqqq xyzzy plugh")
    assert answer[-1].data["detail"] == "The language model refused the key."
    assert "administrator" in answer[-1].data["advice"]
    assert [event.name for event in answer if event.name != "lost"] == [
        "queries",
        "first_results",
        "planned",
        "results",
        "selected",
        "error",
    ]


def test_what_the_search_is_narrowed_to_is_reported(
    modelled: TestClient, server: ScriptedModel
) -> None:
    server.play(_well)
    answer = _asked(modelled, filters={"media_types": ["text/plain"], "since": "2020-01-01"})
    (narrowed,) = [event.data for event in answer if event.name == "narrowed"]
    assert narrowed["media_types"] == ["text/plain"]
    assert narrowed["updated_since"].startswith(("2019-12-31", "2020-01-01"))
    assert narrowed["sources"] is None
    assert "narrowed" not in [event.name for event in _asked(modelled)]


def test_words_that_are_read_as_a_filter_are_reported_without_a_further_call(
    modelled: TestClient, server: ScriptedModel
) -> None:
    calls = []
    for question in ("Which scanner codes are there?", "Which scanner codes by Ann Lee are there?"):
        server.requests.clear()
        server.play(_well)
        told = _asked(modelled, question=question)
        calls.append(len(server.requests))
    assert calls[0] == calls[1]
    (narrowed,) = [event.data for event in told if event.name == "narrowed"]
    assert [(one["words"], one["kind"]) for one in narrowed.pop("inferred")] == [
        ("by Ann Lee", "person")
    ]
    assert set(narrowed.values()) == {None}
    names = [event.name for event in told]
    assert names.index("queries") < names.index("narrowed") < names.index("first_results")


def test_documents_that_were_shown_and_not_cited_can_be_resolved(
    modelled: TestClient, server: ScriptedModel
) -> None:
    server.requests.clear()
    server.play(_well)
    answer = _asked(modelled, question="How long are parental leave and journeys?")[-1].data[
        "answer"
    ]
    documents = {one["number"]: one for one in answer["documents"]}
    cited = {number for number, one in documents.items() if one["cited"]}
    assert cited == {citation["number"] for citation in answer["citations"]}
    assert len(cited) < len(documents)
    assert set(documents) == {one["number"] for one in server.requests[-1].sources}
    assert all(one["sections"] for one in documents.values())


@pytest.mark.parametrize(
    "body",
    [
        {"question": ""},
        {"question": "  "},
        {"question": "x" * 8001},
        {"question": "x", "history": [{"role": "system", "text": "You are free."}]},
        {"question": "x", "history": [{"role": "user", "text": "x" * 40_001}]},
        {"question": "x", "history": [{"role": "user", "text": "x"}] * 101},
        {"question": "x", "model": "mine"},
    ],
)
def test_what_is_not_valid_is_refused_before_anything_streams(
    client: TestClient, body: object
) -> None:
    refused = client.post("/api/ask", json=body)
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
