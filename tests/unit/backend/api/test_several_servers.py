"""What is withdrawn at one server is withdrawn at all that share its database: none of them remembers anything."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi import Request

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.own_account import OwnAccount
from backend.access.password_reset import PasswordResetService
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, end_session
from backend.api.account_authentication import AccountCookies, AccountPresence
from backend.api.authentication import Authenticator
from backend.api.authorization import Asker
from backend.api.request_context import create_request_context
from backend.cli.server import Owner, make_authenticator
from backend.container import Container
from backend.store.accounts import groups, identities, people
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.access import Readers
from tests.support.accounts import CHEAP, PASSWORD, add_person
from tests.unit.backend.api.conftest import make_container

ANN, BOB = "ann@example.com", "bob@example.com"
ISSUER = "https://idp.example.com"
HELD = Readers.of(f"user:{BOB}", "group:hr", "group:legal")


@dataclass(frozen=True)
class Credentials:
    """What Bob holds, an admin."""

    database: Database
    """Of the other server."""
    person: Person
    session: str
    token: str


@pytest.fixture
def containers(tmp_path: Path, database_url: str) -> Iterator[list[Container]]:
    """Of two servers with one home and one database, each with connections of its own."""
    made = [make_container(tmp_path, database_url=database_url) for _ in range(2)]
    with closing(made[0].database), closing(made[1].database):
        yield made


@pytest.fixture
def bob(containers: list[Container]) -> Credentials:
    database = containers[0].database
    add_person(database, ANN, Role.ADMIN)
    person = add_person(database, BOB, Role.ADMIN)
    GroupService(database).create("hr")
    GroupService(database).add_member("hr", BOB)
    identities.add(database, ISSUER, "1", person.id, datetime.now(UTC))
    identities.record_statement(database, ISSUER, "1", datetime.now(UTC))
    groups.replace_of_person(database, person.id, ISSUER, {"legal"})
    token = ApiTokenService(database, owner=person).create("ci", [*TokenScope], timedelta(days=7))
    return Credentials(database, person, begin_session(database, person, Visitor()), token)


class Server:
    def __init__(self, container: Container) -> None:
        self._cookie = AccountCookies.of_machine(container.sign_in.machine_secret)
        owner = Owner(container.sign_in.machine_secret, Readers.of())
        accounts = AccountPresence(lambda: people.has_people(container.database))
        self._authenticator: Authenticator = make_authenticator(
            lambda: container.database, owner, self._cookie, accounts
        )

    def find_askers(self, bob: Credentials) -> tuple[Asker | None, Asker | None]:
        """Return who sends a request with Bob's session, and with his token."""
        return (
            self._recognize("cookie", f"{self._cookie.session}={bob.session}"),
            self._recognize("authorization", f"Bearer {bob.token}"),
        )

    def _recognize(self, name: str, value: str) -> Asker | None:
        scope = {"type": "http", "headers": [(name.encode(), value.encode())], "client": None}
        create_request_context(scope, "one")
        return asyncio.run(self._authenticator.authenticate(Request(scope)))


def _change_password(bob: Credentials) -> None:
    elsewhere = begin_session(bob.database, bob.person, Visitor())
    own = OwnAccount(bob.database, bob.person, Actor(f"user:{BOB}"))
    own.change_password(PASSWORD, "quite another long password", elsewhere, CHEAP)


def _reset_password(bob: Credentials) -> None:
    service = PasswordResetService(bob.database)
    service.finish(service.begin(BOB), "quite another long password", CHEAP)


@pytest.mark.parametrize(
    ("withdraw", "by_session", "by_token"),
    [
        (lambda bob: PeopleService(bob.database).disable(BOB), False, False),
        (lambda bob: PeopleService(bob.database).end_sessions(BOB), False, True),
        (lambda bob: end_session(bob.database, bob.session), False, True),
        (_change_password, False, True),
        (_reset_password, False, True),
        (
            lambda bob: ApiTokenService(bob.database, owner=bob.person).revoke("ci"),
            True,
            False,
        ),
    ],
)
def test_who_is_recognized_no_more_is_so_nowhere(
    containers: list[Container],
    bob: Credentials,
    withdraw: Callable[[Credentials], None],
    by_session: bool,  # noqa: FBT001 (what is expected)
    by_token: bool,  # noqa: FBT001 (what is expected)
) -> None:
    server = Server(containers[1])
    assert [asker and asker.readers for asker in server.find_askers(bob)] == [HELD, HELD]
    withdraw(bob)
    recognized = [asker is not None for asker in server.find_askers(bob)]
    assert recognized == [by_session, by_token]


def _unlink(bob: Credentials) -> None:
    OwnAccount(bob.database, bob.person, Actor(f"user:{BOB}")).unlink_identity(ISSUER, "1")


@pytest.mark.parametrize(
    ("withdraw", "lost"),
    [
        (lambda bob: GroupService(bob.database).remove_member("hr", BOB), "group:hr"),
        (lambda bob: GroupService(bob.database).delete("hr"), "group:hr"),
        (_unlink, "group:legal"),
        (lambda bob: people.set_verified(bob.database, bob.person.id, None), f"user:{BOB}"),
        (
            lambda bob: PeopleService(bob.database).change_email(BOB, "new@example.com"),
            f"user:{BOB}",
        ),
    ],
)
def test_what_is_no_longer_held_is_so_nowhere(
    containers: list[Container],
    bob: Credentials,
    withdraw: Callable[[Credentials], None],
    lost: str,
) -> None:
    server = Server(containers[1])
    assert [asker and asker.readers for asker in server.find_askers(bob)] == [HELD, HELD]
    withdraw(bob)
    for asker in server.find_askers(bob):
        assert asker is not None
        assert asker.readers == Readers(HELD.tokens - {lost})


def test_a_role_that_was_taken_is_nobodys_anywhere(
    containers: list[Container], bob: Credentials
) -> None:
    server = Server(containers[1])
    for role in (Role.ADMIN, Role.SOURCE_MANAGER, Role.MEMBER):
        PeopleService(bob.database).set_role(BOB, role)
        assert [asker and asker.role for asker in server.find_askers(bob)] == [role, role]
