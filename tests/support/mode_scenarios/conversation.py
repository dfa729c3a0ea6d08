"""A scenario whose turn stands in a conversation: what was said before, files that come with it, and what is stored of it."""

import time
from typing import Any

from fastapi.testclient import TestClient

from tests.support.mode_scenarios.model import ModelOfScenario
from tests.support.mode_scenarios.scenario import Outcome, Scenario
from tests.support.mode_scenarios.world import ModesWorld, read_answer
from tests.support.scripted_model import Json
from tests.support.serving import events

SOON = 60.0
GIVEN = {
    "plan.md": b"# Plan of leave\n\nThe plan for parental leave is one year.\n",
    "leave.png": b"\x89PNG\r\n\x1a\n" + bytes(60),
    "quay.png": b"\x89PNG\r\n\x1a\n" + bytes(61),
}
"""Files that come with a message, by name."""


def ask_in_conversation(world: ModesWorld, scenario: Scenario) -> Outcome:
    """Ask what was asked before, then the message; return what its events, its answer and its stored message show."""
    conversation, parent = "", None
    if earlier := scenario.earlier:
        world.model.play(ModelOfScenario(world.fill_in_steps(earlier.steps), earlier.adds))
        body = _make_body(scenario, world.fill_in(earlier.message))
        conversation, parent = _ask(world.client, conversation, parent, body)
        _follow(world.client, conversation, parent)
        world.clear_logs()
        world.play(scenario)
    body = _make_body(scenario, world.fill_in(scenario.message))
    body["files"] = [_upload(world.client, name) for name in scenario.files]
    conversation, answer = _ask(world.client, conversation, parent, body)
    outcome = _follow(world.client, conversation, answer)
    stored = _open(world.client, conversation)[-1]
    assert (stored["id"], stored["status"]) == (answer, "finished")
    assert read_answer(stored["answer"], outcome.steps) == outcome
    assert stored["text"] == outcome.text
    assert "<img" not in stored["html"]
    _delete(world.client, conversation)
    return outcome


def _make_body(scenario: Scenario, message: str) -> Json:
    switches: Json = {str(name): is_on for name, is_on in scenario.switches.items()}
    return {"question": message, "mode": scenario.mode, **switches}


def _ask(client: TestClient, conversation: str, parent: int | None, body: Json) -> tuple[str, int]:
    path = f"/api/conversations/{conversation}/messages" if conversation else "/api/conversations"
    more = {"parent_id": parent} if conversation else {}
    begun = client.post(path, json={**body, **more})
    assert begun.status_code == 202, begun.text
    begun_in = conversation or begun.json()["conversation"]["id"]
    return begun_in, begun.json()["answer"]["id"]


def _follow(client: TestClient, conversation: str, message: int) -> Outcome:
    got = client.get(f"/api/conversations/{conversation}/messages/{message}/events")
    assert got.status_code == 200, got.text
    stream = list(events(got.text.splitlines()))
    assert stream[-1].name == "done", stream[-1]
    steps = "\n".join(f"{one.name} {one.data}" for one in stream[:-1] if one.name != "text")
    return read_answer(stream[-1].data["answer"], steps)


def _open(client: TestClient, conversation: str) -> list[Any]:
    got = client.get(f"/api/conversations/{conversation}")
    assert got.status_code == 200, got.text
    messages: list[Any] = got.json()["messages"]
    return messages


def _delete(client: TestClient, conversation: str) -> None:
    assert client.delete(f"/api/conversations/{conversation}").status_code == 204


def _upload(client: TestClient, name: str) -> str:
    """Return the id of a file of the asker, once it is read."""
    sent = client.post("/api/files", files={"file": (name, GIVEN[name])})
    assert sent.status_code == 202, sent.text
    file_id: str = sent.json()["id"]
    end = time.monotonic() + SOON
    while (file := client.get(f"/api/files/{file_id}").json())["status"] == "reading":
        assert time.monotonic() < end, file
        time.sleep(0.02)
    return file_id
