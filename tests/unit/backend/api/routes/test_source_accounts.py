"""Accounts of sources over HTTP: a person asks, an admin maps, approves and withdraws."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, make_csrf_token
from backend.access.source_accounts import MOST_ASKED
from backend.api.account_authentication import AccountCookies
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.store.accounts import people
from backend.store.database import Database
from backend.store.sync import source_accounts, sources
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.groups import save_groups
from tests.unit.backend.api.conftest import ADDRESS, make_container

ANN, BOB, CID = (f"{name}@example.com" for name in ("ann", "bob", "cid"))

OWN, ALL = "/api/source-accounts", "/api/admin/source-accounts"
OCTOCAT = {"source": "hub", "account": "octocat"}


@dataclass(frozen=True)
class World:
    database: Database
    clients: Mapping[str, TestClient]
    """The browsers in which people have signed in: tokens reach no route of their own accounts."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> World:
    container = make_container(tmp_path_factory.mktemp("accounts"))
    database, secret = container.database, container.sign_in.machine_secret
    sources.add(database, "hub", "folder", {"path": "/srv/hub"})
    names = {"account/octocat": "Octo Cat", "account/hubot": "hubot"}
    save_groups(database, "hub", dict.fromkeys(names, ()), names)
    app = make_app(container, Owner(secret, Readers.of()), Listening(address="127.0.0.1"))
    clients = {}
    for email, role in ((ANN, Role.ADMIN), (BOB, Role.MEMBER), (CID, Role.MEMBER)):
        session = begin_session(database, add_person(database, email, role), Visitor())
        proof = {"x-csrf-token": make_csrf_token(session)}
        clients[email] = TestClient(app, base_url=ADDRESS, headers=proof)
        clients[email].cookies.set(AccountCookies.of_machine(secret).session, session)
    return World(database, clients)


@pytest.fixture
def world(whole: World) -> World:
    """Nobody has or asks for an account."""
    for one in people.list_people(whole.database):
        mine = source_accounts.list_of_person(whole.database, one.id)
        source_accounts.remove(whole.database, [each.id for each in mine])
    return whole


def _ask(client: TestClient, body: object) -> Any:
    answer = client.post(OWN, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_person_asks_and_an_admin_approves(world: World) -> None:
    bob, ann = world.clients[BOB], world.clients[ANN]
    asked = _ask(bob, OCTOCAT)
    assert bob.get(OWN).json() == [asked]
    assert (asked["state"], asked["name"], asked["mapped_at"]) == ("asked", None, None)
    (listed,) = ann.get(ALL, params={"state": "asked"}).json()["accounts"]
    assert (listed["id"], listed["email"]) == (asked["id"], BOB)
    approved = ann.post(f"{ALL}/{asked['id']}/approve").json()
    assert (approved["state"], approved["name"]) == ("mapped", "Octo Cat")
    assert ann.get(ALL, params={"state": "asked"}).json() == {"accounts": [], "next": None}
    (own,) = bob.get(OWN).json()
    assert (own["state"], "mapped_by" in own, "email" in own) == ("mapped", False, False)
    assert bob.delete(f"{OWN}/{asked['id']}").status_code == 204
    assert bob.get(OWN).json() == []


def test_an_admin_maps_what_belongs_to_nobody(world: World) -> None:
    ann, bob = world.clients[ANN], world.clients[BOB]
    found = ann.get("/api/admin/sources/hub/accounts", params={"begin": "octo"}).json()
    assert found == [{"account": "octocat", "name": "Octo Cat"}]
    mapped = ann.post(ALL, json={"email": BOB, **OCTOCAT})
    assert mapped.status_code == 201
    assert mapped.json()["mapped_by"] == f"user:{ANN}"
    refused = ann.post(ALL, json={"email": CID, **OCTOCAT})
    assert refused.status_code == 409
    assert BOB in refused.text
    for wrong in ({"email": "none@example.com"}, {"source": "none"}):
        assert ann.post(ALL, json={"email": CID, **OCTOCAT, **wrong}).status_code == 404
    assert ann.delete(f"{ALL}/{mapped.json()['id']}").status_code == 204
    assert bob.get(OWN).json() == []


def test_nobody_maps_an_account_to_themselves(world: World) -> None:
    """Not by what they send in a request, nor by the routes of admins."""
    bob = world.clients[BOB]
    for more in ({"state": "mapped"}, {"token": "external:1:account/octocat"}, {"email": ANN}):
        assert bob.post(OWN, json={**OCTOCAT, **more}).status_code == 422
    asked = _ask(bob, OCTOCAT)
    assert bob.post(ALL, json={"email": BOB, **OCTOCAT}).status_code == 403
    assert bob.post(f"{ALL}/{asked['id']}/approve").status_code == 403
    assert bob.put(f"{OWN}/{asked['id']}", json={"state": "mapped"}).status_code == 405
    assert bob.get("/api/admin/sources/hub/accounts").status_code == 403
    assert [one["state"] for one in bob.get(OWN).json()] == ["asked"]


def test_to_ask_is_answered_alike_whoever_has_the_account(world: World) -> None:
    world.clients[ANN].post(ALL, json={"email": CID, **OCTOCAT})
    wanted = [OCTOCAT, {"source": "hub", "account": "nobody"}, {"source": "none", "account": "x"}]
    answers = [_ask(world.clients[BOB], body) for body in wanted]
    varying = {"id", "source", "account", "asked_at"}
    assert [{k: v for k, v in one.items() if k not in varying} for one in answers] == [
        {"name": None, "state": "asked", "mapped_at": None}
    ] * 3


def test_open_requests_are_limited(world: World) -> None:
    bob = world.clients[BOB]
    for number in range(MOST_ASKED):
        _ask(bob, {"source": "hub", "account": f"a{number}"})
    refused = bob.post(OWN, json=OCTOCAT)
    assert refused.status_code == 409
    assert str(MOST_ASKED) in refused.text
    assert _ask(bob, {"source": "hub", "account": "a0"})["state"] == "asked"
    assert _ask(world.clients[CID], OCTOCAT)["state"] == "asked"


def test_the_list_has_pages(world: World) -> None:
    asked = sorted(
        _ask(world.clients[BOB], {"source": "hub", "account": f"a{number}"})["id"]
        for number in range(5)
    )
    found: list[str] = []
    after = ""
    while after is not None:
        page = world.clients[ANN].get(ALL, params={"limit": 2, "after": after}).json()
        found += [one["id"] for one in page["accounts"]]
        after = page["next"]
    assert found == asked
