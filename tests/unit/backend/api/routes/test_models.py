"""`/api/admin/models`: for admins; a key goes in and never out."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.container import Container
from backend.store import audit
from backend.store.llm import language_models
from tests.support.scripted_model import Call, Refuse, Reply, Request, Say, ScriptedModel, ToolUse
from tests.unit.backend.api.conftest import client_of, make_container

SECRET = "sk-0123456789"
MODELS = "/api/admin/models"
BODY = {"name": "large", "base_url": "http://127.0.0.1:8000/v1", "model": "m", "key": SECRET}


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Container:
    return make_container(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def running(container: Container) -> Iterator[TestClient]:
    with client_of(container) as client:
        yield client


@pytest.fixture
def client(running: TestClient) -> Iterator[TestClient]:
    yield running
    for model in running.get(MODELS).json():
        assert running.delete(f"{MODELS}/{model['name']}").status_code == 204


def test_models_are_added_changed_listed_and_removed(
    container: Container, client: TestClient
) -> None:
    added = client.post(MODELS, json=BODY | {"roles": ["default"], "input_price": 2.5})
    assert (added.status_code, added.headers["location"]) == (201, f"{MODELS}/large")
    assert added.json() == {
        "name": "large",
        "base_url": BODY["base_url"],
        "model": "m",
        "origin": "database",
        "has_key": True,
        "context_window": 32_000,
        "sees_pictures": False,
        "calls_tools": True,
        "reasons": False,
        "input_price": 2.5,
        "output_price": None,
        "roles": ["default"],
    }
    changed = client.patch(
        f"{MODELS}/large", json={"name": "huge", "input_price": None, "roles": ["fast", "default"]}
    )
    assert (changed.json()["name"], changed.json()["input_price"]) == ("huge", None)
    assert changed.json()["roles"] == ["default", "fast"]
    assert changed.json()["has_key"] is True
    unchanged = client.patch(f"{MODELS}/huge", json={"name": None, "context_window": None})
    assert unchanged.json() == changed.json()
    assert client.get(MODELS).json() == [changed.json()]
    model = language_models.find(container.database, "huge")
    assert container.vault.open(model.sealed_key or "") == {"key": SECRET}
    assert client.patch(f"{MODELS}/huge", json={"key": ""}).json()["has_key"] is False
    assert client.delete(f"{MODELS}/huge").status_code == 204
    assert client.get(MODELS).json() == []
    assert SECRET not in str(audit.list_entries(container.database))


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"base_url": "http://169.254.169.254/v1"}, 422),
        ({"base_url": "ftp://llm.example.com"}, 422),
        ({"name": "a/b"}, 422),
        ({"name": "\ud800"}, 422),
        ({"key": f"{SECRET} "}, 422),
        ({"key": SECRET * 1_000}, 422),
        ({"context_window": 10}, 422),
        ({"roles": ["best"]}, 422),
        ({"unknown": 1}, 422),
        ({"name": "taken"}, 409),
    ],
)
def test_what_is_refused_does_not_repeat_the_key(
    client: TestClient, values: dict[str, object], status: int
) -> None:
    client.post(MODELS, json=BODY | {"name": "taken"})
    body = json.dumps(BODY | values)
    refused = client.post(MODELS, content=body, headers={"content-type": "application/json"})
    assert refused.status_code == status, refused.text
    assert SECRET not in refused.text
    assert [one["name"] for one in client.get(MODELS).json()] == ["taken"]


def test_a_name_may_be_of_any_script(client: TestClient) -> None:
    added = client.post(MODELS, json=BODY | {"name": "模型"})
    assert added.status_code == 201
    path = added.headers["location"]
    assert client.patch(path, json={"reasons": True}).json()["name"] == "模型"


def test_a_key_is_not_sent_to_another_server(client: TestClient) -> None:
    client.post(MODELS, json=BODY)
    move = {"base_url": "https://other.example.com/v1"}
    refused = client.patch(f"{MODELS}/large", json=move)
    assert refused.status_code == 422
    assert "Enter the key again" in refused.text
    assert client.patch(f"{MODELS}/large", json=move | {"key": "new"}).status_code == 200


def test_a_model_is_tried(client: TestClient) -> None:
    def well(request: Request) -> Reply:
        return Call(ToolUse("note", {"text": "ready"})) if request.tool_names else Say("one, two")

    with ScriptedModel(well) as server:
        client.post(MODELS, json=BODY | {"base_url": server.base_url})
        found = client.post(f"{MODELS}/large/test").json()
        assert (found["answers"], found["calls_tools"], found["answer"]) == (True, True, "one, two")
        server.play(lambda _: Refuse(401, f"wrong key {SECRET}"))
        refused = client.post(f"{MODELS}/large/test")
    assert (refused.status_code, refused.json()["answers"]) == (200, False)
    assert "the key of large" in refused.json()["advice"]
    assert SECRET not in refused.text


def test_what_is_not_there_is_not_found(client: TestClient) -> None:
    assert client.patch(f"{MODELS}/none", json={}).status_code == 404
    assert client.delete(f"{MODELS}/none").status_code == 404
    assert client.post(f"{MODELS}/none/test").status_code == 404


def test_a_token_needs_the_scope_of_admins(container: Container, client: TestClient) -> None:
    service = ApiTokenService(container.database)
    asking = service.create("asking", [TokenScope.ASK, TokenScope.SEARCH], timedelta(days=1))
    bearer = {"authorization": f"Bearer {asking}"}
    for method, path in (
        ("GET", MODELS),
        ("POST", MODELS),
        ("PATCH", f"{MODELS}/large"),
        ("DELETE", f"{MODELS}/large"),
        ("POST", f"{MODELS}/large/test"),
    ):
        assert client.request(method, path, json=BODY, headers=bearer).status_code == 403


def test_the_model_of_the_settings_is_listed_without_its_key(tmp_path: Path) -> None:
    container = make_container(
        tmp_path, llm_url="https://x.example/v1", llm_model="usual", llm_key=SECRET
    )
    with client_of(container) as client:
        (listed,) = client.get(MODELS).json()
    assert (listed["origin"], listed["has_key"], listed["roles"]) == ("settings", True, ["default"])
    assert SECRET not in str(listed)
