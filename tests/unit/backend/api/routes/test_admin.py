"""Looking after sources over HTTP: every kind is connected by what its models say, and no secret comes back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.container import Container
from backend.store.schema.tables import metadata
from backend.store.sync import run_transitions, sources
from backend.sync.run_lease import is_gone, this_process
from connectors.registry import SOURCE_KINDS
from indexing.ingestion.ledger import Failed
from tests.unit.backend.api.conftest import client_of, make_container

SECRET = "t0p-secret"
REPOSITORY = {"url": "https://code.example.com/team/wiki.git", "readers": ["public"]}
TOKEN = {"sign_in": {"kind": "token", "token": SECRET}}
WIKI = "/api/admin/sources/wiki"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Container, TestClient]]:
    container = make_container(tmp_path_factory.mktemp("home"))
    with client_of(container) as client:
        yield container, client


@pytest.fixture
def fresh(served: tuple[Container, TestClient]) -> Container:
    """Without any source."""
    container, _ = served
    with container.database.writing() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
    return container


@pytest.fixture
def http(served: tuple[Container, TestClient], fresh: Container) -> TestClient:
    del fresh
    return served[1]


def _add(http: TestClient, **more: object) -> Any:
    body = {"kind": "git", "settings": REPOSITORY, **more}
    return http.post("/api/admin/sources", json=body)


def test_every_kind_reports_what_it_asks(http: TestClient) -> None:
    kinds = {one["kind"]: one for one in http.get("/api/admin/kinds").json()}
    assert list(kinds) == list(SOURCE_KINDS)
    assert kinds["folder"]["credential"] is None
    assert kinds["git"]["settings"]["required"] == ["url", "readers"]
    token = kinds["git"]["credential"]["$defs"]["Token"]["properties"]["token"]
    assert token["writeOnly"] is True
    assert set(kinds["folder"]["capabilities"]) == {"content", "listing", "access"}


def test_a_source_of_any_kind_is_added_and_its_credential_shown_to_nobody(
    http: TestClient, fresh: Container
) -> None:
    added = _add(http, credential=TOKEN)
    assert added.status_code == 201
    assert added.headers["Location"] == WIKI
    assert (added.json()["name"], added.json()["has_credential"]) == ("wiki", True)
    pages = "".join(http.get(path).text for path in (WIKI, "/api/admin/sources", "/api/sources"))
    assert SECRET not in pages + added.text
    sealed = sources.find(fresh.database, "wiki").credential
    assert sealed is not None
    assert SECRET not in sealed
    assert fresh.vault.open(sealed) == TOKEN


def test_each_fault_is_reported_by_its_place(http: TestClient) -> None:
    settings = {**REPOSITORY, "largest_file": 0, "brunch": "x"}
    refused = _add(http, settings=settings, credential={"sign_in": {"kind": "token"}})
    assert refused.status_code == 422
    assert {one["where"] for one in refused.json()["errors"]} == {
        "settings.largest_file",
        "settings.brunch",
        "credential.sign_in.token",
    }
    assert http.get("/api/admin/sources").json() == []


def test_a_fault_does_not_repeat_the_secret(http: TestClient) -> None:
    broken = {"sign_in": {"kind": "token", "token": f"{SECRET}\n{SECRET}"}}
    refused = _add(http, credential=broken)
    assert refused.status_code == 422
    assert SECRET not in refused.text


def test_a_kind_must_be_known_and_a_name_free(http: TestClient) -> None:
    assert _add(http, kind="fax").status_code == 422
    assert _add(http, name="a b").json()["errors"][0]["where"] == "name"
    assert _add(http).status_code == 201
    assert _add(http).status_code == 409


def test_an_edit_replaces_settings_and_keeps_the_credential(
    http: TestClient, fresh: Container
) -> None:
    _add(http, credential=TOKEN)
    settings = {**REPOSITORY, "branch": "main"}
    edited = http.patch(WIKI, json={"settings": settings})
    assert (edited.status_code, edited.json()["settings"]) == (200, settings)
    sealed = sources.find(fresh.database, "wiki").credential
    assert sealed is not None
    assert fresh.vault.open(sealed) == TOKEN
    again = http.patch(WIKI, json={"credential": {}})
    # Each edit asks for a run of its own.
    starts = {"next_starts": again.json()["next_starts"]}
    assert again.json()["notice"].startswith("No worker is running.")
    now = {**edited.json(), **starts, "has_credential": False, "notice": None}
    assert http.get(WIKI).json() == now


def test_an_edit_that_is_not_valid_changes_nothing(http: TestClient) -> None:
    _add(http)
    refused = http.patch(WIKI, json={"settings": {"url": ""}})
    assert refused.status_code == 422
    assert {one["where"] for one in refused.json()["errors"]} == {
        "settings.url",
        "settings.readers",
    }
    assert http.get(WIKI).json()["settings"] == REPOSITORY


def test_how_often_it_is_read_is_changed(http: TestClient) -> None:
    _add(http)
    response = http.put(f"{WIKI}/schedule", json={"incremental": 3_600, "prune": 0})
    assert response.json()["told"] == (
        "wiki: content sync every hour; permission sync every hour; deletion check never."
    )
    intervals = http.get(WIKI).json()["intervals"]
    assert intervals == {"incremental": 3_600, "permissions": 3_600, "prune": 0}
    http.put(f"{WIKI}/schedule", json={"incremental": None})
    assert http.get(WIKI).json()["intervals"] == {**intervals, "incremental": 900}


@pytest.mark.parametrize("seconds", [1, 59, -60, 2_592_001, 1.5, "often"])
def test_an_interval_that_makes_no_sense_is_refused(http: TestClient, seconds: object) -> None:
    _add(http)
    refused = http.put(f"{WIKI}/schedule", json={"prune": seconds, "incremental": 60})
    assert (refused.status_code, refused.json()["errors"][0]["where"]) == (422, "body.prune")
    assert http.get(WIKI).json()["intervals"]["incremental"] == 900


def test_a_test_reports_each_capability(http: TestClient, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    _add(http, kind="folder", settings={"path": str(tmp_path / "files")}, name="wiki")
    tried = http.post(f"{WIKI}/test").json()
    assert {one["capability"]: one["works"] for one in tried} == dict.fromkeys(
        ("content", "listing", "access"), True
    )
    (tmp_path / "files").rmdir()
    assert not any(one["works"] for one in http.post(f"{WIKI}/test").json())


def test_a_credential_that_no_key_opens_is_reported_by_a_test(
    http: TestClient, fresh: Container, tmp_path: Path
) -> None:
    _add(http, credential=TOKEN)
    (tmp_path / "other").mkdir()
    other = make_container(tmp_path / "other").vault
    sources.edit(fresh.database, "wiki", REPOSITORY, other.seal(TOKEN))
    (fault, *_) = [one["fault"] for one in http.post(f"{WIKI}/test").json()]
    assert "cannot be decrypted" in fault


def test_runs_failures_and_trying_again(http: TestClient, fresh: Container) -> None:
    _add(http)
    assert http.post(f"{WIKI}/retry", json={}).status_code == 409
    fresh.sources.ledger.save(
        [Failed(document_id="wiki:a", source="wiki", item="a.md", link=None, reason="it is empty")]
    )
    run = run_transitions.begin(fresh.database, "wiki", "incremental", this_process(), is_gone)
    run_transitions.finish(fresh.database, run, "failed", {"documents": 2}, "It broke.")
    (reported,) = http.get(f"{WIKI}/runs").json()
    assert (reported["kind"], reported["state"], reported["error"]) == (
        "incremental",
        "failed",
        "It broke.",
    )
    (failure,) = http.get(f"{WIKI}/failures").json()
    assert (failure["document_id"], failure["tries"]) == ("wiki:a", 1)
    assert http.post(f"{WIKI}/retry", json={"documents": ["wiki:b"]}).status_code == 409
    again = http.post(f"{WIKI}/retry", json={"documents": ["wiki:a"]})
    assert again.status_code == 202
    assert again.json()["told"].startswith("1 document of wiki")


def test_pause_resume_and_the_rest(http: TestClient) -> None:
    _add(http)
    assert http.post(f"{WIKI}/pause").status_code == 202
    assert http.get(WIKI).json()["state"] == "paused"
    assert http.post(f"{WIKI}/refresh").status_code == 409
    assert http.post(f"{WIKI}/resume").status_code == 202
    for word in ("refresh", "prune", "permissions"):
        assert http.post(f"{WIKI}/{word}").status_code == 202
    assert http.post(f"{WIKI}/cancel").status_code == 409
    assert http.post(f"{WIKI}/explode").status_code == 422
    assert http.delete(WIKI).status_code == 202
    assert http.get(WIKI).json()["state"] == "being removed"


def test_a_decision_is_reported_with_its_numbers_and_accepted(
    http: TestClient, fresh: Container
) -> None:
    _add(http)
    assert http.post(f"{WIKI}/accept").status_code == 409
    numbers = {"held": 900, "listed": 100, "missing": 800}
    run = run_transitions.begin(fresh.database, "wiki", "prune", this_process(), is_gone)
    run_transitions.require_decision(fresh.database, run, "Much is gone.", numbers)
    body = http.get(WIKI).json()
    assert (body["state"], body["decision"]) == ("needs a decision", numbers)
    assert "800 documents" in http.post(f"{WIKI}/accept").json()["told"]


def test_the_audit_lists_who_did_what_with_what_outcome(http: TestClient) -> None:
    _add(http)
    _add(http, name="other")
    http.post(f"{WIKI}/pause")
    http.post(f"{WIKI}/refresh")
    audit = "/api/admin/audit"
    entries = http.get(audit, params={"source": "wiki"}).json()
    assert [(one["action"], one["actor"], one["outcome"]) for one in entries] == [
        ("sync", "owner", "refused"),
        ("pause", "owner", "done"),
        ("add", "owner", "done"),
    ]
    assert "is paused" in entries[0]["detail"]["refused"]
    first, second, *_ = http.get(audit).json()
    page = http.get(audit, params={"before": first["id"], "limit": 1}).json()
    assert page == [second]
    assert http.get(audit, params={"actor": "somebody"}).json() == []
    assert http.get(audit, params={"before": 0}).status_code == 422


def test_the_audit_is_filtered_and_exported(http: TestClient) -> None:
    _add(http)
    http.post(f"{WIKI}/pause")
    audit = "/api/admin/audit"
    for which, expected in (
        ({"action": "pause"}, ["pause"]),
        ({"subject": "wiki", "actor": "owner"}, ["pause", "add"]),
        ({"since": "2026-01-01T00:00:00Z", "action": "add"}, ["add"]),
        ({"until": "2026-01-01T00:00:00+14:00"}, []),
    ):
        listed = http.get(audit, params=which)
        assert [one["action"] for one in listed.json()] == expected
        file = http.get(f"{audit}/export", params={**which, "format": "jsonl"})
        assert [json.loads(line) for line in file.text.splitlines()] == listed.json()
        assert file.headers["content-disposition"] == 'attachment; filename="audit.jsonl"'
    table = http.get(f"{audit}/export", params={"action": "pause"})
    assert table.headers["content-type"].startswith("text/csv")
    assert [line.split(",")[4] for line in table.text.splitlines()] == ["action", "pause"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"since": "2026-01-01T00:00:00"},
        {"since": "1767225600"},
        {"until": "333692"},
        {"since": "0001-01-01T00:00:00+14:00"},
        {"until": "9999-12-31T23:59:59-14:00"},
        {"format": "xls"},
    ],
)
def test_what_the_audit_cannot_be_filtered_by_is_refused(
    http: TestClient, wrong: dict[str, str]
) -> None:
    assert http.get("/api/admin/audit/export", params=wrong).status_code == 422


def test_the_audit_holds_no_credential(http: TestClient) -> None:
    _add(http, credential=TOKEN)
    http.patch(WIKI, json={"credential": TOKEN})
    response = http.get("/api/admin/audit")
    assert response.json()[0]["detail"] == {"changed": ["credential"]}
    assert SECRET not in response.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/runs"),
        ("GET", "/failures"),
        ("POST", "/retry"),
        ("POST", "/test"),
        ("POST", "/pause"),
        ("PUT", "/schedule"),
    ],
)
def test_what_is_not_there_is_reported(http: TestClient, method: str, path: str) -> None:
    answer = http.request(method, f"/api/admin/sources/nothing{path}", json={})
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith("There is no source named 'nothing'.")
