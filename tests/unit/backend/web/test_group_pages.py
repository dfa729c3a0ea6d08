"""The pages of groups, for admins alone."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.groups import GroupService, get_group
from backend.container import Container
from backend.store import audit
from backend.store.accounts import group_members, groups, people
from backend.store.database import Database
from tests.unit.backend.web.conftest import ANN, BOB

ISSUER = "https://idp.example.com/<b>"


@pytest.fixture
def admin(browse: Any) -> TestClient:
    client: TestClient = browse(ANN)
    return client


@pytest.fixture
def database(container: Container) -> Database:
    return container.database


def _members(database: Database, name: str) -> list[str]:
    group = get_group(database, name)
    return [one.email for one in group_members.list_members(database, group.id)]


def test_a_group_is_made_filled_renamed_and_deleted(admin: TestClient, database: Database) -> None:
    made = admin.post("/groups", data={"name": " <b>Staff</b> "})
    path = made.headers["location"]
    assert made.status_code == 303
    shown = admin.get("/groups").text
    assert f'href="{path}"' in shown
    assert "group:&lt;b&gt;Staff" in shown
    assert "<b>Staff" not in shown + admin.get(path).text
    assert admin.post(f"{path}/add", data={"email": BOB}).status_code == 303
    assert _members(database, "<b>Staff</b>") == [BOB]
    person = people.get_by_email(database, BOB)
    assert f'href="/person/{person.id}"' in admin.get(path).text
    assert f'href="{path}"' in admin.get(f"/person/{person.id}").text
    assert admin.post(f"{path}/rename", data={"name": "staff"}).headers["location"] == path
    assert admin.post(f"{path}/remove", data={"email": BOB}).status_code == 303
    assert _members(database, "staff") == []
    assert admin.post(f"{path}/delete").headers["location"] == "/groups"
    assert admin.get(path).status_code == 404
    entry = audit.list_entries(database, limit=1)[0]
    assert (entry.action, entry.actor, entry.subject) == (
        "delete_group",
        f"user:{ANN}",
        "group:staff",
    )


@pytest.mark.parametrize(
    ("action", "form"),
    [
        ("add", {"email": "nobody@example.com"}),
        ("add", {"email": "a\0@example.com"}),
        ("add", {}),
        ("remove", {"email": BOB}),
        ("rename", {"name": "taken"}),
        ("rename", {"name": ""}),
        ("rename", {"name": "a" * 200}),
    ],
)
def test_a_refused_change_says_why(
    admin: TestClient, database: Database, action: str, form: dict[str, str]
) -> None:
    GroupService(database).create("taken")
    group = GroupService(database).create("hr")
    refused = admin.post(f"/group/{group.id}/{action}", data=form)
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert group_members.find(database, group.id) == group
    assert admin.post("/groups", data={"name": "hr"}).status_code == 422


def test_groups_of_a_provider_are_shown_and_not_changed(
    admin: TestClient, database: Database
) -> None:
    bob = people.get_by_email(database, BOB)
    groups.replace_of_person(database, bob.id, ISSUER, {"hr"})
    path = f"/group/{get_group(database, 'hr').id}"
    shown = admin.get(path).text
    assert "https://idp.example.com/&lt;b&gt;" in shown
    assert f"{path}/" not in shown
    for action, form in (("delete", {}), ("remove", {"email": BOB}), ("add", {"email": ANN})):
        assert admin.post(f"{path}/{action}", data=form).status_code == 422
    assert _members(database, "hr") == [BOB]


def test_members_are_shown_a_page_at_a_time(
    admin: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.web.pages.group_pages.MEMBERS_PAGE", 1)
    service = GroupService(database)
    path = f"/group/{service.create('hr').id}"
    for email in (ANN, BOB):
        service.add_member("hr", email)
    first = admin.get(path).text
    assert (f'value="{ANN}"' in first, f'value="{BOB}"' in first) == (True, False)
    assert f'href="{path}?after=ann%40example.com"' in first
    second = admin.get(f"{path}?after={ANN}").text
    assert (f'value="{ANN}"' in second, f'value="{BOB}"' in second) == (False, True)


def test_members_reach_none_of_it(browse: Any, database: Database) -> None:
    bob = browse(BOB)
    path = f"/group/{GroupService(database).create('hr').id}"
    assert bob.get("/groups").status_code == 403
    assert bob.get(path).status_code == 403
    assert bob.post("/groups", data={"name": "mine"}).status_code == 403
    assert bob.post(f"{path}/add", data={"email": BOB}).status_code == 403
    assert bob.post(f"{path}/delete").status_code == 403
    assert _members(database, "hr") == []
