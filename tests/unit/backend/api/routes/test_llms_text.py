"""The text for language models names routes that exist, and shows them to whoever asks."""

import re

from fastapi.testclient import TestClient

from backend.api.routes.llms_text import TEXT

_ROUTE = re.compile(r"`(GET|POST|DELETE) (/\S+)`")
_AGENTS = re.compile(r"`(/\S+)`:.+Model Context Protocol")
_LINK = re.compile(r"\]\((/[^)]+)\)")


def test_every_route_that_is_named_exists(client: TestClient) -> None:
    described = client.get("/openapi.json").json()["paths"]
    named = _ROUTE.findall(TEXT)
    assert len(named) > 9
    assert [
        (method, path) for method, path in named if method.lower() not in described.get(path, {})
    ] == []


def test_agents_are_told_where_the_model_context_protocol_is_spoken(client: TestClient) -> None:
    address = _AGENTS.search(TEXT)
    assert address is not None
    assert client.get(address[1]).status_code == 405


def test_every_link_leads_to_something(client: TestClient) -> None:
    links = _LINK.findall(TEXT)
    assert links
    assert {client.get(link).status_code for link in links} == {200}


def test_it_is_markdown_that_nobody_has_to_sign_in_for(client: TestClient) -> None:
    answer = client.get("/llms.txt", headers={"authorization": ""})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    title, _, summary = answer.text.split("\n")[:3]
    assert title == "# Quarry"
    assert summary.startswith("> ")
