"""Groups that admins make: who is in one holds its token, and no provider says who is in it."""

import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.access.groups import GroupService, get_group, normalize_group_name
from backend.access.openid.accounts import ProviderAccounts
from backend.access.openid.claims import Identity
from backend.access.own_readers import find_own_readers, make_group_token
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.access.token_budgets import MOST_TOKENS
from backend.store import audit
from backend.store.accounts import group_members, identities, people
from backend.store.accounts.group_members import Group
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.llm import group_budgets
from connectors.access import parse_reader_token
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.accounts import add_person

ANN, BOB = "ann@example.com", "bob@example.com"
ISSUER = "https://idp.example.com"
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.fixture
def service(database: Database) -> GroupService:
    add_person(database, ANN, Role.ADMIN)
    add_person(database, BOB)
    return GroupService(database, Actor(f"user:{ANN}", "192.0.2.7"))


def _tokens(database: Database, email: str, now: datetime | None = None) -> set[str]:
    readers = find_own_readers(database, people.get_by_email(database, email), now)
    return {token for token in readers.tokens if token.startswith("group:")}


def _sign_in_by_provider(database: Database, *groups: str) -> None:
    """Let Bob sign in through a provider that states these groups."""
    bob = people.get_by_email(database, BOB)
    if not identities.list_of_person(database, bob.id):
        identities.add(database, ISSUER, "1", bob.id, NOW)
    stated = Identity(
        issuer=ISSUER,
        subject="1",
        email=BOB,
        email_verified=True,
        name="Bob",
        groups=frozenset(groups),
    )
    ProviderAccounts(database, frozenset({"example.com"}), None).sign_in(stated, NOW)


def test_members_hold_the_token_of_the_group(service: GroupService) -> None:
    database = service.database
    service.create("hr")
    assert _tokens(database, BOB) == set()
    service.add_member("hr", " Bob@example.com ")
    assert _tokens(database, BOB) == {"group:hr"}
    assert _tokens(database, ANN) == set()
    service.rename("hr", "Human  Resources")
    assert _tokens(database, BOB) == {"group:Human%20Resources"}
    service.remove_member("Human Resources", BOB)
    assert _tokens(database, BOB) == set()
    service.add_member("Human Resources", BOB)
    service.delete("Human Resources")
    assert _tokens(database, BOB) == set()
    assert group_members.list_groups(database) == []


def test_each_action_is_in_the_audit_with_what_it_changed(service: GroupService) -> None:
    before = audit.list_entries(service.database, limit=1)[0].id
    service.create("hr")
    service.add_member("hr", BOB)
    service.add_member("hr", BOB)
    service.rename("hr", "staff")
    service.add_member("staff", ANN)
    service.remove_member("staff", ANN)
    service.delete("staff")
    entries = [one for one in audit.list_entries(service.database) if one.id > before]
    assert [(one.action, one.subject, dict(one.detail)) for one in reversed(entries)] == [
        ("create_group", "group:hr", {}),
        ("add_to_group", "group:hr", {"member": f"user:{BOB}"}),
        ("rename_group", "group:hr", {"before": "hr", "after": "staff"}),
        ("add_to_group", "group:staff", {"member": f"user:{ANN}"}),
        ("remove_from_group", "group:staff", {"member": f"user:{ANN}"}),
        ("delete_group", "group:staff", {"before": [BOB]}),
    ]
    assert {(one.actor, one.address) for one in entries} == {(f"user:{ANN}", "192.0.2.7")}


@pytest.mark.parametrize(
    "name", ["", "  ", "a" * 101, "a" * 100_000, "a\0b", "a\u202eb", "a\u200bb", "a\x07"]
)
def test_what_cannot_be_shown_is_no_name(service: GroupService, name: str) -> None:
    service.create("hr")
    for act in (
        lambda: service.create(name),
        lambda: service.rename("hr", name),
        lambda: service.delete(name),
        lambda: service.add_member(name, BOB),
    ):
        with pytest.raises(InvalidInputError):
            act()
    assert [one.name for one in group_members.list_groups(service.database)] == ["hr"]


@given(st.text(max_size=30), st.text(max_size=30))
def test_different_names_are_different_tokens(one: str, other: str) -> None:
    try:
        names = normalize_group_name(one), normalize_group_name(other)
    except InvalidInputError:
        return
    tokens = [make_group_token(name) for name in names]
    assert [parse_reader_token(token) for token in tokens] == tokens
    assert (tokens[0] == tokens[1]) is (names[0] == names[1])
    assert normalize_group_name(names[0]) == names[0]


def test_a_name_is_of_one_group(service: GroupService) -> None:
    service.create("hr")
    service.create("HR")
    with pytest.raises(ConflictError):
        service.create(" hr ")
    with pytest.raises(ConflictError):
        service.rename("HR", "hr")


def test_what_there_is_not_cannot_be_changed(service: GroupService) -> None:
    service.create("hr")
    for act in (
        lambda: service.delete("x"),
        lambda: service.rename("x", "y"),
        lambda: service.add_member("x", BOB),
        lambda: service.add_member("hr", "nobody@example.com"),
        lambda: service.remove_member("hr", BOB),
    ):
        with pytest.raises(NotFoundError):
            act()


def test_no_provider_puts_anybody_into_a_group_of_admins(service: GroupService) -> None:
    database = service.database
    service.create("hr")
    _sign_in_by_provider(database, "hr", "staff")
    assert _tokens(database, BOB, NOW) == {"group:staff"}
    assert get_group(database, "hr").members == 0
    service.add_member("hr", BOB)
    _sign_in_by_provider(database)
    assert _tokens(database, BOB, NOW) == {"group:hr"}


def test_admins_change_no_group_of_a_provider(service: GroupService) -> None:
    database = service.database
    _sign_in_by_provider(database, "hr")
    service.create("own")
    for act in (
        lambda: service.create("hr"),
        lambda: service.rename("own", "hr"),
        lambda: service.rename("hr", "x"),
        lambda: service.add_member("hr", ANN),
        lambda: service.remove_member("hr", BOB),
        lambda: service.delete("hr"),
    ):
        with pytest.raises(ConflictError, match=ISSUER):
            act()
    assert _tokens(database, BOB, NOW) == {"group:hr"}
    _sign_in_by_provider(database)
    service.delete("hr")
    assert service.create("hr").is_own


def test_membership_of_an_own_group_outlives_what_providers_state(service: GroupService) -> None:
    """It is the admins' word, which does not age; and it is for accounts that nobody vouches for, too."""
    database = service.database
    service.create("hr")
    service.add_member("hr", BOB)
    PeopleService(database).change_email(BOB, "robert@example.com")
    later = datetime(2036, 1, 1, tzinfo=UTC)
    assert _tokens(database, "robert@example.com", later) == {"group:hr"}


def test_a_budget_is_audited_with_what_was_before(service: GroupService) -> None:
    service.create("hr")
    before = audit.list_entries(service.database, limit=1)[0].id
    for tokens in (1_000, 1_000, 2_000, 0, 0):
        service.set_token_budget("hr", tokens)
    entries = [one for one in audit.list_entries(service.database) if one.id > before]
    assert [(one.action, one.subject, dict(one.detail)) for one in reversed(entries)] == [
        ("set_token_budget", "group:hr", {"before": None, "after": 1_000}),
        ("set_token_budget", "group:hr", {"before": 1_000, "after": 2_000}),
        ("set_token_budget", "group:hr", {"before": 2_000, "after": None}),
    ]
    for tokens in (-1, MOST_TOKENS + 1):
        with pytest.raises(InvalidInputError, match="whole number"):
            service.set_token_budget("hr", tokens)
    _sign_in_by_provider(service.database, "staff")
    with pytest.raises(ConflictError, match=ISSUER):
        service.set_token_budget("staff", 1_000)
    with pytest.raises(NotFoundError):
        service.set_token_budget("none", 1_000)


def test_a_group_that_is_deleted_leaves_no_budget(service: GroupService) -> None:
    service.create("hr")
    service.set_token_budget("hr", 1_000)
    service.delete("hr")
    service.create("hr")
    group = get_group(service.database, "hr")
    assert group_budgets.read(service.database, group.id) == 0


def test_members_are_listed_a_page_at_a_time(service: GroupService) -> None:
    database = service.database
    service.create("hr")
    for email in (BOB, ANN):
        service.add_member("hr", email)
    group = get_group(database, "hr")
    assert group == Group(id=group.id, name="hr", origin="quarry", members=2)
    members = group_members.list_members(database, group.id)
    assert [one.email for one in members] == [ANN, BOB]
    assert group_members.list_members(database, group.id, limit=1) == members[:1]
    assert group_members.list_members(database, group.id, after=ANN) == members[1:]
    assert group_members.list_of_person(database, members[0].id) == [group]


def test_of_two_that_make_a_group_at_once_one_does(service: GroupService) -> None:
    outcomes: list[str] = []
    together = threading.Barrier(2)

    def create() -> None:
        together.wait()
        try:
            outcomes.append(service.create("hr").name)
        except ConflictError:
            outcomes.append("refused")

    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["hr", "refused"]


def _since(database: Database, name: str) -> datetime | None:
    return group_members.list_dates(database, people.get_by_email(database, BOB).id)[name]


def test_since_when_somebody_is_in_a_group_is_kept_while_they_stay(service: GroupService) -> None:
    database, before = service.database, datetime.now(UTC)
    service.create("hr")
    service.add_member("hr", BOB)
    _sign_in_by_provider(database, "staff")
    dates = [_since(database, name) for name in ("hr", "staff")]
    assert all(each and before <= each <= datetime.now(UTC) for each in dates)
    service.add_member("hr", BOB)
    _sign_in_by_provider(database, "staff", "board")
    assert [_since(database, name) for name in ("hr", "staff")] == dates
    service.remove_member("hr", BOB)
    service.add_member("hr", BOB)
    _sign_in_by_provider(database)
    _sign_in_by_provider(database, "staff")
    again = [_since(database, name) for name in ("hr", "staff")]
    assert all(late and early and late > early for late, early in zip(again, dates, strict=True))
