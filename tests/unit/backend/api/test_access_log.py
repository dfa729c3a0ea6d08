"""An entry a request, as all other logs write it; an id in and out, and nothing private in either."""

import json
import logging
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.api.access_log import LOG, log_start
from backend.version import describe_version
from backend.worker.logs import JsonFormatter
from tests.unit.backend.api.conftest import SOURCE

SECRET = "the plan of Alabaster"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """What the log of a process says of the requests."""
    caplog.set_level(logging.INFO, LOG.name)
    written = JsonFormatter("server 1").format
    return lambda: [json.loads(written(one)) for one in caplog.records if one.name == LOG.name]


def test_a_request_is_one_line(client: TestClient, lines: Any) -> None:
    client.get(f"/api/documents/{SOURCE}:leave.md", headers={"x-request-id": "abc-1"})
    (line,) = lines()
    assert line["request"] == "abc-1"
    assert (line["method"], line["status"], line["asker"]) == ("GET", 200, "local")
    assert line["route"] == "/api/documents/{document_id:path}"  # and not which document
    assert 0 < line["seconds"] < 60
    assert (line["level"], line["logger"]) == ("info", "quarry.requests")
    assert line["message"] == "GET /api/documents/{document_id:path}: 200"
    assert line["process"] == "server 1"


def test_the_first_entry_names_the_version(lines: Any) -> None:
    log_start()
    (line,) = lines()
    assert (line["event"], line["version"]) == ("start", describe_version())
    assert line["message"] == f"{describe_version()} starts"


@pytest.mark.parametrize("path", ["/api/search", "/api/ask"])
def test_what_is_asked_is_not_logged(
    client: TestClient, lines: Any, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    client.post(path, json={"query" if path.endswith("search") else "question": SECRET})
    client.get("/api/documents", params={"source": SECRET})
    client.get(f"/{SECRET}")
    assert len(lines()) == 3
    assert "Alabaster" not in caplog.text + json.dumps(lines())


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
