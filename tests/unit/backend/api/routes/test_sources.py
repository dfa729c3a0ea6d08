"""What is connected, over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.support.serving import events
from tests.unit.backend.api.conftest import FILES, SOURCE, client_of, make_container, write_files


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(make_container(tmp_path)) as client:
        yield client


def _add(client: TestClient, folder: Path, **more: object) -> int:
    body = {"kind": "folder", "settings": {"path": str(folder)}, **more}
    return client.post("/api/sources", json=body).status_code


def test_a_folder_is_added_synced_and_searched(fresh: TestClient, tmp_path: Path) -> None:
    folder = tmp_path / "my files"
    write_files(folder)
    (folder / "empty.pdf").write_bytes(b"%PDF-1.4")
    body = {"kind": "folder", "settings": {"path": str(folder), "exclude": ["*.txt"]}}
    added = fresh.post("/api/sources", json=body)
    assert added.status_code == 201
    assert (added.json()["name"], added.json()["state"]) == ("my-files", "never synced")

    received = list(events(fresh.post("/api/sources/my-files/sync").text.splitlines()))
    assert {event.name for event in received[:-1]} == {"progress"}
    assert received[-1].name == "done"
    # All but the text that is excluded, and the rules, which are no document.
    assert received[-1].data["documents"] == len(FILES) - 2
    assert received[-1].data["error"] is None

    (source,) = fresh.get("/api/sources").json()
    assert (source["documents"], source["failures"], source["state"]) == (len(FILES) - 2, 1, "done")
    assert source["run"]["counts"]["documents"] == len(FILES) - 2
    (failure,) = fresh.get("/api/failures").json()
    assert (failure["source"], failure["item"]) == ("my-files", "empty.pdf")
    assert fresh.get("/api/failures", params={"source": "other"}).json() == []
    assert fresh.post("/api/search", json={"query": "leave"}).json()["results"]


@pytest.mark.parametrize("path", ["/no/such/folder", "~nobody-of-this-name/x", "x" * 4_000, "\0"])
def test_what_is_no_folder_is_not_added(fresh: TestClient, path: str) -> None:
    assert _add(fresh, Path(path)) == 422
    assert fresh.get("/api/sources").json() == []


def test_a_file_is_no_folder(fresh: TestClient, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert _add(fresh, tmp_path / "file") == 422


@pytest.mark.parametrize("name", ["a b", "a:b", "a/b", "", "x" * 101])
def test_a_name_must_begin_ids(fresh: TestClient, tmp_path: Path, name: str) -> None:
    assert _add(fresh, tmp_path, name=name) == (201 if not name else 422)


def test_a_glob_must_be_one(fresh: TestClient, tmp_path: Path) -> None:
    body = {"kind": "folder", "settings": {"path": str(tmp_path), "include": ["[a"]}}
    assert fresh.post("/api/sources", json=body).status_code == 422


def test_a_name_is_taken_once(fresh: TestClient, tmp_path: Path) -> None:
    assert _add(fresh, tmp_path, name="one") == 201
    assert _add(fresh, tmp_path, name="one") == 409
    assert len(fresh.get("/api/sources").json()) == 1


def test_a_source_that_is_not_there_is_not_synced(client: TestClient) -> None:
    assert client.post("/api/sources/nowhere/sync").status_code == 404


def test_a_paused_source_is_not_synced(fresh: TestClient, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    _add(fresh, tmp_path / "files", name="wiki")
    fresh.post("/api/admin/sources/wiki/pause")
    refused = fresh.post("/api/sources/wiki/sync")
    assert (refused.status_code, "is paused" in refused.json()["detail"]) == (409, True)


def test_a_folder_that_went_away_is_reported_at_the_end(fresh: TestClient, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    assert _add(fresh, folder, name=SOURCE) == 201
    folder.rmdir()
    (done,) = events(fresh.post(f"/api/sources/{SOURCE}/sync").text.splitlines())
    assert (done.name, done.data["documents"]) == ("done", 0)
    assert "cannot be opened" in done.data["error"]
    assert fresh.get("/api/sources").json()[0]["state"] == "failed"


def test_a_source_that_lists_nothing_is_believed_when_that_is_said(
    fresh: TestClient, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    write_files(folder)
    _add(fresh, folder, name=SOURCE)
    fresh.post(f"/api/sources/{SOURCE}/sync")
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (*_, refused) = events(fresh.post(f"/api/sources/{SOURCE}/sync").text.splitlines())
    assert "lists no documents" in refused.data["error"]
    url = f"/api/sources/{SOURCE}/sync?accept_empty=true"
    (*_, done) = events(fresh.post(url).text.splitlines())
    assert (done.data["deleted"], done.data["error"]) == (len(FILES) - 1, None)
    entries = fresh.get("/api/admin/audit", params={"action": "sync"}).json()
    assert [one["detail"] for one in entries] == [
        {"empty_listing": "accept"},
        {"empty_listing": "refuse"},
        {"empty_listing": "refuse"},
    ]


def test_a_sync_of_a_paused_source_is_refused_and_that_is_recorded(
    fresh: TestClient, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    write_files(folder)
    _add(fresh, folder, name=SOURCE)
    assert fresh.post(f"/api/admin/sources/{SOURCE}/pause").status_code == 202
    assert fresh.post(f"/api/sources/{SOURCE}/sync").status_code == 409
    (entry,) = fresh.get("/api/admin/audit", params={"action": "sync"}).json()
    assert (entry["subject"], entry["outcome"]) == (SOURCE, "refused")
