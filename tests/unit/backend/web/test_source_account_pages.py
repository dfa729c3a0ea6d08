"""The pages of source accounts: people ask on their own, and who looks after the source decides."""

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.roles import Role
from backend.container import Container
from backend.store.accounts import people
from backend.store.sync import source_accounts, sources
from backend.store.sync.source_accounts import SourceAccount
from tests.support.accounts import add_person
from tests.support.groups import save_groups
from tests.unit.backend.web.conftest import ANN, BOB

PAGE, HOSTILE = "/source-accounts", "<script>alert(1)</script>"
OCTOCAT = {"source": "hub", "account": "octocat"}


@pytest.fixture(autouse=True)
def _hub(container: Container) -> None:
    sources.add(container.database, "hub", "folder", {"path": "/srv/hub"})
    names = {"account/octocat": "Octo Cat", "account/hubot": HOSTILE}
    save_groups(container.database, "hub", dict.fromkeys(names, ()), names)


def _list(container: Container, email: str = BOB) -> list[SourceAccount]:
    person = people.get_by_email(container.database, email)
    return source_accounts.list_of_person(container.database, person.id)


def _ask(client: TestClient, **more: str) -> int:
    return client.post("/account/source-accounts", data={**OCTOCAT, **more}).status_code


def test_a_person_asks_sees_it_wait_and_has_it_once_it_is_approved(
    container: Container, browse: Any
) -> None:
    bob, ann = browse(BOB), browse(ANN)
    assert _ask(bob) == 303
    assert "not approved yet" in bob.get("/account").text
    (asked,) = _list(container)
    shown = ann.get(PAGE).text
    assert "Approve octocat for bob@example.com" in shown
    assert "No account is mapped." in shown
    assert "asked for" in ann.get(f"/person/{asked.person_id}").text
    assert ann.post(f"/source-account/{asked.id}/approve").headers["location"] == PAGE
    assert "yours since" in bob.get("/account").text
    assert "There are no account requests." in ann.get(PAGE).text
    given = {"account_id": asked.id}
    assert browse(ANN).post("/account/source-account", data=given).status_code == 404
    assert bob.post("/account/source-account", data=given).status_code == 303
    assert _list(container) == []


def test_what_cannot_be_asked_for_is_said(container: Container, browse: Any) -> None:
    refused = browse(BOB).post("/account/source-accounts", data={"source": "hub", "account": " "})
    assert refused.status_code == 422
    assert "Name the account in 1 to 200 characters" in refused.text
    assert _list(container) == []


def test_an_admin_finds_and_maps_an_account(container: Container, browse: Any) -> None:
    ann = browse(ANN)
    found = ann.get(PAGE, params={"source": "hub", "begin": "", "email": BOB}).text
    assert re.findall(r'<option value="(\w+)"', found) == ["hub", "hubot", "octocat"]
    assert HOSTILE not in found
    assert f'value="{BOB}"' in found
    assert "no such account" in ann.get(PAGE, params={"source": "hub", "begin": "x"}).text
    assert "no such account" in ann.get(PAGE, params={"source": "none"}).text
    assert ann.post(PAGE, data={"email": BOB, **OCTOCAT}).headers["location"] == PAGE
    assert [one.state for one in _list(container)] == ["mapped"]
    refused = ann.post(PAGE, data={"email": ANN, **OCTOCAT})
    assert refused.status_code == 422
    assert "is mapped to bob@example.com" in refused.text
    wrong = {"email": "none@example.com", "source": "hub", "begin": "hub", "account": "hubot"}
    assert '<option value="hubot" selected>' in ann.post(PAGE, data=wrong).text
    (mapped,) = _list(container)
    assert ann.post(f"/source-account/{mapped.id}/withdraw").status_code == 303
    assert _list(container) == []


def test_a_source_manager_decides_about_the_own_sources_alone(
    container: Container, browse: Any
) -> None:
    sam = add_person(container.database, "sam@example.com", Role.SOURCE_MANAGER)
    save_groups(container.database, "hub", {"account/octocat": ()})
    _ask(browse(BOB))
    (asked,) = _list(container)
    manager = browse("sam@example.com")
    assert "There are no account requests." in manager.get(PAGE).text
    assert manager.post(f"/source-account/{asked.id}/approve").status_code == 404
    sources.set_owner(container.database, "hub", sam.id)
    shown = manager.get(PAGE, params={"source": "hub"}).text
    assert "Approve octocat" in shown
    assert 'href="/people"' not in shown
    assert "Map account" not in shown
    assert manager.post(PAGE, data={"email": "sam@example.com", **OCTOCAT}).status_code == 403
    assert manager.post(f"/source-account/{asked.id}/approve").status_code == 303
    assert [one.mapped_by for one in _list(container)] == ["user:sam@example.com"]


def test_an_approval_that_cannot_be_given_says_why(container: Container, browse: Any) -> None:
    _ask(browse(BOB), account="nobody")
    (asked,) = _list(container)
    refused = browse(ANN).post(f"/source-account/{asked.id}/approve")
    assert refused.status_code == 422
    assert "hub lists no account nobody." in refused.text
