"""Accounts: made by invitation, changed by admins, each action in the audit; one active admin remains."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from backend.access.api_tokens import ApiTokenService, TokenScope, find_valid_token
from backend.access.own_readers import find_own_readers
from backend.access.people import (
    INVITATION_LIFETIME,
    AccountDetails,
    FormerAddressError,
    InvalidInvitationError,
    PeopleService,
)
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session
from backend.access.token_budgets import MOST_TOKENS
from backend.store import audit
from backend.store.accounts import invitations, people
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.llm import person_budgets
from connectors.access import Readers
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.accounts import CHEAP, PASSWORD, add_person, find_person
from tests.support.statements import noted_statements

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


@pytest.fixture
def service(database: Database) -> PeopleService:
    return PeopleService(database, Actor("user:root@example.com", "192.0.2.7"))


def test_an_invitation_makes_an_account_once(service: PeopleService) -> None:
    code = service.invite(" Ann@Example.com ", Role.ADMIN, NOW)
    assert len(code) == 43
    person = service.accept_invitation(
        code, AccountDetails(name="  Ann   Lee ", password=PASSWORD), CHEAP, NOW
    )
    assert (person.email, person.name, person.role) == ("ann@example.com", "Ann Lee", "admin")
    assert person.verified == "admin"
    assert PASSWORD not in repr(person) + str(person.password_hash)
    assert str(person.password_hash).startswith("$argon2id$")
    with pytest.raises(InvalidInvitationError):
        service.accept_invitation(code, AccountDetails(name="Ann", password=PASSWORD), CHEAP, NOW)
    assert service.list_people() == [person]


def test_only_the_hash_of_a_code_is_stored(service: PeopleService) -> None:
    code = service.invite("ann@example.com", Role.ADMIN)
    (stored,) = service.list_invitations()
    assert stored.digest == digest(code)
    assert code not in repr(stored)


def test_an_invitation_is_valid_for_a_week(service: PeopleService) -> None:
    code = service.invite("ann@example.com", Role.ADMIN, NOW)
    end = NOW + INVITATION_LIFETIME
    assert service.find_invitation(code, end - timedelta(seconds=1)).email == "ann@example.com"
    assert service.list_invitations(end) == []
    with pytest.raises(InvalidInvitationError):
        service.find_invitation(code, end)
    with pytest.raises(InvalidInvitationError):
        service.accept_invitation(code, AccountDetails(name="Ann", password=PASSWORD), CHEAP, end)


def test_another_invitation_replaces_the_first(service: PeopleService) -> None:
    first = service.invite("ann@example.com", Role.ADMIN)
    second = service.invite("ANN@example.com", Role.ADMIN)
    with pytest.raises(InvalidInvitationError):
        service.find_invitation(first)
    assert service.find_invitation(second).email == "ann@example.com"


def test_invalid_codes_are_all_told_the_same(service: PeopleService) -> None:
    used = service.invite("ann@example.com", Role.ADMIN)
    service.accept_invitation(used, AccountDetails(name="Ann", password=PASSWORD), CHEAP)
    ended = service.invite("bob@example.com", Role.MEMBER, datetime.now(UTC) - timedelta(days=8))
    told = set()
    for code in ("", "no code", used, ended):
        with pytest.raises(InvalidInvitationError) as caught:
            service.find_invitation(code)
        told.add(str(caught.value))
    assert len(told) == 1


def test_every_invalid_code_asks_the_database_the_same(database: Database) -> None:
    """So that no time tells a code that was valid from one that never was."""
    service = PeopleService(database)
    first = service.set_up()
    add_person(database, "root@example.com", Role.ADMIN)
    used = service.invite("ann@example.com", Role.MEMBER)
    service.accept_invitation(used, AccountDetails(name="Ann", password=PASSWORD), CHEAP)
    ended = service.invite("bob@example.com", Role.MEMBER, datetime.now(UTC) - timedelta(days=8))
    read: list[object] = []
    asked = set()
    for code in ("no code", first, used, ended):
        with (
            noted_statements(database.engine) as statements,
            pytest.raises(InvalidInvitationError),
        ):
            service.find_invitation(code)
        asked.add(tuple(statements))
        read.append(invitations.find(database, digest(code), datetime.now(UTC)))
    assert len(asked) == 1
    assert read == [None] * 4


def test_of_two_that_accept_at_once_one_does(database: Database) -> None:
    service = PeopleService(database)
    code = service.invite("ann@example.com", Role.ADMIN)
    outcomes: list[str] = []
    together = threading.Barrier(2)

    def accept(name: str) -> None:
        together.wait()
        try:
            outcomes.append(
                service.accept_invitation(
                    code, AccountDetails(name=name, password=PASSWORD), CHEAP
                ).name
            )
        except (InvalidInvitationError, ConflictError) as error:
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=accept, args=(name,)) for name in ("Ann", "Anna")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (person,) = service.list_people()
    assert sorted(outcomes) == sorted([person.name, "InvalidInvitationError"])


@pytest.mark.parametrize(
    "email",
    ["", "ann", "ann@", "@b", "a b@c.de", "a@b@c", f"{'a' * 250}@b.de", "a\0@b.de", "a\u202e@b.de"],
)
def test_what_is_no_address_is_not_invited(service: PeopleService, email: str) -> None:
    with pytest.raises(InvalidInputError):
        service.invite(email, Role.ADMIN)


def test_who_has_an_account_is_not_invited(service: PeopleService) -> None:
    add_person(service.database, "ann@example.com", Role.ADMIN)
    with pytest.raises(ConflictError):
        service.invite("Ann@example.com", Role.MEMBER)


def test_the_first_account_is_an_admins(service: PeopleService) -> None:
    for role in (Role.MEMBER, Role.SOURCE_MANAGER):
        with pytest.raises(ConflictError):
            service.invite("bob@example.com", role)
    # An invitation from a database whose accounts were deleted by hand.
    invitations.put(
        service.database,
        invitations.Invitation(
            digest=digest("code"),
            email="bob@example.com",
            role="member",
            created_at=NOW,
            expires_at=datetime.now(UTC) + timedelta(days=1),
            invited_by="owner",
        ),
    )
    with pytest.raises(ConflictError):
        service.accept_invitation("code", AccountDetails(name="Bob", password=PASSWORD), CHEAP)
    assert service.list_people() == []
    assert service.find_invitation("code").email == "bob@example.com"


def test_where_the_first_admin_was_invited_nobody_is_told_to_invite_one(
    service: PeopleService,
) -> None:
    service.set_up(NOW)
    with pytest.raises(ConflictError, match="Invite an admin first"):
        service.invite("bob@example.com", Role.MEMBER, NOW)
    service.invite("ann@example.com", Role.ADMIN, NOW)
    with pytest.raises(ConflictError, match="An admin was invited; once they have accepted"):
        service.invite("bob@example.com", Role.MEMBER, NOW)
    with pytest.raises(ConflictError, match="Invite an admin first"):
        service.invite("bob@example.com", Role.MEMBER, NOW + INVITATION_LIFETIME)


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("", PASSWORD),
        (" ", PASSWORD),
        ("a" * 101, PASSWORD),
        ("Ann", "short"),
        ("Ann", "a" * 20),
        ("Ann", "a" * 300),
        ("Ann", "ann@example.com"),
        ("Ann", "my ann@EXAMPLE.com 1"),
        ("Ann", "@example.com"),
    ],
)
def test_a_refused_name_or_password_does_not_use_up_the_invitation(
    service: PeopleService, name: str, password: str
) -> None:
    code = service.invite("ann@example.com", Role.ADMIN)
    with pytest.raises(InvalidInputError):
        service.accept_invitation(code, AccountDetails(name=name, password=password), CHEAP)
    assert (
        service.accept_invitation(code, AccountDetails(name="Ann", password=PASSWORD), CHEAP).name
        == "Ann"
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda service: service.disable("ann@example.com"),
        lambda service: service.set_role("ann@example.com", Role.MEMBER),
        lambda service: service.set_role("ann@example.com", Role.SOURCE_MANAGER),
    ],
)
def test_the_last_active_admin_stays(
    service: PeopleService, change: Callable[[PeopleService], None]
) -> None:
    before = add_person(service.database, "ann@example.com", Role.ADMIN)
    add_person(service.database, "bob@example.com")
    add_person(service.database, "cleo@example.com", Role.ADMIN)
    service.disable("cleo@example.com")
    entries = len(audit.list_entries(service.database))
    with pytest.raises(ConflictError):
        change(service)
    assert people.get_by_email(service.database, "ann@example.com") == before
    assert len(audit.list_entries(service.database)) == entries
    service.set_role("bob@example.com", Role.ADMIN)
    change(service)


def test_of_two_admins_who_disable_each_other_one_stays(database: Database) -> None:
    emails = ["ann@example.com", "bob@example.com"]
    for email in emails:
        add_person(database, email, Role.ADMIN)
    together = threading.Barrier(2)
    refused: list[str] = []

    def disable(email: str) -> None:
        together.wait()
        try:
            PeopleService(database).disable(email)
        except ConflictError:
            refused.append(email)

    threads = [threading.Thread(target=disable, args=(email,)) for email in emails]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    active = [one.email for one in people.list_people(database) if one.disabled_at is None]
    assert active == refused
    assert len(active) == 1


def test_a_disabled_account_loses_its_sessions_and_tokens(service: PeopleService) -> None:
    database = service.database
    add_person(database, "ann@example.com", Role.ADMIN)
    bob = add_person(database, "bob@example.com")
    session = begin_session(database, bob, Visitor())
    token = ApiTokenService(database, owner=bob).create(
        "mine", [TokenScope.SEARCH], timedelta(days=7)
    )
    assert find_person(database, session) == bob
    assert find_valid_token(database, token)
    service.disable("bob@example.com")
    service.enable("bob@example.com")
    assert find_person(database, session) is None
    assert find_valid_token(database, token) is None
    assert ApiTokenService(database).list_tokens() == []


def test_what_a_disabled_person_holds_all_the_same_is_dead(database: Database) -> None:
    """Such as a session that began in the moment of the disabling."""
    add_person(database, "ann@example.com", Role.ADMIN)
    bob = add_person(database, "bob@example.com")
    session = begin_session(database, bob, Visitor())
    token = ApiTokenService(database, owner=bob).create(
        "mine", [TokenScope.SEARCH], timedelta(days=7)
    )
    people.set_disabled(database, bob.id, NOW)
    assert find_person(database, session) is None
    assert find_valid_token(database, token) is None


def test_each_action_is_in_the_audit(service: PeopleService) -> None:
    code = service.invite("ann@example.com", Role.ADMIN)
    service.accept_invitation(code, AccountDetails(name="Ann", password=PASSWORD), CHEAP)
    add_person(service.database, "bob@example.com")
    before = audit.list_entries(service.database)[0].id
    service.set_role("bob@example.com", Role.SOURCE_MANAGER)
    service.disable("bob@example.com")
    service.enable("bob@example.com")
    people.set_verified(
        service.database, people.get_by_email(service.database, "bob@example.com").id, "provider"
    )
    service.verify("bob@example.com")
    entries = [one for one in audit.list_entries(service.database) if one.id > before]
    assert [(one.action, dict(one.detail)) for one in reversed(entries)] == [
        ("set_role", {"before": "member", "after": "source_manager"}),
        ("disable", {"before": "active", "after": "disabled"}),
        ("enable", {"before": "disabled", "after": "active"}),
        ("verify", {"before": "provider", "after": "admin"}),
    ]
    assert {(one.actor, one.address, one.subject) for one in entries} == {
        ("user:root@example.com", "192.0.2.7", "user:bob@example.com")
    }
    (accepted,) = audit.list_entries(
        service.database, audit.AuditFilter(actor="user:ann@example.com")
    )
    assert (accepted.action, accepted.address) == ("accept_invitation", "192.0.2.7")
    assert accepted.detail == {"role": "admin", "invited_by": "user:root@example.com"}


def test_who_has_no_account_cannot_be_changed(service: PeopleService) -> None:
    for change in (service.disable, service.enable, service.verify):
        with pytest.raises(NotFoundError):
            change("nobody@example.com")


def test_a_budget_of_a_person_is_audited_with_what_was_before(service: PeopleService) -> None:
    person = add_person(service.database, "ann@example.com", Role.ADMIN)
    before = audit.list_entries(service.database, limit=1)[0].id
    for tokens in (1_000, 1_000, 2_000, 0, 0):
        assert service.set_token_budget(" Ann@example.com", tokens) == person
        assert person_budgets.read(service.database, person.id) == tokens
    entries = [one for one in audit.list_entries(service.database) if one.id > before]
    assert [(one.action, one.subject, dict(one.detail)) for one in reversed(entries)] == [
        ("set_token_budget", "user:ann@example.com", {"before": None, "after": 1_000}),
        ("set_token_budget", "user:ann@example.com", {"before": 1_000, "after": 2_000}),
        ("set_token_budget", "user:ann@example.com", {"before": 2_000, "after": None}),
    ]
    assert {one.actor for one in entries} == {"user:root@example.com"}
    for tokens in (-1, MOST_TOKENS + 1):
        with pytest.raises(InvalidInputError, match="whole number"):
            service.set_token_budget("ann@example.com", tokens)
    with pytest.raises(NotFoundError):
        service.set_token_budget("nobody@example.com", 5)


def test_an_invitation_is_withdrawn(service: PeopleService) -> None:
    code = service.invite("ann@example.com", Role.ADMIN)
    service.withdraw_invitation("Ann@example.com")
    with pytest.raises(InvalidInvitationError):
        service.find_invitation(code)
    with pytest.raises(NotFoundError):
        service.withdraw_invitation("ann@example.com")
    entry = audit.list_entries(service.database)[0]
    assert (entry.action, entry.detail) == ("withdraw_invitation", {"before": Role.ADMIN})


def test_all_sessions_of_a_person_end(service: PeopleService) -> None:
    database = service.database
    ann = add_person(database, "ann@example.com", Role.ADMIN)
    bob = add_person(database, "bob@example.com")
    ended = [begin_session(database, bob, Visitor()) for _ in range(2)]
    kept = begin_session(database, ann, Visitor())
    service.end_sessions("bob@example.com")
    assert [find_person(database, each) for each in (*ended, kept)] == [None, None, ann]
    entry = audit.list_entries(database)[0]
    assert (entry.action, entry.detail) == ("end_sessions", {"ended_sessions": 2})


def test_another_address_is_nobodys_until_somebody_vouches(service: PeopleService) -> None:
    database = service.database
    ann = add_person(database, "ann@example.com", Role.ADMIN)
    code = service.invite("anna@example.com", Role.MEMBER)
    changed = service.change_email("ann@example.com", " Anna@Example.com ")
    assert (changed.id, changed.email, changed.verified) == (ann.id, "anna@example.com", None)
    assert find_own_readers(database, changed) == Readers.of()
    with pytest.raises(InvalidInvitationError):
        service.find_invitation(code)
    entry = audit.list_entries(database)[0]
    assert (entry.subject, entry.detail) == (
        "user:ann@example.com",
        {"before": "ann@example.com", "after": "anna@example.com"},
    )
    service.verify("anna@example.com")
    verified = people.get_by_email(database, "anna@example.com")
    assert find_own_readers(database, verified) == Readers.of("user:anna@example.com")


@pytest.mark.parametrize("new", ["bob@example.com", "BOB@example.com", "ann@example.com"])
def test_the_address_of_an_account_is_not_given_to_another(
    service: PeopleService, new: str
) -> None:
    before = [add_person(service.database, "ann@example.com", Role.ADMIN)]
    before.append(add_person(service.database, "bob@example.com"))
    with pytest.raises(ConflictError):
        service.change_email("ann@example.com", new)
    assert service.list_people() == before


def test_giving_somebodys_former_address_to_another_asks(service: PeopleService) -> None:
    database = service.database
    add_person(database, "ann@example.com", Role.ADMIN)
    add_person(database, "bob@example.com")
    service.change_email("ann@example.com", "lee@example.com")
    for give in (
        lambda: service.change_email("bob@example.com", "ann@example.com"),
        lambda: service.invite("Ann@example.com", Role.MEMBER),
    ):
        with pytest.raises(FormerAddressError, match="somebody else") as refused:
            give()
        assert refused.value.email == "ann@example.com"
    # Whose it was may have it back.
    service.change_email("lee@example.com", "ann@example.com")
    service.change_email("ann@example.com", "lee@example.com")
    service.release_email("ann@example.com")
    assert service.change_email("bob@example.com", "ann@example.com").email == "ann@example.com"
    with pytest.raises(NotFoundError):
        service.release_email("ann@example.com")
    assert "release_email" in [one.action for one in audit.list_entries(database)]
