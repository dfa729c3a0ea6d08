"""Browsers that sign in to a whole Quarry through a provider program that others wrote, and attackers who try to."""

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from backend.access.own_readers import find_own_readers
from backend.access.people import BY_ADMIN, PeopleService
from backend.access.roles import Role
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.settings import Settings
from backend.store import audit
from backend.store.accounts import identities, people
from backend.store.accounts.people import Person
from backend.worker.logs import JsonFormatter
from connectors.access import Readers
from tests.support.accounts import add_person, find_person
from tests.support.provider_program import ProviderProgram, provider_program

ADDRESS = "http://127.0.0.1:8321"
ANN = "ann@example.com"


@pytest.fixture(scope="module")
def program() -> Iterator[ProviderProgram]:
    with provider_program() as running:
        yield running


@pytest.fixture
def container(tmp_path: Path, program: ProviderProgram) -> Iterator[Container]:
    registered = program.register(f"{ADDRESS}/sign-in/openid/callback")
    values = {
        "home": tmp_path,
        "oidc_issuer": registered.issuer,
        "oidc_client_id": registered.client_id,
        "oidc_client_secret": registered.client_secret,
        "oidc_domains": "example.com",
    }
    made = Container(Settings.model_validate(values))
    with closing(made.database):
        add_person(made.database, "admin@example.com", Role.ADMIN)
        yield made


class Browser:
    """A browser with cookies of its own, at a Quarry that is the same for all of a test."""

    def __init__(self, container: Container, program: ProviderProgram) -> None:
        owner = Owner(container.sign_in.machine_secret, Readers.of())
        app = make_app(container, owner, Listening(address="127.0.0.1"))
        self.client = TestClient(app, base_url=ADDRESS, follow_redirects=False)
        self._container, self._program = container, program

    def go(self, subject: str) -> str:
        """Go to the provider as somebody, and return the address that leads back."""
        led = self.client.get("/sign-in/openid")
        assert led.status_code == 303, led.text
        return self._program.enter(led.headers["location"], subject)

    def sign_in(self, subject: str) -> Response:
        return self.client.get(self.go(subject))

    def who(self) -> Person | None:
        session = self.client.cookies.get(
            self._container.sign_in.machine_secret.name_cookie("account")
        )
        return find_person(self._container.database, session) if session else None

    def email(self) -> str | None:
        person = self.who()
        return person.email if person else None


@pytest.fixture
def browser(container: Container, program: ProviderProgram) -> Browser:
    program.put("ann", email=ANN, email_verified=True, name="Ann", groups=["legal", "hr"])
    return Browser(container, program)


@pytest.fixture
def attacker(container: Container, program: ProviderProgram) -> Browser:
    return Browser(container, program)


def test_somebody_is_signed_in_with_what_the_provider_says(
    browser: Browser, container: Container
) -> None:
    assert browser.sign_in("ann").headers["location"] == "/"
    person = browser.who()
    assert person is not None
    held = find_own_readers(container.database, person)
    assert held == Readers.of(f"user:{ANN}", "group:legal", "group:hr")


def test_groups_are_those_of_the_last_sign_in(
    browser: Browser, container: Container, program: ProviderProgram
) -> None:
    browser.sign_in("ann")
    program.put("ann", email=ANN, email_verified=True, groups=["legal", "sales"])
    browser.sign_in("ann")
    person = browser.who()
    assert person is not None
    held = find_own_readers(container.database, person)
    assert held == Readers.of(f"user:{ANN}", "group:legal", "group:sales")
    entry = audit.list_entries(container.database, audit.AuditFilter(action="set_groups"))[0]
    assert entry.detail["after"] == ["legal", "sales"]


def test_neither_code_nor_state_serve_again(browser: Browser, attacker: Browser) -> None:
    """Not in the browser that keeps the cookie, nor in another that has found the address in a log."""
    back = browser.go("ann")
    kept = dict(browser.client.cookies)
    assert browser.client.get(back).status_code == 303
    browser.client.cookies.clear()
    for name, value in kept.items():
        browser.client.cookies.set(name, value)
        attacker.client.cookies.set(name, value)
    for each in (browser, attacker):
        again = each.client.get(back)
        assert again.status_code == 403
        assert "This sign-in was already completed" in again.text
        assert each.who() is None


def test_nobody_is_signed_in_as_somebody_else_by_a_link(
    browser: Browser, attacker: Browser
) -> None:
    """The address that leads the attacker back, opened in the browser of a victim."""
    link = attacker.go("mallory")
    assert browser.client.get(link).status_code == 403
    assert browser.who() is None
    browser.sign_in("ann")
    assert browser.client.get(link).status_code == 403
    assert browser.email() == ANN


def test_a_code_of_an_attacker_does_not_end_the_sign_in_of_a_victim(
    browser: Browser, attacker: Browser
) -> None:
    own, foreign = urlsplit(browser.go("ann")), urlsplit(attacker.go("mallory"))
    code, state = (
        next(part for part in url.query.split("&") if part.startswith(f"{name}="))
        for url, name in ((foreign, "code"), (own, "state"))
    )
    refused = browser.client.get(f"{own.path}?{code}&{state}")
    assert refused.status_code == 403
    assert "another sign-in (nonce)" in refused.text
    assert browser.who() is None


def test_an_account_is_of_issuer_and_subject_whatever_the_address_becomes(
    browser: Browser, attacker: Browser, container: Container, program: ProviderProgram
) -> None:
    browser.sign_in("ann")
    before = browser.who()
    assert before is not None
    program.put("ann", email="ann.lee@example.com", email_verified=True)
    browser.sign_in("ann")
    after = browser.who()
    assert after is not None
    # The account keeps its address, for which nobody vouches any more.
    assert (after.id, after.email, after.verified) == (before.id, ANN, None)
    assert find_own_readers(container.database, after) == Readers.of()
    # Whoever has the address at the provider by now is somebody else.
    program.put("other", email=ANN, email_verified=True)
    assert attacker.sign_in("other").status_code == 403
    assert attacker.who() is None
    assert [one.subject for one in identities.list_of_person(container.database, after.id)] == [
        "ann"
    ]


@pytest.mark.parametrize("verification", [{"email_verified": True}, {}])
def test_an_address_alone_leads_into_no_account(
    attacker: Browser,
    container: Container,
    program: ProviderProgram,
    verification: dict[str, object],
) -> None:
    """Neither of somebody with a password, nor of an admin, nor of one whose address an admin changed."""
    add_person(container.database, "bob@example.com")
    PeopleService(container.database).change_email("bob@example.com", "bob.new@example.com")
    for email in (
        "admin@example.com",
        "bob.new@example.com",
        "bob@example.com",
        "ADMIN@Example.com",
    ):
        program.put("mallory", email=email, **verification)
        refused = attacker.sign_in("mallory")
        assert refused.status_code == 403
        assert attacker.who() is None
    assert len(people.list_people(container.database)) == 2
    for person in people.list_people(container.database):
        assert identities.list_of_person(container.database, person.id) == []


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "mallory@example.com"},
        {"email": "mallory@example.com", "email_verified": False},
        {"email": "mallory@example.com", "email_verified": "no"},
        {"email": "mallory@example.com", "email_verified": None},
        {"email": "mallory@elsewhere.org", "email_verified": True},
        {"email": "mallory@sub.example.com", "email_verified": True},
        {"email": "mallory@example.com.elsewhere.org", "email_verified": True},
        {"email": "mallory@elsewhere.org@example.com", "email_verified": True},
        {"email_verified": True},
        {},
    ],
)
def test_nobody_gets_an_account_by_an_address_that_is_not_verified(
    attacker: Browser, container: Container, program: ProviderProgram, claims: dict[str, object]
) -> None:
    program.put("mallory", **claims)
    assert attacker.sign_in("mallory").status_code == 403
    assert len(people.list_people(container.database)) == 1


def test_no_provider_puts_anybody_into_a_role_or_a_group_of_admins(
    attacker: Browser, program: ProviderProgram
) -> None:
    claims = {"role": "admin", "roles": ["admin"], "verified": BY_ADMIN, "groups": ["admin"]}
    program.put("mallory", email="mallory@example.com", email_verified=True, **claims)
    attacker.sign_in("mallory")
    person = attacker.who()
    assert person is not None
    assert (person.role, person.verified) == (Role.MEMBER, program.issuer)
    assert attacker.client.get("/people").status_code == 403


def test_nothing_of_a_sign_in_is_logged(
    browser: Browser, container: Container, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in the access log nor elsewhere, nor in the audit; whether it comes to its end or not."""
    caplog.set_level(logging.DEBUG)
    back = browser.go("ann")
    kept = dict(browser.client.cookies)
    browser.client.get(back)
    browser.client.get(back)
    session = browser.client.cookies[container.sign_in.machine_secret.name_cookie("account")]
    lines = [
        JsonFormatter().format(record)
        for record in caplog.records
        # What the browsers of this test and their clients say of themselves is not Quarry's.
        if not record.name.startswith(("httpx", "httpcore", "asyncio"))
    ]
    assert any('"/sign-in/openid/callback"' in line for line in lines)
    secrets = [part.partition("=")[2] for part in urlsplit(back).query.split("&")]
    kept_by_audit = str([one.detail for one in audit.list_entries(container.database, limit=100)])
    settings = container.settings.oidc_client_secret
    assert settings is not None
    for secret in (*secrets, *kept.values(), session, settings.get_secret_value()):
        assert len(secret) > 10
        assert not [line for line in lines if secret in line]
        assert secret not in kept_by_audit
