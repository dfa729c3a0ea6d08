"""Why somebody does not find a document: the first reason, the conditions, and the way to what they hold."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from backend.access.explanation import Explanation, Reason, explain, parse_readers
from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.readers import resolve_readers
from backend.access.roles import Role
from backend.access.source_accounts import SourceAccountService
from backend.store import audit
from backend.store.accounts import groups, identities
from backend.store.audit import OWNER, Actor
from backend.store.schema import tables
from backend.store.sync import sources
from connectors.access import EVERYBODY, NOBODY, Access, Readers
from indexing.ingestion.ledger import Failed
from tests.support.accounts import add_person
from tests.support.groups import save_groups, token_of
from tests.support.rights import may_read
from tests.support.store import Store, document, store_at, store_with

ANN, BOB = "user:ann@example.com", "user:bob@example.com"
DOCUMENT = "desk:a"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web") as store:
        yield store


def explained(store: Store, *own: str, name: str = DOCUMENT) -> Explanation:
    return explain(store.database, name, Readers.of(*own), OWNER)


def token(store: Store, name: str) -> str:
    return token_of(sources.find(store.database, "desk").id, name)


def test_the_way_to_a_token_leads_through_the_groups(store: Store) -> None:
    save_groups(store.database, "desk", {"team": [ANN], "company": ["team"]})
    team, company = token(store, "team"), token(store, "company")
    store.hold(document(access=Access.to([company, BOB])))
    found = explained(store, ANN)
    assert found.reason is Reason.READABLE
    (clause,) = found.clauses
    assert set(clause.needed) == {company, BOB}
    (held,) = clause.held
    assert held.path == (ANN, team, company)
    assert not held.is_pending
    assert found.groups_listed_at is not None


def test_a_way_counts_since_its_last_membership_was_listed(store: Store) -> None:
    before = datetime.now(UTC)
    save_groups(store.database, "desk", {"team": [ANN], "company": ["team"]})
    store.hold(document(access=Access.to([token(store, "company"), ANN])))
    direct, through = sorted(explained(store, ANN).clauses[0].held, key=lambda held: len(held.path))
    assert direct.since is None
    assert through.since is not None
    assert before <= through.since <= datetime.now(UTC)
    _date_memberships(store, token(store, "team"), None)
    _date_memberships(store, token(store, "company"), early := datetime(2026, 3, 1, tzinfo=UTC))
    assert _since(store) == early
    _date_memberships(store, token(store, "team"), later := datetime(2026, 4, 1, tzinfo=UTC))
    assert _since(store) == later
    save_groups(store.database, "desk", {"team": [ANN, BOB], "company": ["team"]})
    assert _since(store) == later, "what was a member before stays one since then"


def _date_memberships(store: Store, of: str, since: datetime | None) -> None:
    with store.database.writing() as connection:
        which = tables.memberships.c.token == of
        connection.execute(update(tables.memberships).where(which).values(since=since))


def _since(store: Store) -> datetime | None:
    company = token(store, "company")
    held = explained(store, ANN).clauses[0].held
    return next(each.since for each in held if each.path[-1] == company)


def test_each_condition_is_explained_by_itself(store: Store) -> None:
    save_groups(store.database, "desk", {"space": [ANN, BOB]})
    space = token(store, "space")
    store.hold(document(access=Access.all_of([[space], ["group:board", BOB]])))
    found = explained(store, ANN)
    assert found.reason is Reason.LACKS_TOKEN
    assert {clause.needed: clause.is_met for clause in found.clauses} == {
        (space,): True,
        ("group:board", BOB): False,
    }
    assert explained(store, BOB).reason is Reason.READABLE
    assert explained(store, ANN, "group:board").reason is Reason.READABLE


def test_a_mapped_account_is_named_as_the_way(store: Store) -> None:
    add_person(store.database, "ann@example.com", Role.ADMIN)
    save_groups(store.database, "desk", {"team": ["account/octocat"], "account/octocat": []})
    store.hold(document(access=Access.to([token(store, "team")])))
    assert explained(store, ANN).reason is Reason.LACKS_TOKEN
    mapped = SourceAccountService(store.database).map("ann@example.com", "desk", "octocat")
    found = explained(store, ANN)
    assert found.reason is Reason.READABLE
    (held,) = found.clauses[0].held
    account = token(store, "account/octocat")
    assert held.path == (ANN, account, token(store, "team"))
    assert found.source_accounts == {account: "desk"}
    assert account in found.readers
    SourceAccountService(store.database).withdraw(mapped.id)
    assert explained(store, ANN).reason is Reason.LACKS_TOKEN


def test_a_membership_that_does_not_count_yet_is_pending(store: Store) -> None:
    save_groups(store.database, "desk", {"team": [ANN]})
    store.hold(document(access=Access.to([token(store, "team")])))
    with store.database.writing() as connection:
        connection.execute(update(tables.memberships).values(pending=1))
    found = explained(store, ANN)
    assert found.reason is Reason.PENDING
    (held,) = found.clauses[0].held
    assert (held.path, held.is_pending) == ((ANN, token(store, "team")), True)
    assert not may_read(
        resolve_readers(store.database, Readers.of(ANN)), Access.to([token(store, "team")])
    )


def test_what_is_not_indexed_is_told_apart(store: Store) -> None:
    assert explained(store, ANN).reason is Reason.UNKNOWN
    failed = Failed(
        source="desk", document_id=DOCUMENT, item="a", link=None, reason="It is encrypted."
    )
    store.ledger.save([failed])
    found = explained(store, ANN)
    assert found.reason is Reason.FAILED
    assert found.failure is not None
    assert found.failure.reason == "It is encrypted."
    store.hold(document(access=NOBODY))
    assert explained(store, ANN).reason is Reason.NO_READERS
    store.hold(document(access=EVERYBODY))
    assert explained(store).reason is Reason.READABLE


def test_a_document_is_named_by_its_link_too(store: Store) -> None:
    held = document(access=Access.to([BOB]))
    store.hold(held)
    found = explained(store, ANN, name=held.link)
    assert (found.document_id, found.reason) == (DOCUMENT, Reason.LACKS_TOKEN)


def test_every_explanation_is_in_the_audit(store: Store) -> None:
    store.hold(document(access=Access.to([BOB])))
    explain(store.database, DOCUMENT, Readers.of(ANN), Actor("token:reports", "192.0.2.7"))
    (entry,) = audit.list_entries(store.database, audit.AuditFilter(subject="desk"))
    assert (entry.actor, entry.address, entry.action) == ("token:reports", "192.0.2.7", "explain")
    assert entry.detail == {"document": DOCUMENT, "readers": ["public", ANN]}


def test_groups_of_the_account_count_as_held(store: Store) -> None:
    ann = add_person(store.database, "ann@example.com", Role.ADMIN)
    issuer, now = "https://idp.example.com", datetime.now(UTC)
    identities.add(store.database, issuer, "1", ann.id, now)
    identities.record_statement(store.database, issuer, "1", now)
    groups.replace_of_person(store.database, ann.id, issuer, {"staff"})
    store.hold(document(access=Access.to(["group:staff"])))
    found = explained(store, ANN)
    assert found.reason is Reason.READABLE
    assert found.readers == ("group:staff", "public", ANN)
    (held,) = found.clauses[0].held
    assert held.path == (ANN, "group:staff")
    assert held.since is not None
    assert now <= held.since <= datetime.now(UTC)
    (given,) = explained(store, "group:staff").clauses[0].held
    assert (given.path, given.since) == (("group:staff",), None)


def test_a_way_through_a_group_of_quarry_and_one_of_the_source_counts_since_the_later(
    store: Store,
) -> None:
    add_person(store.database, "ann@example.com", Role.ADMIN)
    service = GroupService(store.database)
    service.create("hr")
    service.add_member("hr", "ann@example.com")
    save_groups(store.database, "desk", {"company": ["group:hr"]})
    company = token(store, "company")
    store.hold(document(access=Access.to([company])))
    (held,) = explained(store, ANN).clauses[0].held
    assert held.path == (ANN, "group:hr", company)
    early, later = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    _date_memberships(store, company, early)
    for since, expected in ((later, later), (datetime(2026, 1, 1, tzinfo=UTC), early)):
        with store.database.writing() as connection:
            connection.execute(update(tables.group_members).values(since=since))
        assert explained(store, ANN).clauses[0].held[0].since == expected


def test_an_unverified_address_is_said_though_its_groups_count(store: Store) -> None:
    add_person(store.database, "ann@example.com", Role.ADMIN)
    people = PeopleService(store.database)
    people.change_email("ann@example.com", "lee@example.com")
    service = GroupService(store.database)
    service.create("hr")
    service.add_member("hr", "lee@example.com")
    store.hold(document(access=Access.to(["group:hr"])))
    found = explained(store, "user:lee@example.com")
    assert found.reason is Reason.READABLE
    (sentence,) = found.accounts
    assert "nobody has verified" in sentence
    assert "public" not in sentence, "it finds what its groups may read, too"


def test_an_address_alone_means_the_person() -> None:
    assert parse_readers("Ann@example.com, group:hr") == Readers.of(ANN, "group:hr")
    with pytest.raises(ValueError, match="not a reader"):
        parse_readers("nonsense")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return store_with(tmp_path_factory.mktemp("shelf"), "desk")


NAMES = st.sampled_from([*"abc", ANN, BOB, "group:x", "public"])


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abc"), st.lists(NAMES, max_size=3)),
    st.lists(st.lists(NAMES, max_size=2), max_size=3),
    st.sets(st.sampled_from([ANN, BOB, "group:x"])),
)
def test_the_explanation_agrees_with_the_gate(
    shelf: Store, groups: dict[str, list[str]], clauses: list[list[str]], own: set[str]
) -> None:
    save_groups(shelf.database, "desk", groups)
    access = Access.all_of([token(shelf, one) for one in clause] for clause in clauses)
    shelf.hold(document(access=access))
    readers = resolve_readers(shelf.database, Readers.of(*own))
    found = explained(shelf, *own)
    assert (found.reason is Reason.READABLE) is may_read(readers, access)
    for clause in found.clauses:
        for held in clause.held:
            assert held.path[0] in Readers.of(*own).tokens
            assert held.path[-1] in readers.tokens
