"""`GET /metrics`: what Prometheus reads, by its own parser."""

import platform
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import Request
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from backend.access.roles import Role
from backend.api.app import create_app
from backend.api.authorization import Asker
from backend.api.warmup import Warmup
from backend.version import read_version
from connectors.access import Readers
from tests.unit.backend.api.conftest import (
    SOURCE,
    client_of,
    connected,
    make_container,
    write_files,
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """Of a server of this test's own: what others ask is not counted."""
    write_files(tmp_path / "files")
    container = make_container(tmp_path / "home")
    connected(container, tmp_path / "files")
    with client_of(container) as client:
        yield client


def scrape(client: TestClient) -> dict[tuple[str, ...], float]:
    """Each figure by its name and the values of its labels."""
    got = client.get("/metrics")
    assert got.status_code == 200
    assert got.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(got.text)
        for sample in family.samples
    }


def test_sources_runs_and_documents_are_reported(client: TestClient) -> None:
    found = scrape(client)
    assert found["quarry_database_up",] == 1
    assert found["quarry_sources", "done"] == 1
    assert found["quarry_runs", "first", "done"] == 1
    assert found["quarry_documents", SOURCE] == 6
    assert found["quarry_outcomes_total", "documents"] == 6
    assert 0 <= time.time() - found["quarry_last_success_timestamp_seconds", "first", SOURCE] < 600
    assert found["quarry_oldest_open_batch_timestamp_seconds",] == 0


def test_what_there_is_none_of_is_zero(client: TestClient) -> None:
    found = scrape(client)
    assert found["quarry_sources", "failed"] == 0
    assert found["quarry_failed_documents", SOURCE] == 0
    assert found["quarry_open_batches", SOURCE] == 0
    assert found["quarry_workers", "index"] == 0
    assert found["quarry_last_success_timestamp_seconds", "permissions", SOURCE] == 0
    assert found["quarry_runs", "removal", "failed"] == 0
    assert found["quarry_runs", "reindex", "running"] == 0
    assert found["quarry_outcomes_total", "unreadable"] == 0
    assert found["quarry_pool_refused_total", "answers"] == 0
    assert found["quarry_pool_wait_seconds_count", "sync streams"] == 0
    assert found["quarry_web_cache_lookups_total", "page", "hit"] == 0
    assert found["quarry_stage_seconds_total", "fetch"] == 0
    assert found["quarry_indexed_total", "deleted"] == 0


def test_no_label_is_made_up(client: TestClient) -> None:
    """The first scrape has seen no request; and a kind of run is one that begins somewhere."""
    found = scrape(client)
    assert not [labels for labels in found if labels[0] == "quarry_requests_total"]
    assert {labels[1] for labels in found if labels[0] == "quarry_runs"} == {
        *("first", "incremental", "retry"),
        *("permissions", "prune", "removal"),
        *("reindex", "move"),
    }


def test_the_process_is_measured(client: TestClient) -> None:
    found = scrape(client)
    assert found["process_resident_memory_bytes",] > 1_000_000
    assert found["process_open_fds",] > 0


def test_searches_answers_and_requests_are_counted(client: TestClient) -> None:
    client.post("/api/search", json={"query": "parental leave"})
    client.post("/api/search", json={"query": ""})
    client.post("/api/ask", json={"question": "Who may travel first class?"})
    for name in ("secret-name", "another"):
        client.get(f"/api/documents/{name}")
        client.get(f"/nowhere/{name}")
    found = scrape(client)
    assert found["quarry_search_seconds_count",] == 1
    assert 0 < found["quarry_search_seconds_sum",] < 60
    assert found["quarry_answer_seconds_count",] == 1
    assert found["quarry_requests_total", "POST", "/api/search", "200"] == 1
    assert found["quarry_requests_total", "POST", "/api/search", "422"] == 1
    assert found["quarry_requests_total", "GET", "/api/documents/{document_id:path}", "404"] == 2
    # What nobody has declared is one figure, however it is called.
    assert found["quarry_requests_total", "", "", "404"] == 2
    assert not any("secret-name" in " ".join(labels) for labels in found)


def test_the_build_is_named(client: TestClient) -> None:
    assert scrape(client)["quarry_build_info", platform.python_version(), read_version()] == 1


def test_they_are_the_owners_and_of_this_machine(tmp_path: Path) -> None:
    with TestClient(create_app(make_container(tmp_path), _Visitors()), base_url=_HERE) as client:
        assert client.get("/metrics").status_code == 403
    with TestClient(
        create_app(make_container(tmp_path), _Visitors()), base_url=_ELSEWHERE
    ) as client:
        assert client.get("/metrics").status_code == 421


class _Visitors:
    async def authenticate(self, request: Request) -> Asker:
        del request
        return Asker(kind="local", readers=Readers.of(), role=Role.MEMBER)


def _is_never(warmup: Warmup, name: str) -> bool:
    del warmup, name
    return False


_HERE, _ELSEWHERE = "http://127.0.0.1:8321", "http://evil.example"


def test_a_database_that_is_away_is_a_figure(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Warmup, "is_made", _is_never)
    client.get("/healthz")
    found = scrape(client)
    assert found["quarry_database_up",] == 0
    assert found["quarry_requests_total", "GET", "/healthz", "200"] == 1
    assert not any(name == "quarry_sources" for name, *_ in found)
