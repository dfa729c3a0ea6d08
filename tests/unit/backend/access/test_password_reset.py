"""A password is chosen by a link of an admin: once, within a day, and until then the old one stays."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from backend.access.own_account import OwnAccount
from backend.access.password_reset import (
    RESET_LIFETIME,
    InvalidResetError,
    PasswordResetService,
)
from backend.access.people import PeopleService
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session
from backend.access.sign_in import Refused, SignedIn, SignInService
from backend.store import audit
from backend.store.accounts import password_resets, people
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.accounts import CHEAP, PASSWORD, add_person, find_person

ANN, BOB = "ann@example.com", "bob@example.com"
NEW = "quite another long password"


@pytest.fixture
def service(database: Database) -> PasswordResetService:
    add_person(database, ANN, Role.ADMIN)
    add_person(database, BOB)
    return PasswordResetService(database, Actor(f"user:{ANN}", "192.0.2.7"))


def _can_sign_in(database: Database, password: str) -> bool:
    result = SignInService(database, CHEAP).sign_in_with_password(BOB, password, Visitor())
    assert isinstance(result, SignedIn | Refused)
    return isinstance(result, SignedIn)


def test_the_link_replaces_the_password_once(service: PasswordResetService) -> None:
    database = service.database
    session = begin_session(database, people.get_by_email(database, BOB), Visitor())
    code = service.begin(" Bob@example.com ")
    assert service.find_person(code).email == BOB
    assert _can_sign_in(database, PASSWORD)
    assert find_person(database, session)
    service.finish(code, NEW, CHEAP)
    assert not _can_sign_in(database, PASSWORD)
    assert _can_sign_in(database, NEW)
    assert find_person(database, session) is None
    with pytest.raises(InvalidResetError):
        service.finish(code, "and yet another password", CHEAP)


def test_both_steps_are_in_the_audit_without_a_secret(service: PasswordResetService) -> None:
    code = service.begin(BOB)
    PasswordResetService(service.database, Actor("visitor", "203.0.113.9")).finish(code, NEW, CHEAP)
    chosen, begun = audit.list_entries(service.database, limit=2)
    assert (begun.action, begun.actor, begun.subject) == (
        "reset_password",
        f"user:{ANN}",
        f"user:{BOB}",
    )
    assert (chosen.action, chosen.actor, chosen.address) == (
        "choose_password",
        f"user:{BOB}",
        "203.0.113.9",
    )
    shown = f"{begun}{chosen}"
    assert not [each for each in (code, digest(code), NEW) if each in shown]


def test_a_link_is_valid_for_a_day(service: PasswordResetService) -> None:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    code, end = service.begin(BOB, now), now + RESET_LIFETIME
    assert service.find_person(code, end - timedelta(seconds=1)).email == BOB
    for use in (
        lambda: service.find_person(code, end),
        lambda: service.finish(code, NEW, CHEAP, end),
    ):
        with pytest.raises(InvalidResetError):
            use()


@pytest.mark.parametrize("password", ["short", "a" * 20, "a" * 300, BOB])
def test_a_refused_password_does_not_use_up_the_link(
    service: PasswordResetService, password: str
) -> None:
    code = service.begin(BOB)
    with pytest.raises(InvalidInputError):
        service.finish(code, password, CHEAP)
    service.finish(code, NEW, CHEAP)
    assert _can_sign_in(service.database, NEW)


def test_a_link_ends_with_another_a_change_of_the_password_and_the_account(
    service: PasswordResetService,
) -> None:
    database = service.database
    first = service.begin(BOB)
    second = service.begin(BOB)
    bob = people.get_by_email(database, BOB)
    session = begin_session(database, bob, Visitor())
    OwnAccount(database, bob, Actor(f"user:{BOB}")).change_password(PASSWORD, NEW, session, CHEAP)
    third = service.begin(BOB)
    PeopleService(database).disable(BOB)
    with pytest.raises(ConflictError):
        service.begin(BOB)
    PeopleService(database).enable(BOB)
    for code in (first, second, third, "", "no code"):
        with pytest.raises(InvalidResetError):
            service.find_person(code)


def test_a_link_of_an_account_that_is_disabled_all_the_same_is_dead(
    service: PasswordResetService,
) -> None:
    code = service.begin(BOB)
    bob = people.get_by_email(service.database, BOB)
    people.set_disabled(service.database, bob.id, datetime.now(UTC))
    with pytest.raises(InvalidResetError):
        service.finish(code, NEW, CHEAP)


def test_who_has_no_account_gets_no_link(service: PasswordResetService) -> None:
    with pytest.raises(NotFoundError):
        service.begin("nobody@example.com")


def test_of_two_that_use_a_link_at_once_one_does(service: PasswordResetService) -> None:
    code, outcomes = service.begin(BOB), []
    together = threading.Barrier(2)

    def finish(password: str) -> None:
        together.wait()
        try:
            service.finish(code, password, CHEAP)
            outcomes.append(password)
        except InvalidResetError:
            outcomes.append("refused")

    passwords = (NEW, "a third long password")
    threads = [threading.Thread(target=finish, args=(each,)) for each in passwords]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = people.get_by_email(service.database, BOB).password_hash
    (won,) = [each for each in passwords if CHEAP.is_correct(stored, each)]
    assert sorted(outcomes) == sorted([won, "refused"])
    assert password_resets.find_person(service.database, digest(code), datetime.now(UTC)) is None
