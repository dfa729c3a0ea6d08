"""A Quarry with an admin and a member, and browsers in which they have signed in."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, make_csrf_token
from backend.api.account_authentication import AccountCookies
from backend.cli import server
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.store.accounts import people
from connectors.access import Readers
from tests.support.accounts import CHEAP, add_person
from tests.unit.backend.api.conftest import ADDRESS, make_container

ANN, BOB = "ann@example.com", "bob@example.com"


@pytest.fixture
def container(tmp_path: Path) -> Container:
    made = make_container(tmp_path)
    for email, role in ((ANN, Role.ADMIN), (BOB, Role.MEMBER)):
        add_person(made.database, email, role)
    return made


@pytest.fixture
def browse(container: Container, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a browser with a session of a person."""
    monkeypatch.setattr(server, "Passwords", lambda: CHEAP)
    owner = Owner(container.sign_in.machine_secret, Readers.of())
    app = make_app(container, owner, Listening(address="127.0.0.1"))
    cookie = AccountCookies.of_machine(container.sign_in.machine_secret).session

    def make(email: str) -> TestClient:
        person = people.get_by_email(container.database, email)
        session = begin_session(
            container.database, person, Visitor(address="192.0.2.7", user_agent="<b>Browser</b>")
        )
        proof = {"x-csrf-token": make_csrf_token(session)}
        client = TestClient(app, base_url=ADDRESS, follow_redirects=False, headers=proof)
        client.cookies.set(cookie, session)
        return client

    return make
