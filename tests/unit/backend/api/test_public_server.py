"""A server that others reach: one name, one origin, cookies for TLS alone, and nobody in without an account."""

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from backend.access.people import AccountDetails, InvalidInvitationError, PeopleService
from backend.access.roles import Role
from backend.access.sessions import make_csrf_token
from backend.api.authorization import Permission, requires
from backend.api.public_address import PublicAddress
from backend.cli import server
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.store.accounts import people
from connectors.access import Readers
from tests.support.accounts import CHEAP, PASSWORD
from tests.unit.backend.api.conftest import make_container

URL = "https://quarry.example.com"
PAGE = {"accept": "text/html"}
ANN = {"name": "Ann Lee", "email": " Ann@Example.com", "password": PASSWORD}


@pytest.fixture
def empty(tmp_path: Path) -> Container:
    return make_container(tmp_path)


@pytest.fixture
def client(empty: Container, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setattr(server, "Passwords", lambda: CHEAP)
    listening = Listening(address="0.0.0.0", public_address=PublicAddress(URL))
    owner = Owner(empty.sign_in.machine_secret, Readers.of())
    app = make_app(empty, owner, listening)
    return TestClient(app, base_url=URL, follow_redirects=False)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "evil.example", "quarry.example.com:8443", "0.0.0.0", ""]
)
def test_it_answers_to_its_own_name(client: TestClient, host: str) -> None:
    refused = client.get("/sign-in", headers={"host": host})
    assert refused.status_code == 421
    assert URL in refused.json()["advice"]
    assert client.get("/sign-in").status_code == 200
    for probe in ("/healthz", "/readyz"):
        assert client.get(probe, headers={"host": host}).status_code in {200, 503}
    assert client.get("/healthz/../sign-in", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [(URL, 401), ("http://quarry.example.com", 403), ("https://evil.example", 403), ("null", 403)],
)
def test_it_answers_its_own_pages(client: TestClient, origin: str, status: int) -> None:
    form = {"email": "ann@example.com", "password": "wrong"}
    # A proxy speaks TLS with the browser, and HTTP with the server.
    behind = TestClient(client.app, base_url=URL.replace("https", "http"))
    for each in (client, behind):
        assert each.post("/sign-in", data=form, headers={"origin": origin}).status_code == status


def test_addresses_that_it_makes_are_those_that_people_open(client: TestClient) -> None:
    @requires(Permission.ANYONE)
    def whole(request: Request) -> str:
        return str(request.base_url)

    app: Any = client.app
    app.get("/whole")(whole)
    behind = TestClient(app, base_url=URL.replace("https", "http"))
    assert behind.get("/whole").json() == f"{URL}/"


def test_browsers_are_told_to_use_tls_alone(client: TestClient) -> None:
    assert client.get("/sign-in").headers["strict-transport-security"] == "max-age=31536000"


def test_the_secret_of_the_machine_admits_nobody(client: TestClient, empty: Container) -> None:
    secret = empty.sign_in.machine_secret
    code = secret.make_link_code()
    assert client.get("/link", params={"code": code}).status_code == 401
    by_secret = {"authorization": f"Bearer {secret.value}"}
    assert client.get("/metrics", headers=by_secret).status_code == 401
    client.cookies.set(secret.cookie_name, secret.make_session())
    assert client.get("/metrics").status_code == 401
    led = client.get("/sources", headers=PAGE)
    assert (led.status_code, led.headers["location"]) == (303, "/sign-in?next=%2Fsources")


def test_the_set_up_link_makes_the_first_admin_once(client: TestClient, empty: Container) -> None:
    service = PeopleService(empty.database)
    before, code = service.set_up(), service.set_up()
    assert client.get("/invitation", params={"code": before}).status_code == 404
    shown = client.get("/invitation", params={"code": code}, headers=PAGE)
    assert "first account" in shown.text
    assert 'name="email" value=""' in shown.text
    for wrong in ({"email": "nobody"}, {"password": "too short"}, {"name": ""}):
        refused = client.post("/invitation", data={**ANN, "code": code, **wrong})
        assert refused.status_code == 422
    made = client.post("/invitation", data={**ANN, "code": code})
    assert (made.status_code, made.headers["location"]) == (303, "/")
    person = people.get_by_email(empty.database, "ann@example.com")
    assert (person.role, person.verified) == (Role.ADMIN, "admin")
    again = {**ANN, "code": code, "email": "mallory@example.com"}
    assert client.post("/invitation", data=again).status_code == 404
    assert client.get("/metrics").status_code == 200


def test_cookies_are_of_this_host_and_of_tls_alone(client: TestClient, empty: Container) -> None:
    code = PeopleService(empty.database).set_up()
    made: Any = client.post("/invitation", data={**ANN, "code": code})
    cookies = made.headers.get_list("set-cookie")
    assert [cookie.partition("=")[0] for cookie in cookies] == [
        "__Host-quarry-session",
        "__Host-quarry-device",
    ]
    for cookie in cookies:
        assert re.search(r"; HttpOnly; Max-Age=\d+; Path=/; SameSite=lax; Secure$", cookie)
        assert "domain" not in cookie.lower()
    proof = make_csrf_token(client.cookies["__Host-quarry-session"])
    out = client.post("/sign-out", headers={"x-csrf-token": proof})
    assert out.headers["set-cookie"].startswith('__Host-quarry-session="";')
    assert out.headers["set-cookie"].endswith("; Secure")


def test_a_set_up_link_is_void_once_there_is_an_account(empty: Container) -> None:
    """Such as one that was printed when somebody made the first account in the terminal."""
    service = PeopleService(empty.database)
    link, invited = service.set_up(), service.invite("ann@example.com", Role.ADMIN)
    details = AccountDetails(name="Ann", password=PASSWORD)
    service.accept_invitation(invited, details, CHEAP)
    with pytest.raises(InvalidInvitationError):
        service.find_invitation(link)
    late = AccountDetails(name="Mallory", password=PASSWORD, email="mallory@example.com")
    with pytest.raises(InvalidInvitationError):
        service.accept_invitation(link, late, CHEAP)
    assert [person.email for person in service.list_people()] == ["ann@example.com"]
