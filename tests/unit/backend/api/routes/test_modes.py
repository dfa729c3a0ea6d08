"""The mode and the switches of a question, over HTTP: refused where they contradict each other, stored, followed."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.container import Container
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.services.serving import RunningService
from tests.support.serving import Event, events
from tests.support.web_search import LAW, list_queries, serve_engine, switch_on
from tests.unit.backend.api.conftest import SOURCE, client_of, connected, make_container

QUESTION = "How long is parental leave?"
DECIDES = "In Agent mode the AI decides by itself when to search"
NO_WEB = "This assistant does not search the web."
USUAL = {"mode": "chat", "knowledge": True, "web": False, "rewrite": True}
AGENT = {"mode": "agent", "knowledge": None, "web": None, "rewrite": None}
SOON = 60.0
LISTED = "\n\n## References\n\n[1] Parental leave law\n[2] Parental leave\n"


def _answer(request: Request) -> Reply:
    """A model that cites all that it is given, and lists it besides."""
    if not request.answers:
        return Say("not a plan")
    if not request.has_sources and "Reference materials:" not in request.text:
        return Say("Babies are born after nine months.")
    # Results of a message that is searched as it stands are a list.
    marks = "".join(f"[{one['number']}]" for one in request.sources) or "[1]"
    return Say(f"Parents have leave {marks}.{LISTED}")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        running.play(_answer)
        yield running


@pytest.fixture(scope="module")
def engine() -> Iterator[RunningService]:
    with serve_engine() as running:
        yield running


@pytest.fixture(scope="module")
def online(
    tmp_path_factory: pytest.TempPathFactory,
    folder: Path,
    model: ScriptedModel,
    engine: RunningService,
) -> Container:
    """With a language model and the web."""
    home = tmp_path_factory.mktemp("online")
    container = make_container(home, llm_url=model.base_url, llm_model="scripted")
    connected(container, folder)
    switch_on(container, engine)
    return container


@pytest.fixture(scope="module")
def asker(online: Container) -> Iterator[TestClient]:
    with client_of(online) as client:
        yield client


def _ask(client: TestClient, **body: object) -> list[Event]:
    got = client.post("/api/ask", json={"question": QUESTION, **body})
    assert got.status_code == 200, got.text
    return list(events(got.text.splitlines()))


def _names(stream: list[Event]) -> list[str]:
    return [event.name for event in stream]


def _data(stream: list[Event], name: str) -> Any:
    return next(event.data for event in stream if event.name == name)


def _wait(client: TestClient, begun: Any) -> Any:
    """Return the messages once the answer is there."""
    address = f"/api/conversations/{begun['conversation']['id']}"
    end = time.monotonic() + SOON
    while True:
        messages = client.get(address).json()["messages"]
        if messages[-1]["status"] != "running":
            return messages
        assert time.monotonic() < end
        time.sleep(0.05)


def _begin(client: TestClient, **body: object) -> Any:
    got = client.post("/api/conversations", json={"question": QUESTION, **body})
    assert got.status_code == 202, got.text
    return got.json()


@pytest.mark.parametrize("switch", ["knowledge", "web", "rewrite"])
@pytest.mark.parametrize("value", ["true", "false"])
def test_a_switch_in_agent_mode_is_refused(asker: TestClient, switch: str, value: str) -> None:
    body = {"question": QUESTION, "mode": "agent", switch: value == "true"}
    begun = _begin(asker, mode="agent")
    _wait(asker, begun)
    address = f"/api/conversations/{begun['conversation']['id']}/messages"
    for path, more in (
        ("/api/ask", {}),
        ("/api/conversations", {}),
        (address, {"parent_id": begun["answer"]["id"]}),
    ):
        refused = asker.post(path, json={**body, **more})
        assert (refused.status_code, refused.json()["detail"]) == (409, DECIDES)


def test_what_is_no_mode_is_refused(asker: TestClient) -> None:
    for body in ({"mode": "research"}, {"web": "yes please"}):
        refused = asker.post("/api/ask", json={"question": QUESTION, **body})
        assert refused.status_code == 422


def test_the_web_is_refused_until_an_admin_switches_it_on(client: TestClient) -> None:
    for path in ("/api/ask", "/api/conversations"):
        refused = client.post(path, json={"question": QUESTION, "web": True})
        assert refused.status_code == 409
        assert refused.json()["detail"].endswith("An admin can switch it on: quarry web on")
        allowed = client.post(path, json={"question": QUESTION, "web": False})
        assert allowed.status_code in (200, 202)


def test_both_sides_are_joined_and_listed_once(asker: TestClient, engine: RunningService) -> None:
    engine.log.clear()
    stream = _ask(asker, web=True)
    plan = _data(stream, "planned")
    assert (plan["knowledge"]["use"], plan["web"]["use"]) == ("searched", "searched")
    searched = _data(stream, "web_searched")
    assert (searched["query"], searched["problem"]) == (QUESTION, "")
    assert "127.0.0.1" in searched["receivers"][0]
    assert list_queries(engine) == [QUESTION]
    answer = _data(stream, "done")["answer"]
    first, second = answer["references"][:2]
    assert first == {
        "number": 1,
        "title": LAW.title,
        "link": LAW.url,
        "kind": "url",
        "document_id": LAW.url,
    }
    assert (second["number"], second["kind"]) == (2, "document")
    assert second["document_id"] == f"{SOURCE}:leave.md"
    assert [one["number"] for one in answer["references"]] == sorted(
        {one["number"] for one in answer["citations"]}
    )
    assert "References" not in answer["answer"]
    assert answer["answer"] == "".join(e.data["text"] for e in stream if e.name == "text")
    assert answer["general_knowledge"] is False


def test_without_rewriting_the_message_alone_is_the_query(
    asker: TestClient, model: ScriptedModel, engine: RunningService
) -> None:
    model.requests.clear()
    stream = _ask(asker, web=True, rewrite=False)
    assert _data(stream, "planned")["web"]["queries"] == [QUESTION]
    asked = next(one for one in model.requests if one.answers)
    assert f"1. Title: {LAW.title}\n   Address: {LAW.url}\n" in asked.text
    assert not any("You decide what has to be looked up" in one.text for one in model.requests)
    assert len(engine.log) >= 1


def test_an_assistant_narrows_the_web(asker: TestClient, engine: RunningService) -> None:
    body = {"name": "Elsewhere", "blocked_domains": ["law.example.com"]}
    made = asker.post("/api/assistants", json=body).json()
    assert (made["allowed_domains"], made["blocked_domains"]) == ([], ["law.example.com"])
    stream = _ask(asker, web=True, assistant=made["id"])
    assert _data(stream, "web_searched")["results"] == []
    assert {one["kind"] for one in _data(stream, "done")["answer"]["references"]} == {"document"}
    address = f"/api/assistants/{made['id']}"
    changed = asker.patch(address, json={"blocked_domains": [], "allowed_domains": ["example.com"]})
    assert changed.json()["allowed_domains"] == ["example.com"]
    stream = _ask(asker, web=True, assistant=made["id"])
    assert [one["url"] for one in _data(stream, "web_searched")["results"]] == [LAW.url]
    refused = asker.patch(address, json={"allowed_domains": ["a b"]})
    assert refused.status_code == 422
    assert engine.log


def test_an_assistant_that_searches_nothing_has_no_web_either(
    asker: TestClient, engine: RunningService, model: ScriptedModel
) -> None:
    body = {"name": "Nothing desk", "searches": False}
    made = asker.post("/api/assistants", json=body).json()
    engine.log.clear()
    model.requests.clear()
    stream = _ask(asker, web=True, assistant=made["id"])
    assert _data(stream, "lost") == {"step": "web", "reason": NO_WEB}
    assert _data(stream, "done")["answer"]["references"] == []
    stream = _ask(asker, mode="agent", assistant=made["id"])
    assert stream[-1].name == "done"
    assert not any(request.tool_names for request in model.requests)
    assert engine.log == []


def test_an_assistant_is_kept_from_the_web(
    asker: TestClient, engine: RunningService, model: ScriptedModel
) -> None:
    made = asker.post("/api/assistants", json={"name": "Offline desk"}).json()
    assert made["searches_web"]
    forbidden = asker.patch(f"/api/assistants/{made['id']}", json={"searches_web": False}).json()
    assert not forbidden["searches_web"]
    engine.log.clear()
    model.requests.clear()
    stream = _ask(asker, web=True, assistant=made["id"])
    assert _data(stream, "lost") == {"step": "web", "reason": NO_WEB}
    assert {one["kind"] for one in _data(stream, "done")["answer"]["references"]} == {"document"}
    assert _ask(asker, mode="agent", assistant=made["id"])[-1].name == "done"
    offered = {name for request in model.requests for name in request.tool_names}
    assert offered
    assert not offered & {"web_search", "open_url"}
    assert engine.log == []


def test_with_nothing_switched_on_the_model_answers_from_what_it_has_learned(
    asker: TestClient,
) -> None:
    stream = _ask(asker, knowledge=False)
    assert not {"queries", "planned", "web_searched"} & set(_names(stream))
    answer = _data(stream, "done")["answer"]
    assert (answer["general_knowledge"], answer["references"]) == (True, [])


def test_the_mode_is_stored_with_the_question_and_used_anew(asker: TestClient) -> None:
    switches = {"knowledge": False, "web": True, "rewrite": False}
    begun = _begin(asker, **switches)
    question, answer = _wait(asker, begun)
    assert {name: question[name] for name in USUAL} == {"mode": "chat", **switches}
    assert {name: answer[name] for name in USUAL} == dict.fromkeys(USUAL)
    assert [one["kind"] for one in answer["answer"]["references"]] == ["url"]
    address = f"/api/conversations/{begun['conversation']['id']}/messages/{answer['id']}"
    again = asker.post(f"{address}/regenerate")
    assert again.status_code == 202
    *_, second = _wait(asker, begun)
    assert [one["kind"] for one in second["answer"]["references"]] == ["url"]


def test_a_search_of_the_same_conversation_is_sent_once(
    asker: TestClient, engine: RunningService
) -> None:
    engine.log.clear()
    begun = _begin(asker, web=True, knowledge=False)
    *_, answer = _wait(asker, begun)
    before = asker.get("/metrics").text
    address = f"/api/conversations/{begun['conversation']['id']}/messages/{answer['id']}"
    asker.post(f"{address}/regenerate")
    *_, second = _wait(asker, begun)
    assert second["answer"]["references"] == answer["answer"]["references"]
    assert list_queries(engine) == [QUESTION]
    hit = 'quarry_web_cache_lookups_total{kind="search",outcome="hit"}'
    assert _read_counter(asker.get("/metrics").text, hit) == _read_counter(before, hit) + 1


def _read_counter(metrics: str, name: str) -> float:
    return sum(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(name))


def test_without_a_mode_a_question_is_of_chat_mode(asker: TestClient) -> None:
    question, _ = _wait(asker, _begin(asker))
    assert {name: question[name] for name in USUAL} == USUAL
    question, _ = _wait(asker, _begin(asker, mode="agent"))
    assert {name: question[name] for name in USUAL} == AGENT


def test_a_copy_of_a_shared_conversation_keeps_the_modes(asker: TestClient) -> None:
    begun = _begin(asker, mode="agent")
    _, answer = _wait(asker, begun)
    address = f"/api/conversations/{begun['conversation']['id']}"
    share = asker.post(f"{address}/share", json={"message_id": answer["id"]}).json()
    copied = asker.post(f"/api/shared/{share['id']}/copy").json()
    question, _ = asker.get(f"/api/conversations/{copied['id']}").json()["messages"]
    assert {name: question[name] for name in USUAL} == AGENT


@pytest.fixture
def unmodelled(tmp_path: Path, folder: Path, engine: RunningService) -> Iterator[TestClient]:
    """With the web, and without a language model."""
    container = make_container(tmp_path)
    connected(container, folder)
    switch_on(container, engine)
    with client_of(container) as client:
        yield client


def test_without_a_model_the_web_is_searched_for_the_message_itself(
    unmodelled: TestClient, engine: RunningService
) -> None:
    engine.log.clear()
    stream = _ask(unmodelled, web=True)
    names = _names(stream)
    assert names.index("web_searched") < names.index("passages") < names.index("done")
    assert list_queries(engine) == [QUESTION]
    answer = _data(stream, "done")["answer"]
    assert "26 weeks" in answer["answer"]
    of_web = [one for one in answer["documents"] if one["kind"] == "url"]
    assert [(one["link"], one["cited"]) for one in of_web] == [(LAW.url, False)]

    alone = _ask(unmodelled, web=True, knowledge=False)
    assert _names(alone) == ["web_searched", "passages", "text", "done"]
    assert _data(alone, "passages")["reason"] == "web_alone"
    assert _data(alone, "done")["answer"]["answered"] is False
    assert [one["link"] for one in _data(alone, "done")["answer"]["documents"]] == [LAW.url]

    nothing = _ask(unmodelled, knowledge=False)
    assert _names(nothing) == ["error"]
    assert "Switch company knowledge or the web on." in str(nothing[-1].data)

    agent = _ask(unmodelled, mode="agent")
    assert "web_searched" not in _names(agent)
    assert "26 weeks" in _data(agent, "done")["answer"]["answer"]


def test_an_assistant_that_searches_nothing_but_its_files_has_no_web(
    unmodelled: TestClient, engine: RunningService
) -> None:
    """Its files are searched where no model reads them."""
    made = unmodelled.post("/api/assistants", json={"name": "Desk", "searches": False}).json()
    sent = unmodelled.post(
        "/api/files", files={"file": ("leave.md", b"Parental leave is 40 weeks.")}
    )
    file = f"/api/files/{sent.json()['id']}"
    end = time.monotonic() + SOON
    while unmodelled.get(file).json()["status"] == "reading":
        assert time.monotonic() < end
        time.sleep(0.05)
    unmodelled.put(f"/api/assistants/{made['id']}/files/{sent.json()['id']}")
    engine.log.clear()
    stream = _ask(unmodelled, web=True, assistant=made["id"])
    assert _data(stream, "lost") == {"step": "web", "reason": NO_WEB}
    assert "40 weeks" in _data(stream, "done")["answer"]["answer"]
    assert engine.log == []


def test_a_web_question_that_is_asked_again_once_the_web_is_off_says_so(
    unmodelled: TestClient,
) -> None:
    begun = {
        knowledge: _begin(unmodelled, web=True, knowledge=knowledge) for knowledge in (True, False)
    }
    for one in begun.values():
        _wait(unmodelled, one)
    assert unmodelled.patch("/api/admin/web", json={"is_on": False}).status_code == 200
    for knowledge, one in begun.items():
        path = f"/api/conversations/{one['conversation']['id']}/messages/{one['answer']['id']}"
        assert unmodelled.post(f"{path}/regenerate").status_code == 202
        answer = _wait(unmodelled, one)[-1]
        assert answer["status"] == ("finished" if knowledge else "failed")
        assert "What was found on the web" not in str(answer)
        assert knowledge == ("26 weeks" in str(answer["answer"]))
