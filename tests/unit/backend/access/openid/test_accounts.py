"""Whose an identity is, who may have a new account, and what a sign-in changes; on both databases."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.access.openid.accounts import AccountExistsError, ProviderAccounts
from backend.access.openid.claims import Identity
from backend.access.openid.errors import SignInRefusedError
from backend.access.own_readers import (
    STATEMENT_LIFETIME,
    add_groups_of_accounts,
    find_own_readers,
)
from backend.access.people import BY_ADMIN, InvalidInvitationError, PeopleService
from backend.access.roles import Role
from backend.store import audit
from backend.store.accounts import groups, identities, people
from backend.store.accounts.own_holdings import find_holdings
from backend.store.accounts.people import Person
from backend.store.database import Database, open_database
from connectors.access import Readers
from connectors.errors import ConflictError
from tests.support.databases import sqlite_in

ISSUER = "https://idp.example.com"
FIRST = "first@elsewhere.example"
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
ANN = Identity(
    issuer=ISSUER,
    subject="1",
    email="ann@example.com",
    email_verified=True,
    name="Ann",
    groups=frozenset(),
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(sqlite_in(tmp_path))) as opened:
        yield opened


@pytest.fixture
def either_database(database_url: str) -> Iterator[Database]:
    """SQLite or PostgreSQL, for what depends on the database."""
    with closing(open_database(database_url)) as opened:
        yield opened


@pytest.fixture
def accounts(database: Database) -> ProviderAccounts:
    return accounts_in(database)


def accounts_in(database: Database) -> ProviderAccounts:
    """Of a Quarry that an admin has set up."""
    add_person(database, FIRST)
    return ProviderAccounts(database, frozenset({"example.com"}), "192.0.2.1")


def add_person(database: Database, email: str, verified: str | None = BY_ADMIN) -> Person:
    return people.add(
        database,
        email=email,
        name="Somebody",
        role=Role.ADMIN,
        password_hash="hash",
        verified=verified,
        created_at=NOW,
    )


def readers_of(database: Database, email: str) -> Readers:
    return find_own_readers(database, people.get_by_email(database, email))


def actions(database: Database) -> list[str]:
    return [f"{each.subject} {each.action} {each.outcome}" for each in audit.list_entries(database)]


def test_somebody_of_a_domain_of_the_provider_becomes_a_member(
    accounts: ProviderAccounts, database: Database
) -> None:
    person = accounts.sign_in(ANN)
    assert (person.email, person.role, person.verified) == ("ann@example.com", Role.MEMBER, ISSUER)
    assert person.password_hash is None
    assert accounts.sign_in(ANN).id == person.id
    assert actions(database) == [
        "user:ann@example.com link_identity done",
        "user:ann@example.com join done",
    ]
    assert {each.address for each in audit.list_entries(database)} == {"192.0.2.1"}


@pytest.mark.parametrize(
    "identity",
    [
        replace(ANN, email_verified=False),
        replace(ANN, email=None),
        replace(ANN, email="ann@other.example"),
        replace(ANN, email="ann@sub.example.com"),
        replace(ANN, email="ann@example.com@other.example"),
        replace(ANN, email="example.com"),
    ],
)
def test_nobody_else_is_given_an_account(
    accounts: ProviderAccounts, database: Database, identity: Identity
) -> None:
    with pytest.raises(SignInRefusedError, match="no account of yours"):
        accounts.sign_in(identity)
    assert [person.email for person in people.list_people(database)] == [FIRST]
    assert actions(database) == ["user:unknown sign_in refused"]


@pytest.mark.parametrize("verified", [BY_ADMIN, None])
def test_an_address_alone_never_leads_into_an_account(
    accounts: ProviderAccounts, database: Database, verified: str | None
) -> None:
    add_person(database, "ann@example.com", verified)
    with pytest.raises(AccountExistsError) as refused:
        accounts.sign_in(ANN)
    assert refused.value.email == "ann@example.com"
    assert accounts.find(ANN) is None


def test_an_identity_is_linked_to_one_account(either_database: Database) -> None:
    database, accounts = either_database, accounts_in(either_database)
    ann = add_person(database, "ann@elsewhere.example")
    accounts.link(ann, ISSUER, "1")
    assert accounts.sign_in(ANN).id == ann.id
    with pytest.raises(ConflictError):
        accounts.link(add_person(database, "eve@example.com"), ISSUER, "1")
    assert accounts.sign_in(ANN).id == ann.id
    assert accounts.find(replace(ANN, issuer="https://other.example.com")) is None


def test_an_invitation_is_accepted_where_the_provider_vouches_for_its_address(
    either_database: Database,
) -> None:
    database, accounts = either_database, accounts_in(either_database)
    add_person(database, "admin@example.com")
    service = PeopleService(database)
    code = service.invite("ann@example.com", Role.SOURCE_MANAGER)
    with pytest.raises(SignInRefusedError):
        accounts.sign_in(replace(ANN, email_verified=False))
    assert service.find_invitation(code).email == "ann@example.com"
    assert accounts.sign_in(ANN).role == Role.SOURCE_MANAGER
    assert service.list_invitations() == []


def test_an_invitation_that_has_expired_gives_no_role(
    accounts: ProviderAccounts, database: Database
) -> None:
    add_person(database, "admin@example.com")
    PeopleService(database).invite("ann@example.com", Role.ADMIN, now=NOW)
    assert accounts.sign_in(ANN, NOW + timedelta(days=8)).role == Role.MEMBER


def test_an_invitation_makes_one_account_and_only_for_its_address(
    either_database: Database,
) -> None:
    database, accounts = either_database, accounts_in(either_database)
    service = PeopleService(database)
    code = service.invite("ann@example.com", Role.SOURCE_MANAGER, NOW)
    other = replace(ANN, subject="2", email="eve@example.com")
    for identity in (other, replace(ANN, email_verified=False), replace(ANN, email=None)):
        with pytest.raises(SignInRefusedError, match=r"The invitation is for ann@example\.com"):
            accounts.accept_invitation(identity, code, NOW)
    with pytest.raises(InvalidInvitationError):
        accounts.accept_invitation(ANN, code, NOW + timedelta(days=8))
    person = accounts.accept_invitation(ANN, code, NOW)
    assert (person.email, person.role) == ("ann@example.com", Role.SOURCE_MANAGER)
    for identity in (ANN, replace(ANN, subject="3")):
        with pytest.raises(InvalidInvitationError):
            accounts.accept_invitation(identity, code, NOW)
    assert accounts.find(replace(ANN, subject="3")) is None
    assert accounts.sign_in(ANN, NOW).id == person.id


def test_a_set_up_link_is_not_accepted_by_an_identity_without_an_address(
    database: Database,
) -> None:
    code = PeopleService(database).set_up(NOW)
    with pytest.raises(SignInRefusedError):
        ProviderAccounts(database, frozenset({"example.com"}), None).accept_invitation(
            replace(ANN, email=None), code, NOW
        )
    assert people.list_people(database) == []


def test_a_former_address_of_somebody_is_given_by_an_invitation_alone(
    accounts: ProviderAccounts, database: Database
) -> None:
    people_service = PeopleService(database)
    add_person(database, "ann@example.com")
    people_service.change_email("ann@example.com", "lee@example.com")
    with pytest.raises(SignInRefusedError, match="another account"):
        accounts.sign_in(ANN, NOW)
    people_service.release_email("ann@example.com")
    people_service.invite("ann@example.com", Role.SOURCE_MANAGER, NOW)
    assert accounts.sign_in(ANN, NOW).role == Role.SOURCE_MANAGER


def test_a_disabled_account_is_refused(accounts: ProviderAccounts, database: Database) -> None:
    add_person(database, "admin@example.com")
    accounts.sign_in(replace(ANN, groups=frozenset({"legal"})))
    PeopleService(database).disable("ann@example.com")
    with pytest.raises(SignInRefusedError, match="disabled"):
        accounts.sign_in(ANN)
    assert "user:unknown sign_in refused" in actions(database)[0]
    assert readers_of(database, "ann@example.com").tokens >= {"group:legal"}


def test_groups_are_replaced_at_each_sign_in(either_database: Database) -> None:
    database, accounts = either_database, accounts_in(either_database)
    accounts.sign_in(replace(ANN, groups=frozenset({"legal", "all staff", "100%"})))
    own = {"public", "user:ann@example.com"}
    assert readers_of(database, "ann@example.com").tokens == own | {
        "group:legal",
        "group:all%20staff",
        "group:100%25",
    }
    accounts.sign_in(replace(ANN, groups=frozenset({"legal", "sales"})))
    assert readers_of(database, "ann@example.com").tokens == own | {"group:legal", "group:sales"}
    last = audit.list_entries(database, limit=1)[0]
    assert last.detail["before"] == ["100%", "all staff", "legal"]
    assert last.detail["after"] == ["legal", "sales"]
    accounts.sign_in(ANN)
    assert readers_of(database, "ann@example.com").tokens == own


def test_a_provider_says_nothing_of_the_groups_of_another(either_database: Database) -> None:
    database, accounts = either_database, accounts_in(either_database)
    other = add_person(database, "bob@example.com")
    groups.replace_of_person(database, other.id, "https://other.example.com", {"legal"})
    identities.add(database, "https://other.example.com", "2", other.id, NOW)
    identities.record_statement(database, "https://other.example.com", "2", datetime.now(UTC))
    accounts.sign_in(replace(ANN, groups=frozenset({"legal", "sales"})))
    own = {"public", "user:ann@example.com"}
    assert readers_of(database, "ann@example.com").tokens == own | {"group:sales"}
    assert readers_of(database, "bob@example.com").tokens >= {"group:legal"}


def test_what_a_provider_said_long_ago_does_not_count(either_database: Database) -> None:
    database, accounts = either_database, accounts_in(either_database)
    accounts.sign_in(replace(ANN, groups=frozenset({"legal"})), NOW)
    ann = people.get_by_email(database, "ann@example.com")
    end = NOW + STATEMENT_LIFETIME
    before = find_own_readers(database, ann, end - timedelta(seconds=1))
    assert before.tokens == {"public", "user:ann@example.com", "group:legal"}
    assert find_own_readers(database, ann, end).tokens == {"public"}
    accounts.sign_in(replace(ANN, groups=frozenset({"legal"})), end)
    assert find_own_readers(database, ann, end).tokens == before.tokens
    # Whom an admin has verified keeps the address.
    PeopleService(database).verify("ann@example.com")
    verified = people.get_by_email(database, "ann@example.com")
    later = find_own_readers(database, verified, end + STATEMENT_LIFETIME)
    assert later.tokens == {"public", "user:ann@example.com"}


def test_an_identity_that_was_linked_states_nothing_yet(
    accounts: ProviderAccounts, database: Database
) -> None:
    bob = add_person(database, "bob@elsewhere.example")
    accounts.link(bob, ISSUER, "1")
    assert find_holdings(database, bob.id, NOW - timedelta(days=3650)).groups == {}


def test_nobody_gets_the_first_account_by_a_provider(database: Database) -> None:
    accounts = ProviderAccounts(database, frozenset({"example.com"}), None)
    with pytest.raises(SignInRefusedError, match="set-up link"):
        accounts.sign_in(ANN)
    assert people.list_people(database) == []


def test_letters_that_only_look_like_an_address_are_nobodys(
    accounts: ProviderAccounts, database: Database
) -> None:
    with pytest.raises(SignInRefusedError):
        accounts.sign_in(replace(ANN, email="\N{KELVIN SIGN}urt@example.com"))
    assert [person.email for person in people.list_people(database)] == [FIRST]


def test_of_a_name_what_can_be_shown_is_kept(accounts: ProviderAccounts) -> None:
    written = "  Ann\x00\N{RIGHT-TO-LEFT OVERRIDE}  Lee\ud800 " + "x" * 200
    assert accounts.sign_in(replace(ANN, name=written)).name == "Ann Lee " + "x" * 92
    bob = replace(ANN, subject="2", email="bob@example.com", name="\x00")
    assert accounts.sign_in(bob).name == "bob@example.com"


def test_an_attempt_comes_back_once(either_database: Database) -> None:
    end = NOW + timedelta(minutes=10)
    assert identities.finish_attempt(either_database, "a", NOW, end)
    assert identities.finish_attempt(either_database, "b", NOW, end)
    assert not identities.finish_attempt(either_database, "a", NOW, end)
    # Later it is too old anyway, and forgotten.
    assert identities.finish_attempt(either_database, "a", end, end)


def test_two_people_are_in_one_group(accounts: ProviderAccounts, database: Database) -> None:
    bob = replace(ANN, subject="2", email="bob@example.com")
    for identity in (ANN, bob):
        accounts.sign_in(replace(identity, groups=frozenset({"legal"})))
    accounts.sign_in(ANN)
    assert "group:legal" not in readers_of(database, "ann@example.com").tokens
    assert "group:legal" in readers_of(database, "bob@example.com").tokens


@pytest.mark.parametrize(
    "identity",
    [
        replace(ANN, email_verified=False),
        replace(ANN, email="ann@example.org"),
        replace(ANN, email=None),
    ],
)
def test_an_address_is_not_verified_any_more_once_the_provider_does_not_vouch_for_it(
    accounts: ProviderAccounts, database: Database, identity: Identity
) -> None:
    accounts.sign_in(ANN)
    accounts.sign_in(identity)
    assert readers_of(database, "ann@example.com") == Readers.of()
    accounts.sign_in(ANN)
    assert readers_of(database, "ann@example.com") == Readers.of("user:ann@example.com")


@pytest.mark.parametrize("identity", [ANN, replace(ANN, email_verified=False)])
def test_what_an_admin_verified_is_not_for_the_provider_to_change(
    accounts: ProviderAccounts, database: Database, identity: Identity
) -> None:
    ann = add_person(database, "ann@example.com")
    accounts.link(ann, ISSUER, "1")
    accounts.sign_in(identity)
    assert people.get_by_email(database, "ann@example.com").verified == BY_ADMIN


def test_a_linked_account_of_an_unverified_address_is_verified_by_the_provider(
    accounts: ProviderAccounts, database: Database
) -> None:
    ann = add_person(database, "ann@example.com", verified=None)
    accounts.link(ann, ISSUER, "1")
    accounts.sign_in(replace(ANN, email="eve@example.com"))
    assert readers_of(database, "ann@example.com") == Readers.of()
    accounts.sign_in(ANN)
    assert readers_of(database, "ann@example.com") == Readers.of("user:ann@example.com")


def test_an_address_stands_for_the_groups_of_its_account_unless_that_is_disabled(
    database: Database,
) -> None:
    add_person(database, "first@example.com", Role.ADMIN)
    bob = add_person(database, "bob@elsewhere.example")
    identities.add(database, ISSUER, "1", bob.id, NOW)
    identities.record_statement(database, ISSUER, "1", datetime.now(UTC))
    groups.replace_of_person(database, bob.id, ISSUER, {"staff"})
    own = Readers.of("user:bob@elsewhere.example", "user:nobody@example.com", "group:board")
    assert add_groups_of_accounts(database, own).tokens == own.tokens | {"group:staff"}
    assert add_groups_of_accounts(database, Readers.of("group:board")).tokens == {
        "public",
        "group:board",
    }
    PeopleService(database).disable(bob.email)
    assert add_groups_of_accounts(database, own) == own
