"""The page of all API tokens, for admins who have signed in."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.container import Container
from backend.store import audit
from backend.store.accounts import api_tokens, people
from tests.unit.backend.api.conftest import ADDRESS
from tests.unit.backend.web.conftest import ANN, BOB


@pytest.fixture
def admin(browse: Any) -> TestClient:
    client: TestClient = browse(ANN)
    return client


def _rows(shown: str) -> list[str]:
    return [re.sub(r"<[^>]+>", "|", row) for row in re.findall(r"<tr>(.*?)</tr>", shown)[1:]]


def test_all_tokens_are_listed_and_no_secret(container: Container, admin: TestClient) -> None:
    bob = people.get_by_email(container.database, BOB)
    week, long_ago = timedelta(days=7), datetime(2020, 1, 1, tzinfo=UTC)
    own = ApiTokenService(container.database, owner=bob).create("ci", [TokenScope.ASK], week)
    service = ApiTokenService(container.database)
    old = service.create("ci", [TokenScope.METRICS], week, long_ago)
    shown = admin.get("/tokens").text
    of_bob, of_nobody = sorted(_rows(shown), key=lambda row: "service" in row)
    for text, row in ((BOB, of_bob), ("ask", of_bob), ("never", of_bob), ("(expired)", of_nobody)):
        assert text in row
    stored = api_tokens.list_tokens(container.database)
    assert not [each for each in (own, old, *(one.digest for one in stored)) if each in shown]


def test_a_service_token_is_shown_once_and_revoked(container: Container, admin: TestClient) -> None:
    form = {"name": "reports", "days": "30", "search": "yes", "metrics": "yes"}
    made = admin.post("/tokens", data=form)
    (token,) = re.findall(r"<code>(qry_[\w-]{43})</code>", made.text)
    assert made.headers["cache-control"] == "no-store"
    (stored,) = api_tokens.list_tokens(container.database)
    assert (stored.person_id, list(stored.scopes)) == (None, ["metrics", "search"])
    assert stored.expires_at - stored.created_at == timedelta(days=30)
    assert token not in admin.get("/tokens").text
    bearer = {"authorization": f"Bearer {token}"}
    program = TestClient(admin.app, base_url=ADDRESS, headers=bearer)
    assert program.get("/tokens").status_code == 403
    revoke = {"name": "reports", "person": ""}
    assert admin.post("/tokens/revoke", data=revoke).headers["location"] == "/tokens"
    assert program.get("/tokens").status_code == 401
    assert admin.post("/tokens/revoke", data=revoke).status_code == 404
    entries = audit.list_entries(container.database, limit=2)
    assert [(one.action, one.actor) for one in entries] == [
        ("revoke_token", f"user:{ANN}"),
        ("create_token", f"user:{ANN}"),
    ]


def test_of_tokens_of_one_name_that_of_the_person_is_revoked(
    container: Container, admin: TestClient
) -> None:
    bob = people.get_by_email(container.database, BOB)
    for owner in (None, bob):
        ApiTokenService(container.database, owner=owner).create(
            "ci", [TokenScope.ASK], timedelta(days=7)
        )
    for person in ("nobody@example.com", "a\0", ANN):
        assert (
            admin.post("/tokens/revoke", data={"name": "ci", "person": person}).status_code == 404
        )
    assert admin.post("/tokens/revoke", data={"name": "ci", "person": BOB}).status_code == 303
    (left,) = api_tokens.list_tokens(container.database)
    assert left.person_id is None


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"name": "x", "days": "30"},
        {"name": "x", "days": "0", "search": "yes"},
        {"name": "x", "days": "367", "search": "yes"},
        {"name": "x", "days": "-1", "search": "yes"},
        {"name": "x", "days": "9" * 50, "search": "yes"},
        {"name": "x", "days": "\u0663", "search": "yes"},
        {"name": "<b>", "days": "30", "search": "yes"},
        {"name": "a\0", "days": "30", "search": "yes"},
        {"name": "a" * 101, "days": "30", "search": "yes"},
    ],
)
def test_a_refused_token_says_why(
    container: Container, admin: TestClient, form: dict[str, str]
) -> None:
    refused = admin.post("/tokens", data=form)
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert api_tokens.list_tokens(container.database) == []


def test_members_reach_none_of_it(container: Container, browse: Any) -> None:
    bob = browse(BOB)
    form = {"name": "x", "days": "30", "admin": "yes"}
    assert bob.get("/tokens").status_code == 403
    assert bob.post("/tokens", data=form).status_code == 403
    assert bob.post("/tokens/revoke", data={"name": "x"}).status_code == 403
    assert api_tokens.list_tokens(container.database) == []
