"""The page of the audit: filters stay chosen, pages follow each other, and what is shown can be had as a file."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.container import Container
from backend.store import audit
from backend.store.audit import Actor
from backend.web.pages.audit_page import AUDIT_PAGE
from tests.unit.backend.web.conftest import ANN


@pytest.fixture
def admin(browse: Any) -> Iterator[TestClient]:
    browser = browse(ANN)
    with browser:
        assert browser.app.state.app_state.warmup.ready.wait(60)
        yield browser


def _subjects(shown: str) -> list[str]:
    return re.findall(r"<bdi>(desk\d+)</bdi>", shown)


def _link(shown: str, text: str) -> str:
    (href,) = re.findall(rf'<a href="([^"]+)"[^>]*>{text}</a>', shown)
    return unescape(href)


def test_what_is_chosen_holds_for_older_pages_and_for_the_file(
    container: Container, admin: TestClient
) -> None:
    for number in range(AUDIT_PAGE + 2):
        actor = Actor("user:bob@example.com" if number != 1 else "owner")
        audit.record(container.database, "reindex", f"desk{number}", {}, actor)
    query = "/audit?action=reindex&actor=+user:bob@example.com&since=2026-01-01&until="
    first = admin.get(query).text
    older = admin.get(_link(first, "Older actions")).text
    assert [len(_subjects(page)) for page in (first, older)] == [AUDIT_PAGE, 1]
    assert _subjects(older) == ["desk0"]
    assert '<option value="reindex" selected>' in older
    file = admin.get(_link(first, "CSV")).text
    assert len(file.splitlines()) == 1 + AUDIT_PAGE + 1


def test_where_nothing_fits_it_says_so(admin: TestClient) -> None:
    assert "No such actions." in admin.get("/audit?actor=nobody").text


@pytest.mark.parametrize("since", ["yesterday", "0001-01-01", "2026-01-01T00:00"])
def test_what_is_no_day_is_refused(admin: TestClient, since: str) -> None:
    assert admin.get("/audit", params={"since": since}).status_code == 422


def test_hostile_words_are_shown_as_text(admin: TestClient) -> None:
    shown = admin.get("/audit", params={"actor": '"><script>alert(1)</script>'}).text
    assert "<script>alert" not in shown
