"""`/api/admin/web`: for admins; a key goes in and never out."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.container import Container
from backend.store import audit
from tests.contract.provider_worlds.api_worlds import SearxngWorld, TavilyWorld
from tests.contract.provider_worlds.world import SECRET
from tests.support.services.serving import serve
from tests.unit.backend.api.conftest import client_of, make_container

WEB = "/api/admin/web"
PROVIDERS = f"{WEB}/providers"
OFF = {"is_on": False, "allowed_domains": [], "blocked_domains": [], "keeps_internal_names": True}
TAVILY = {"kind": "tavily", "credential": {"key": SECRET}}


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Container:
    return make_container(tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="module")
def running(container: Container) -> Iterator[TestClient]:
    with client_of(container) as client:
        yield client


@pytest.fixture
def client(running: TestClient) -> Iterator[TestClient]:
    yield running
    for provider in running.get(WEB).json()["providers"]:
        assert running.delete(f"{PROVIDERS}/{provider['name']}").status_code == 204
    assert running.patch(WEB, json=OFF).status_code == 200


def test_the_web_is_off_until_an_admin_switches_it_on(client: TestClient) -> None:
    assert client.get(WEB).json() == {**OFF, "providers": []}
    refused = client.post(f"{WEB}/search", json={"query": "leave"})
    assert refused.status_code == 409
    assert "quarry web on" in refused.json()["detail"]
    changed = client.patch(WEB, json={"is_on": True, "blocked_domains": ["www.Bad.example"]})
    assert changed.json() == {
        **OFF,
        "is_on": True,
        "blocked_domains": ["bad.example"],
        "providers": [],
    }
    refused = client.post(f"{WEB}/search", json={"query": "leave"})
    assert refused.status_code == 409
    assert "quarry web providers add" in refused.json()["detail"]


def test_providers_are_added_changed_moved_and_removed(
    container: Container, client: TestClient
) -> None:
    added = client.post(PROVIDERS, json=TAVILY | {"name": "desk"})
    assert (added.status_code, added.headers["location"]) == (201, f"{PROVIDERS}/desk")
    assert added.json() == {
        "name": "desk",
        "kind": "tavily",
        "title": "Tavily",
        "settings": {},
        "has_credential": True,
        "is_enabled": True,
        "per_minute": 60,
        "receiver": "api.tavily.com",
        "waits_until": None,
        "wait_reason": "",
    }
    client.post(
        PROVIDERS, json={"kind": "page", "settings": {"url": "https://s.example.com/?q=%s"}}
    )
    moved = client.put(f"{PROVIDERS}/page/position", json={"position": 1})
    assert [one["name"] for one in moved.json()["providers"]] == ["page", "desk"]
    changed = client.patch(f"{PROVIDERS}/desk", json={"is_enabled": False, "per_minute": 7})
    assert (changed.json()["is_enabled"], changed.json()["per_minute"]) == (False, 7)
    assert client.delete(f"{PROVIDERS}/page").status_code == 204
    assert [one["name"] for one in client.get(WEB).json()["providers"]] == ["desk"]
    assert SECRET not in str(audit.list_entries(container.database))
    for method, path in (("PATCH", ""), ("DELETE", ""), ("POST", "/test")):
        assert client.request(method, f"{PROVIDERS}/none{path}", json={}).status_code == 404


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"kind": "tavily"}, "credential.key"),
        ({"kind": "tavily", "credential": {"key": f"{SECRET} x"}}, "credential.key"),
        ({"kind": "searxng", "settings": {"api_url": "http://s.example.com"}}, "settings"),
        ({"kind": "page", "settings": {"url": "https://s.example.com"}}, "settings.url"),
        (TAVILY | {"name": "a/b"}, "name"),
        ({"kind": "google", "settings": {}}, None),
        (TAVILY | {"other": 1}, "body.other"),
    ],
)
def test_faults_name_their_field_and_repeat_no_key(
    client: TestClient, body: dict[str, Any], where: str | None
) -> None:
    refused = client.post(PROVIDERS, json=body)
    assert refused.status_code == 422
    assert SECRET not in refused.text
    if where:
        assert [one["where"] for one in refused.json()["errors"]] == [where]
    if where and not where.startswith("body"):
        assert refused.json()["detail"] == "The settings of the provider are not valid."
    assert client.get(WEB).json()["providers"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"allowed_domains": ["a b"]},
        {"allowed_domains": "example.com"},
        {"is_on": "maybe"},
        {"blocked_domains": ["a.example"] * 1_001},
        {"other": True},
    ],
)
def test_rules_that_are_wrong_change_nothing(client: TestClient, body: dict[str, Any]) -> None:
    assert client.patch(WEB, json=body | {"keeps_internal_names": False}).status_code == 422
    assert client.get(WEB).json() == {**OFF, "providers": []}


def test_a_search_shows_who_answered_and_who_failed(client: TestClient) -> None:
    first, second = TavilyWorld(), SearxngWorld()
    first.instead = first.used_up()
    with serve(first) as one, serve(second) as two:
        client.post(PROVIDERS, json=TAVILY | {"settings": first.settings(one.url)})
        client.post(PROVIDERS, json={"kind": "searxng", "settings": second.settings(two.url)})
        client.patch(WEB, json={"is_on": True})
        body = {"query": "parental leave", "limit": 2, "freshness": "month", "language": "en"}
        found = client.post(f"{WEB}/search", json=body)
    assert SECRET not in found.text
    outcome = found.json()
    assert outcome["answered_by"] == "searxng"
    assert [one["title"] for one in outcome["results"]] == ["Parental leave", "育儿假 2026"]
    assert outcome["results"][0] == {
        "title": "Parental leave",
        "url": "https://www.example.org/leave?a=1",
        "summary": "Parents have leave.",
        "published": "2026-03-02T00:00:00Z",
        "provider": "searxng",
    }
    failed, answered = outcome["attempts"]
    assert (failed["provider"], failed["failure"], failed["sent"]) == (
        "tavily",
        "quota",
        "parental leave",
    )
    assert "exceeds your plan" in failed["reason"]
    assert (answered["failure"], answered["found"]) == (None, 2)
    assert answered["receiver"] == "127.0.0.1"
    waiting = client.get(WEB).json()["providers"][0]
    assert waiting["waits_until"]
    assert "is used up" in waiting["wait_reason"]


def test_a_provider_is_tried_while_the_web_is_off(client: TestClient) -> None:
    world = TavilyWorld()
    with serve(world) as service:
        client.post(PROVIDERS, json=TAVILY | {"settings": world.settings(service.url)})
        found = client.post(f"{PROVIDERS}/tavily/test", json={"query": "leave"}).json()
        assert (found["answered_by"], len(found["results"])) == ("tavily", 3)
        world.instead = world.rejected_key()
        failed = client.post(f"{PROVIDERS}/tavily/test", json={})
    (attempt,) = failed.json()["attempts"]
    assert (attempt["failure"], attempt["sent"]) == ("credential", "weather")
    assert SECRET not in failed.text


def test_kinds_are_described_with_their_terms(client: TestClient) -> None:
    kinds = {one["kind"]: one for one in client.get(f"{WEB}/kinds").json()}
    assert list(kinds) == ["tavily", "brave", "serper", "searxng", "ddgs", "page"]
    assert kinds["tavily"]["credential"]["required"] == ["key"]
    assert kinds["searxng"]["credential"] is None
    assert kinds["searxng"]["settings"]["required"] == ["api_url"]
    assert "forbid automated queries" in kinds["ddgs"]["notice"]
    assert {"engine": "DuckDuckGo", "url": "https://duckduckgo.com/terms"} in kinds["ddgs"]["terms"]
    assert "forbid automated queries" in kinds["page"]["notice"]
    assert (kinds["tavily"]["notice"], kinds["tavily"]["terms"]) == ("", [])


def test_a_token_that_is_not_of_an_admin_reaches_none_of_it(
    container: Container, client: TestClient
) -> None:
    tokens = ApiTokenService(container.database)
    token = tokens.create("search", [TokenScope.SEARCH], timedelta(days=1))
    headers = {"Authorization": f"Bearer {token}"}
    answers = [
        client.get(WEB, headers=headers),
        client.post(f"{WEB}/search", json={"query": "leave"}, headers=headers),
        client.post(PROVIDERS, json=TAVILY, headers=headers),
    ]
    assert {one.status_code for one in answers} == {403}
    assert SECRET not in json.dumps([one.text for one in answers])
