"""A line a request, an id in and out, and nothing private in either."""

import json
import logging
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.api.access_log import LOG
from tests.unit.backend.api.conftest import SOURCE

SECRET = "the plan of Alabaster"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(LOG, "propagate", True)
    caplog.set_level(logging.INFO, LOG.name)
    return lambda: [json.loads(one.message) for one in caplog.records if one.name == LOG.name]


def test_a_request_is_one_line(client: TestClient, lines: Any) -> None:
    client.get(f"/api/documents/{SOURCE}:leave.md", headers={"x-request-id": "abc-1"})
    (line,) = lines()
    assert line["request"] == "abc-1"
    assert (line["method"], line["status"], line["asker"]) == ("GET", 200, "local")
    assert line["route"] == "/api/documents/{document_id:path}"  # and not which document
    assert 0 < line["seconds"] < 60


@pytest.mark.parametrize("path", ["/api/search", "/api/ask"])
def test_what_is_asked_is_not_logged(
    client: TestClient, lines: Any, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    client.post(path, json={"query" if path.endswith("search") else "question": SECRET})
    client.get("/api/documents", params={"source": SECRET})
    client.get(f"/{SECRET}")
    assert len(lines()) == 3
    assert "Alabaster" not in caplog.text


def test_for_debugging_it_is(
    client: TestClient, lines: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, LOG.name)
    client.post("/api/search", json={"query": SECRET})
    assert lines()[0]["asked"] == SECRET


def test_refusals_are_logged_as_well(client: TestClient, lines: Any) -> None:
    client.get("/api/sources", headers={"host": "evil.example"})
    client.get("/no/such/page")
    assert [(line["status"], line["route"]) for line in lines()] == [(421, None), (404, None)]


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a\u00e9", '"}{'])
def test_an_id_that_cannot_stand_in_a_log_is_replaced(client: TestClient, given: str) -> None:
    got = client.get("/healthz", headers=[(b"x-request-id", given.encode())])
    assert re.fullmatch("[0-9a-f]{32}", got.headers["x-request-id"])
