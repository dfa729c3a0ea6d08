"""Two people, or two requests of one, change accounts at the same moment: one transaction waits for the other."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from backend.access.api_tokens import ApiTokenService, TokenScope, find_valid_token
from backend.access.openid.accounts import ProviderAccounts
from backend.access.openid.claims import Identity
from backend.access.own_account import OwnAccount
from backend.access.password_reset import InvalidResetError, PasswordResetService
from backend.access.passwords import Passwords
from backend.access.people import (
    AccountDetails,
    InvalidInvitationError,
    PeopleService,
)
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session
from backend.access.sign_in import SignInService
from backend.access.sign_in_limits import MOST_BY_ACCOUNT
from backend.store.accounts import api_tokens, identities, people, sessions, used_links
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.errors import ConflictError
from tests.support.accounts import CHEAP, PASSWORD, add_person, find_person
from tests.support.races import race

ANN, BOB, NEW = "ann@example.com", "bob@example.com", "new@example.com"
OTHER_PASSWORD, THIRD_PASSWORD = "quite another long password", "a third long password"
ISSUER = "https://idp.example.com"
WEEK = timedelta(days=7)
EMMA = Identity(
    issuer=ISSUER,
    subject="1",
    email="emma@example.com",
    email_verified=True,
    name="Emma",
    groups=frozenset({"legal"}),
)


@pytest.fixture
def ann(database: Database) -> Person:
    return add_person(database, ANN, Role.ADMIN)


@pytest.fixture
def bob(database: Database, ann: Person) -> Person:
    del ann
    return add_person(database, BOB)


def _details(name: str) -> AccountDetails:
    return AccountDetails(name=name, password=PASSWORD)


def _has_password(database: Database, email: str, password: str) -> bool:
    return CHEAP.is_correct(people.get_by_email(database, email).password_hash, password)


# Invitations and links.


def test_two_people_accept_one_invitation(database: Database, ann: Person) -> None:
    code = PeopleService(database).invite(NEW, Role.MEMBER)
    outcome = race(
        database,
        lambda opened: PeopleService(opened).accept_invitation(code, _details("First"), CHEAP),
        lambda: PeopleService(database).accept_invitation(code, _details("Second"), CHEAP),
    )
    assert isinstance(outcome, InvalidInvitationError)
    assert [one.name for one in people.list_people(database)] == [ann.name, "First"]


@pytest.mark.usefixtures("ann")
def test_an_invitation_is_withdrawn_while_it_is_accepted(database: Database) -> None:
    code = PeopleService(database).invite(NEW, Role.ADMIN)
    outcome = race(
        database,
        lambda opened: PeopleService(opened).withdraw_invitation(NEW),
        lambda: PeopleService(database).accept_invitation(code, _details("New"), CHEAP),
    )
    assert isinstance(outcome, InvalidInvitationError)
    assert people.find_by_email(database, NEW) is None


@pytest.mark.usefixtures("ann")
def test_two_admins_invite_one_address(database: Database) -> None:
    service = PeopleService(database)
    codes: list[str] = []
    last = race(
        database,
        lambda opened: codes.append(PeopleService(opened).invite(NEW, Role.ADMIN)),
        lambda: service.invite(NEW, Role.MEMBER),
    )
    assert isinstance(last, str)
    (invitation,) = service.list_invitations()
    assert invitation.role == Role.MEMBER
    assert service.find_invitation(last) == invitation
    with pytest.raises(InvalidInvitationError):
        service.find_invitation(codes[0])


def test_two_first_accounts_are_made_by_one_link(database: Database) -> None:
    service = PeopleService(database)
    code = service.set_up()
    first, second = (
        AccountDetails(name=email, password=PASSWORD, email=email) for email in (ANN, BOB)
    )
    outcome = race(
        database,
        lambda opened: PeopleService(opened).accept_invitation(code, first, CHEAP),
        lambda: service.accept_invitation(code, second, CHEAP),
    )
    assert isinstance(outcome, InvalidInvitationError)
    assert [one.email for one in people.list_people(database)] == [ANN]


def test_two_people_use_one_link_for_a_password(database: Database, bob: Person) -> None:
    service = PasswordResetService(database)
    code = service.begin(bob.email)
    outcome = race(
        database,
        lambda opened: PasswordResetService(opened).finish(code, OTHER_PASSWORD, CHEAP),
        lambda: service.finish(code, THIRD_PASSWORD, CHEAP),
    )
    assert isinstance(outcome, InvalidResetError)
    assert _has_password(database, BOB, OTHER_PASSWORD)


def test_two_browsers_open_one_link_of_the_machine(database: Database) -> None:
    now, code = datetime.now(UTC), digest("code")
    outcomes: list[bool] = []
    second = race(
        database,
        lambda opened: outcomes.append(used_links.use(opened, code, now, expired=now)),
        lambda: used_links.use(database, code, now, expired=now),
    )
    assert (outcomes, second) == ([True], False)


# Addresses and roles.


def test_one_address_is_given_to_two_people(database: Database, bob: Person) -> None:
    add_person(database, "carol@example.com")
    outcome = race(
        database,
        lambda opened: PeopleService(opened).change_email(BOB, NEW),
        lambda: PeopleService(database).change_email("carol@example.com", NEW),
    )
    assert isinstance(outcome, ConflictError)
    assert people.get_by_email(database, NEW).id == bob.id
    assert people.find_by_email(database, "carol@example.com")


@pytest.mark.usefixtures("bob")
def test_an_address_is_given_to_somebody_and_to_an_invitation(database: Database) -> None:
    """Who is invited must not come to the account of another, nor make a second one of the address."""
    code = PeopleService(database).invite(NEW, Role.MEMBER)
    outcome = race(
        database,
        lambda opened: PeopleService(opened).change_email(BOB, NEW),
        lambda: PeopleService(database).accept_invitation(code, _details("New"), CHEAP),
    )
    assert isinstance(outcome, InvalidInvitationError)
    assert len(people.list_people(database)) == 2


def _disable(email: str) -> Callable[[Database], None]:
    return lambda database: PeopleService(database).disable(email)


def _demote(email: str) -> Callable[[Database], None]:
    return lambda database: PeopleService(database).set_role(email, Role.SOURCE_MANAGER)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_disable(ANN), _disable(BOB)),
        (_disable(ANN), _demote(BOB)),
        (_demote(ANN), _disable(BOB)),
        (_demote(ANN), _demote(BOB)),
    ],
)
def test_of_the_last_two_admins_one_stays(
    database: Database, first: Callable[[Database], None], second: Callable[[Database], None]
) -> None:
    for email in (ANN, BOB):
        add_person(database, email, Role.ADMIN)
    outcome = race(database, first, lambda: second(database))
    assert isinstance(outcome, ConflictError)
    bob = people.get_by_email(database, BOB)
    assert (bob.role, bob.disabled_at) == (Role.ADMIN, None)
    assert people.count_active_admins(database) == 1


# What is withdrawn while it is used.


def test_a_token_is_used_while_its_owner_is_disabled(database: Database, bob: Person) -> None:
    """The request that began before may be answered. What it writes brings nothing back."""
    token = ApiTokenService(database, owner=bob).create("mine", [TokenScope.SEARCH], WEEK)
    outcome = race(
        database,
        lambda opened: PeopleService(opened).disable(BOB),
        lambda: find_valid_token(database, token),
    )
    assert outcome is None or isinstance(outcome, tuple)
    assert find_valid_token(database, token) is None
    PeopleService(database).enable(BOB)
    assert find_valid_token(database, token) is None
    assert api_tokens.list_tokens(database) == []


def test_a_token_is_made_while_its_owner_is_disabled(database: Database, bob: Person) -> None:
    outcome = race(
        database,
        lambda opened: PeopleService(opened).disable(BOB),
        lambda: ApiTokenService(database, owner=bob).create("late", [TokenScope.SEARCH], WEEK),
    )
    assert isinstance(outcome, ConflictError)
    assert api_tokens.list_tokens(database) == []


def test_somebody_signs_in_while_their_account_is_disabled(database: Database, bob: Person) -> None:
    outcome = race(
        database,
        lambda opened: PeopleService(opened).disable(BOB),
        lambda: SignInService(database, CHEAP).begin(bob, Visitor()),
    )
    assert isinstance(outcome, ConflictError)
    PeopleService(database).enable(BOB)
    assert sessions.list_of_person(database, bob.id) == []


def test_a_session_is_used_while_it_is_ended(database: Database, bob: Person) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    session = begin_session(database, bob, Visitor(), long_ago)
    race(
        database,
        lambda opened: PeopleService(opened).end_sessions(BOB),
        lambda: find_person(database, session),
    )
    assert find_person(database, session) is None


@pytest.mark.usefixtures("bob")
def test_tries_at_once_are_no_more_than_tries_in_turn(database: Database) -> None:
    """Each is counted before its password is looked at."""
    looked_at: list[str] = []

    class Noting(Passwords):
        def is_correct(self, password_hash: str | None, password: str) -> bool:
            looked_at.append(password)
            return super().is_correct(password_hash, password)

    service = SignInService(database, Noting(CHEAP.hasher))
    together = threading.Barrier(2 * MOST_BY_ACCOUNT)

    def sign_in(number: int) -> None:
        together.wait()
        visitor = Visitor(address=f"192.0.2.{number}")
        service.sign_in_with_password(BOB, f"guess {number}", visitor)

    threads = [
        threading.Thread(target=sign_in, args=(number,)) for number in range(2 * MOST_BY_ACCOUNT)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(looked_at) <= MOST_BY_ACCOUNT


# The password of somebody else who has an open session.


def _own(database: Database, person: Person) -> OwnAccount:
    return OwnAccount(database, person, Actor(f"user:{person.email}"))


def test_who_knew_the_former_password_does_not_set_another(database: Database, bob: Person) -> None:
    """What the former one proved is void once the owner has chosen a password by a link."""
    stolen = begin_session(database, bob, Visitor())
    service = PasswordResetService(database)
    code = service.begin(BOB)
    outcome = race(
        database,
        lambda opened: PasswordResetService(opened).finish(code, OTHER_PASSWORD, CHEAP),
        lambda: _own(database, bob).change_password(PASSWORD, THIRD_PASSWORD, stolen, CHEAP),
    )
    assert isinstance(outcome, ConflictError)
    assert _has_password(database, BOB, OTHER_PASSWORD)
    assert find_person(database, stolen) is None


def test_a_request_that_waited_is_judged_by_the_password_of_now(
    database: Database, bob: Person
) -> None:
    """The account was read when the request began; its turn to hash comes later."""
    session = begin_session(database, bob, Visitor())
    people.set_password_hash(database, bob.id, CHEAP.hash(OTHER_PASSWORD))
    with pytest.raises(ConflictError):
        _own(database, bob).change_password(PASSWORD, THIRD_PASSWORD, session, CHEAP)
    assert _has_password(database, BOB, OTHER_PASSWORD)


def test_a_session_that_is_ended_meanwhile_changes_no_password(
    database: Database, bob: Person
) -> None:
    session = begin_session(database, bob, Visitor())
    outcome = race(
        database,
        lambda opened: PeopleService(opened).end_sessions(BOB),
        lambda: _own(database, bob).change_password(PASSWORD, THIRD_PASSWORD, session, CHEAP),
    )
    assert isinstance(outcome, ConflictError)
    assert _has_password(database, BOB, PASSWORD)


# Identities at a provider.


def _provider(database: Database) -> ProviderAccounts:
    return ProviderAccounts(database, frozenset({"example.com"}), "192.0.2.7")


@pytest.mark.usefixtures("ann")
def test_somebody_comes_for_the_first_time_in_two_browsers(database: Database) -> None:
    outcome = race(
        database,
        lambda opened: _provider(opened).sign_in(EMMA),
        lambda: _provider(database).sign_in(EMMA),
    )
    emma = people.get_by_email(database, "emma@example.com")
    assert isinstance(outcome, Person)
    assert outcome.id == emma.id
    assert len(identities.list_of_person(database, emma.id)) == 1


def test_two_people_link_one_identity(database: Database, ann: Person, bob: Person) -> None:
    outcome = race(
        database,
        lambda opened: _provider(opened).link(ann, ISSUER, "1"),
        lambda: _provider(database).link(bob, ISSUER, "1"),
    )
    assert isinstance(outcome, ConflictError)
    owner = identities.find_person(database, ISSUER, "1")
    assert owner is not None
    assert owner.id == ann.id


@pytest.mark.parametrize(
    "change",
    [
        lambda opened: PeopleService(opened).disable(BOB),
        lambda opened: people.set_password_hash(opened, 2, CHEAP.hash(OTHER_PASSWORD)),
    ],
)
def test_no_identity_is_linked_to_an_account_that_changes(
    database: Database, bob: Person, change: Callable[[Database], None]
) -> None:
    """It would outlive what was done against whoever has somebody else's session."""
    outcome = race(database, change, lambda: _provider(database).link(bob, ISSUER, "evil"))
    assert isinstance(outcome, ConflictError)
    assert identities.list_of_person(database, bob.id) == []


@pytest.mark.usefixtures("ann")
def test_both_ways_to_sign_in_are_unlinked(database: Database) -> None:
    emma = _provider(database).sign_in(EMMA)
    _provider(database).link(emma, ISSUER, "2")
    outcome = race(
        database,
        lambda opened: _own(opened, emma).unlink_identity(ISSUER, "1"),
        lambda: _own(database, emma).unlink_identity(ISSUER, "2"),
    )
    assert isinstance(outcome, ConflictError)
    assert [one.subject for one in identities.list_of_person(database, emma.id)] == ["2"]


def test_an_attempt_comes_back_in_two_requests(database: Database) -> None:
    together, outcomes = threading.Barrier(2), list[bool]()
    now = datetime.now(UTC)

    def finish() -> None:
        together.wait()
        outcomes.append(
            identities.finish_attempt(database, "state", now, now + timedelta(minutes=10))
        )

    threads = [threading.Thread(target=finish) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False, True]
