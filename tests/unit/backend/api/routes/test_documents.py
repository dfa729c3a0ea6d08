"""Documents over HTTP: what may be read, and what may not look like it is not there."""

import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.container import Container
from tests.support.files import pdf
from tests.unit.backend.api.conftest import (
    FILES,
    SOURCE,
    client_of,
    connected,
    make_container,
    write_files,
)

LEAVE = f"{SOURCE}:leave.md"
PAY = f"{SOURCE}:finance/pay.md"
MISSING = f"{SOURCE}:finance/raise.md"
PUBLIC_IDS = [
    f"{SOURCE}:{name}"
    for name in ("leave.md", "notes/original", "page.html", "plain.txt", "travel.md")
]


@pytest.fixture(scope="module")
def finance(container: Container) -> Iterator[TestClient]:
    with client_of(container, "group:finance") as client:
        yield client


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[TestClient, Path]]:
    """Files that a test may change, after they were read."""
    folder = tmp_path / "files"
    write_files(folder)
    container = make_container(tmp_path)
    connected(container, folder)
    with client_of(container) as client:
        yield client, folder


def test_a_document_is_shown_with_its_places_and_readers(client: TestClient) -> None:
    shown = client.get(f"/api/documents/{LEAVE}").json()
    assert (shown["id"], shown["title"], shown["readers"]) == (LEAVE, "Parental leave", ["public"])
    assert shown["media_type"] == "text/markdown"
    assert shown["has_original"] is True
    assert shown["synced_at"].endswith("Z")
    (chunk,) = shown["chunks"]
    start, end = chunk["span"]
    assert "26 weeks" in shown["sections"][chunk["section"]]["text"][start:end]


@pytest.mark.parametrize("ending", ["", "/original"])
def test_forbidden_and_missing_are_the_same_answer(client: TestClient, ending: str) -> None:
    """Status, headers and body, byte for byte."""
    same_id = {"x-request-id": "one"}
    forbidden = client.get(f"/api/documents/{PAY}{ending}", headers=same_id)
    missing = client.get(f"/api/documents/{MISSING}{ending}", headers=same_id)
    assert forbidden.status_code == missing.status_code == 404
    assert forbidden.content == missing.content
    assert forbidden.headers.raw == missing.headers.raw
    assert b"pay" not in forbidden.content


def test_a_page_of_a_pdf_is_an_image_for_its_readers_alone(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    (folder / "finance").mkdir(parents=True)
    (folder / "leave.pdf").write_bytes(pdf("Leave is 25 days."))
    (folder / "finance/pay.pdf").write_bytes(pdf("Band five."))
    (folder / "notes/pages").mkdir(parents=True)
    (folder / "notes/pages/1").write_text("A note that is named so.\n")
    (folder / "access.yaml").write_text(FILES["access.yaml"])
    container = make_container(tmp_path)
    connected(container, folder)
    with client_of(container) as client:
        image = client.get(f"/api/documents/{SOURCE}:leave.pdf/pages/1")
        assert (image.headers["content-type"], image.content[8:12]) == ("image/webp", b"WEBP")
        past = client.get(f"/api/documents/{SOURCE}:leave.pdf/pages/2").json()
        assert past["detail"] == "This page cannot be shown: the file has no page 2."
        named = client.get(f"/api/documents/{SOURCE}:notes/pages/1").json()
        assert named["id"] == f"{SOURCE}:notes/pages/1"
        same_id = {"x-request-id": "one"}
        forbidden, missing, invalid = (
            client.get(f"/api/documents/{SOURCE}:{name}", headers=same_id)
            for name in ("finance/pay.pdf/pages/1", "finance/no.pdf/pages/1", "leave.pdf/pages/0")
        )
        assert forbidden.status_code == 404
        assert forbidden.content == missing.content == invalid.content
        assert forbidden.headers.raw == missing.headers.raw
        (folder / "leave.pdf").write_bytes(pdf("Leave is 30 days, says a newer file."))
        changed = client.get(f"/api/documents/{SOURCE}:leave.pdf/pages/1")
        assert (changed.status_code, "not there any more" in changed.json()["detail"]) == (
            404,
            True,
        )


def test_only_pdf_files_have_images(client: TestClient) -> None:
    refused = client.get(f"/api/documents/{LEAVE}/pages/1")
    assert (refused.status_code, refused.json()["detail"]) == (
        404,
        "This document is not a PDF file.",
    )


def test_its_readers_see_it(finance: TestClient) -> None:
    shown = finance.get(f"/api/documents/{PAY}").json()
    (token,) = shown["readers"]
    assert token.startswith("external:1:rule/")
    assert shown["admitted"] == [
        {
            "reader": "group:finance",
            "member_of": ["access.yaml: finance/**"],
            "source_account": None,
        }
    ]
    assert b"band five" in finance.get(f"/api/documents/{PAY}/original").content


def test_who_is_no_admin_is_not_told_who_else_may_read(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    readers = "[group:finance, 'user:ann@example.com']"
    rules = f"rules:\n  - match: '**'\n    readers: {readers}\n"
    write_files(folder)
    (folder / "access.yaml").write_text(rules)
    container = make_container(tmp_path)
    connected(container, folder)
    tokens = ApiTokenService(container.database)
    searcher = tokens.create("searcher", [TokenScope.SEARCH], timedelta(days=1))
    with client_of(container, "group:finance") as client:
        for headers, named in (
            ({}, ["group:finance", "user:ann@example.com"]),
            ({"Authorization": f"Bearer {searcher}"}, ["group:finance"]),
        ):
            shown = client.get(f"/api/documents/{LEAVE}", headers=headers).json()
            assert "ann" not in "".join(shown["readers"])
            rule = ["access.yaml: **"]
            assert shown["admitted"] == [
                {"reader": one, "member_of": rule, "source_account": None} for one in named
            ]
            listed = client.get("/api/documents", headers=headers).json()["documents"]
            assert [one["readers"] for one in listed] == [shown["readers"]] * len(listed)


@pytest.mark.parametrize(
    "path", ["%00", f"{SOURCE}:%00", "%F0%9F%92%A9", "%2E%2E/secret", "%ff", "", "x" * 9000]
)
def test_what_names_no_document_is_not_found(client: TestClient, path: str) -> None:
    got = client.get(f"/api/documents/{path}")
    assert got.status_code == 404
    assert got.headers["content-type"] == "application/problem+json"


def test_only_what_may_be_read_is_listed(client: TestClient, finance: TestClient) -> None:
    def ids(of: TestClient) -> list[str]:
        return [one["id"] for one in of.get("/api/documents").json()["documents"]]

    assert ids(client) == PUBLIC_IDS
    assert ids(finance) == sorted([*PUBLIC_IDS, PAY])


def test_a_list_is_reported_in_pages(client: TestClient) -> None:
    first = client.get("/api/documents", params={"limit": 2}).json()
    assert first["next"] == PUBLIC_IDS[1]
    second = client.get("/api/documents", params={"limit": 2, "after": first["next"]}).json()
    last = client.get("/api/documents", params={"limit": 2, "after": second["next"]}).json()
    actual = [one["id"] for page in (first, second, last) for one in page["documents"]]
    assert actual == PUBLIC_IDS
    assert last["next"] is None


def test_a_list_can_be_of_one_source(client: TestClient) -> None:
    assert client.get("/api/documents", params={"source": "other"}).json()["documents"] == []
    assert len(client.get("/api/documents", params={"source": SOURCE}).json()["documents"]) == 5


@pytest.mark.parametrize("limit", [0, 501, "many"])
def test_a_page_has_bounds(client: TestClient, limit: object) -> None:
    assert client.get(f"/api/documents?limit={limit}").status_code == 422


def test_the_original_is_what_was_read(client: TestClient, folder: Path) -> None:
    got = client.get(f"/api/documents/{LEAVE}/original")
    assert got.content == (folder / "leave.md").read_bytes()
    assert got.headers["content-type"] == "text/markdown"
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''leave.md"


def test_an_original_runs_nothing_in_a_browser(client: TestClient) -> None:
    page = client.get(f"/api/documents/{SOURCE}:page.html/original").headers
    assert page["content-disposition"].startswith("attachment")
    assert page["x-content-type-options"] == "nosniff"
    assert "sandbox" in page["content-security-policy"]
    plain = client.get(f"/api/documents/{SOURCE}:plain.txt/original").headers
    assert plain["content-disposition"].startswith("inline")
    assert "sandbox" in plain["content-security-policy"]


def test_a_document_may_be_named_like_the_way_to_an_original(client: TestClient) -> None:
    named = f"{SOURCE}:notes/original"
    assert client.get(f"/api/documents/{named}").json()["id"] == named
    assert client.get(f"/api/documents/{named}/original").text == "A note that is named so.\n"


def test_a_touched_file_is_still_the_original(own: tuple[TestClient, Path]) -> None:
    client, folder = own
    os.utime(folder / "leave.md", (1, 1))
    assert "26 weeks" in client.get(f"/api/documents/{LEAVE}/original").text


def _edited(path: Path) -> None:
    path.write_text("# Parental leave\n\nParents have 27 weeks of paid leave.\n", encoding="utf-8")


def _grown(path: Path) -> None:
    path.write_text("something else", encoding="utf-8")


def _linked(path: Path) -> None:
    """To a file of the same content, elsewhere."""
    elsewhere = path.parent.parent / "elsewhere.md"
    shutil.copy2(path, elsewhere)
    path.unlink()
    path.symlink_to(elsewhere)


@pytest.mark.parametrize("change", [_edited, _grown, _linked, Path.unlink])
def test_a_file_that_is_not_what_was_read_is_not_handed_out(
    own: tuple[TestClient, Path], change: object
) -> None:
    client, folder = own
    assert callable(change)
    change(folder / "leave.md")
    got = client.get(f"/api/documents/{LEAVE}/original")
    assert got.status_code == 404
    assert "not there any more" in got.json()["detail"]
    assert client.get(f"/api/documents/{LEAVE}").json()["has_original"] is False
