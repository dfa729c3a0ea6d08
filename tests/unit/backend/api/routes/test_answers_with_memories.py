"""Answers rest on what their asker asked to remember, over HTTP: on nobody else's, and no longer than it is kept."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.conversations.answer_gate import WITHHELD
from tests.support.chat_turns import answer_from_sources
from tests.support.scripted_model import ScriptedModel
from tests.support.serving import Event, events
from tests.unit.backend.api.conftest import make_container
from tests.unit.backend.api.routes.test_sharing import ANN, BOB, CID, World, make_worlds

QUESTION = "In which city is my office?"
LEEDS, GRAZ = "My office is in Leeds.", "My office is in Graz."


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel(answer_from_sources) as running:
        yield running


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, server: ScriptedModel
) -> Iterator[World]:
    home = tmp_path_factory.mktemp("remembered")
    container = make_container(home, llm_url=server.base_url, llm_model="scripted")
    yield from make_worlds(container, folder)


def _add(client: TestClient, text: str) -> str:
    added = client.post("/api/memories", json={"text": text})
    assert added.status_code == 201, added.text
    memory_id: str = added.json()["id"]
    return memory_id


def _ask(client: TestClient) -> list[Event]:
    got = client.post("/api/ask", json={"question": QUESTION})
    assert got.status_code == 200, got.text
    return list(events(got.text.splitlines()))


def _said(events_of: list[Event]) -> Any:
    assert events_of[-1].name == "done", events_of[-1]
    return events_of[-1].data["answer"]


def test_each_asker_is_answered_with_their_own(world: World, server: ScriptedModel) -> None:
    bob, cid = world.clients[BOB], world.clients[CID]
    _add(bob, LEEDS)
    _add(cid, GRAZ)
    assert "My office is in Leeds [" in _said(_ask(bob))["answer"]
    assert "Graz" not in server.requests[-1].text
    answer = _said(_ask(cid))
    assert "My office is in Graz [" in answer["answer"]
    [cited] = [one for one in answer["citations"] if one["quote"] == GRAZ]
    assert cited["verdict"] == "supported"
    service = ApiTokenService(world.container.database, owner=None)
    token = service.create("robot", [TokenScope.ASK], timedelta(days=1))
    bob_headers, headers = bob.headers.copy(), {"Authorization": f"Bearer {token}"}
    got = bob.post("/api/ask", json={"question": QUESTION}, headers=headers)
    assert got.status_code == 200, got.text
    assert bob.headers == bob_headers
    assert "Leeds" not in got.text
    assert "Graz" not in got.text


def test_an_answer_of_a_conversation_goes_with_the_memory_that_it_rests_on(world: World) -> None:
    ann = world.clients[ANN]
    memory_id = _add(ann, LEEDS)
    asked = ann.post("/api/conversations", json={"question": QUESTION})
    assert asked.status_code in {201, 202}, asked.text
    conversation, message = asked.json()["conversation"]["id"], asked.json()["answer"]["id"]
    ann.get(f"/api/conversations/{conversation}/messages/{message}/events")
    path = f"/api/conversations/{conversation}"
    assert "Leeds" in ann.get(path).json()["messages"][1]["text"]
    assert ann.delete(f"/api/memories/{memory_id}").status_code == 204
    opened = ann.get(path).json()["messages"][1]
    assert (opened["withheld"], opened["notice"], opened["text"]) == (True, WITHHELD, "")
