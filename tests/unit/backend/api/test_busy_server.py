"""A server with all its slots taken: searches go on beside answers, and what finds no place is told when to come again."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from backend.api import conversation_turns
from backend.composition.index import NamedSetsIndex
from backend.container import Container
from backend.conversations import turn_pace
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.unit.backend.api.conftest import api, client_of, connected, make_container, ready
from tests.unit.backend.api.routes.test_metrics import scrape

SOON = 30.0
QUESTION = {"question": "How long is parental leave?"}
SEARCH = {"query": "leave"}
LONG = [
    ("/v1/embeddings", {"model": "default", "input": "Leave is long."}),
    ("/api/references", {"text": "Leave is long.", "sources": [{"text": "Leave is long here."}]}),
]


class Model:
    """A language model that says nothing until it is let go."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()

    def reply(self, request: Request) -> Reply:
        del request
        self.asked.set()
        assert self.released.wait(SOON)
        return Say("Half a year.")


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def crowded(tmp_path: Path, folder: Path, model: Model) -> Iterator[TestClient]:
    """A server that takes one answer and one search at a time; nobody waits."""
    with ScriptedModel(model.reply) as server:
        container = make_container(
            tmp_path,
            llm_url=server.base_url,
            llm_model="scripted",
            answers_at_once=1,
            searches_at_once=1,
            requests_waiting=0,
        )
        connected(container, folder)
        with client_of(container) as client:
            yield client
            model.released.set()


def test_while_the_answers_are_full_a_search_is_answered(crowded: TestClient, model: Model) -> None:
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(crowded.post, "/api/ask", json=QUESTION)
        assert model.asked.wait(SOON)
        refused = crowded.post("/api/ask", json=QUESTION)
        searched = crowded.post("/api/search", json=SEARCH)
        model.released.set()
        assert answer.result(SOON).status_code == 200
    assert refused.status_code == 503
    assert refused.headers["content-type"] == "application/problem+json"
    assert int(refused.headers["Retry-After"]) >= 1
    assert "answers" in refused.json()["detail"]
    assert searched.status_code == 200
    counted = scrape(crowded)
    assert counted["quarry_pool_refused_total", "answers"] == 1
    assert counted["quarry_pool_wait_seconds_count", "answers"] == 1
    assert counted["quarry_pool_refused_total", "searches"] == 0


@pytest.mark.parametrize(("path", "asked"), LONG)
def test_what_takes_long_waits_among_the_answers_and_no_search_waits_for_it(
    crowded: TestClient, model: Model, path: str, asked: dict[str, object]
) -> None:
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(crowded.post, "/api/ask", json=QUESTION)
        assert model.asked.wait(SOON)
        refused = crowded.post(path, json=asked)
        model.released.set()
        assert answer.result(SOON).status_code == 200
    assert (refused.status_code, "answers" in refused.text) == (503, True)
    assert crowded.post(path, json=asked).status_code == 200
    assert scrape(crowded)["quarry_pool_refused_total", "searches"] == 0


def test_while_the_searches_are_full_probes_and_scrapes_are_answered(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = make_container(tmp_path, searches_at_once=1, requests_waiting=0)
    connected(container, folder)
    with client_of(container) as client, ThreadPoolExecutor() as threads:
        searching, released = _hold_up_searches(container, monkeypatch)
        held = threads.submit(client.post, "/api/search", json=SEARCH)
        assert searching.wait(SOON)
        refused = client.post("/api/search", json=SEARCH)
        probe, counted = client.get("/readyz"), scrape(client)
        released.set()
        assert held.result(SOON).status_code == 200
        assert client.post("/api/search", json=SEARCH).status_code == 200
    assert (refused.status_code, int(refused.headers["Retry-After"]) >= 1) == (503, True)
    assert probe.status_code == 200
    assert counted["quarry_pool_refused_total", "searches"] == 1


def _answer_now(client: TestClient) -> Response:
    return client.post("/api/ask", json=QUESTION)


def _answer_in_a_conversation(client: TestClient) -> Response:
    begun = client.post("/api/conversations", json=QUESTION).json()
    place = f"/api/conversations/{begun['conversation']['id']}/messages/{begun['answer']['id']}"
    return client.get(f"{place}/events")


@pytest.mark.parametrize("ask", [_answer_now, _answer_in_a_conversation])
def test_an_answer_gives_way_to_searches(
    tmp_path: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[TestClient], Response],
) -> None:
    monkeypatch.setattr(turn_pace, "STEP", 0.0)
    monkeypatch.setattr(turn_pace, "BETWEEN_TURNS", SOON)
    container = make_container(tmp_path)
    connected(container, folder)
    app = api(container)
    with ready(app) as client, ThreadPoolExecutor() as threads:
        with app.state.app_state.pools.search_priority.hold():
            answer = threads.submit(ask, client)
            with pytest.raises(TimeoutError):
                answer.result(1.0)
        assert "event: done" in answer.result(SOON).text


def test_who_follows_an_answer_looks_at_it_after_the_searches_that_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_turns, "BETWEEN_LOOKS", SOON)
    app = api(make_container(tmp_path))
    with ready(app):
        state = app.state.app_state
        with state.pools.search_priority.hold():
            look = state.turns.followers.submit(lambda: "seen")
            with pytest.raises(TimeoutError):
                look.result(0.2)
        assert look.result(SOON) == "seen"


def _hold_up_searches(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> tuple[threading.Event, threading.Event]:
    """Let the searches of a server that is ready wait; return what says that one does, and what lets it go."""
    searching, released = threading.Event(), threading.Event()
    named = container.chat.engine.index
    assert isinstance(named, NamedSetsIndex)
    find = named.index.find

    def wait_and_find(*arguments: object) -> object:
        searching.set()
        assert released.wait(SOON)
        return find(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(named.index, "find", wait_and_find)
    return searching, released
