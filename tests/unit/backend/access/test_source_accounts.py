"""Accounts of sources: who maps them, who may only ask, and what a person reads by them."""

from collections.abc import Callable, Iterator
from unicodedata import normalize

import pytest
from sqlalchemy import insert

from backend.access.own_readers import add_groups_of_accounts, find_own_readers
from backend.access.people import PeopleService
from backend.access.readers import resolve_readers
from backend.access.roles import Role
from backend.access.source_accounts import (
    LONGEST_ACCOUNT,
    MOST_ASKED,
    MOST_CANDIDATES,
    OwnSourceAccounts,
    SourceAccountService,
)
from backend.store import audit
from backend.store.accounts import people
from backend.store.accounts.admitted_readers import find_admitted
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.files import file_source
from backend.store.schema.tables import memberships
from backend.store.sync import sources
from backend.store.sync.sources import SourcesOf
from connectors.access import Access, Readers
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.accounts import add_person
from tests.support.groups import save_conjunctions, save_groups, token_of
from tests.support.races import race
from tests.support.statements import noted_statements
from tests.support.store import Store, store_at

ADMIN, ANN, BOB = "admin@example.com", "ann@example.com", "bob@example.com"
GROUPS = {
    "repository/1": ["account/octocat", "account/hubot"],
    "team": ["repository/1"],
    "account/octocat": [],
    "account/hubot": [],
    "account/carol": ["user:carol@example.com"],
}
NAMES = {"account/octocat": "octocat", "account/hubot": "Hub Robot", "account/carol": "carol"}


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "hub", "wiki") as store:
        add_person(store.database, ADMIN, Role.ADMIN)
        for email in (ANN, BOB):
            add_person(store.database, email)
        save_groups(store.database, "hub", GROUPS, NAMES)
        yield store


@pytest.fixture
def admin(store: Store) -> SourceAccountService:
    return SourceAccountService(store.database, Actor(f"user:{ADMIN}"))


def person(store: Store, email: str = ANN) -> Person:
    return people.get_by_email(store.database, email)


def own(store: Store, email: str = ANN) -> OwnSourceAccounts:
    return OwnSourceAccounts(store.database, person(store, email), Actor(f"user:{email}"))


def token(store: Store, name: str, source: str = "hub") -> str:
    return token_of(sources.find(store.database, source).id, name)


def held(store: Store, email: str = ANN) -> frozenset[str]:
    """What a request of a person holds, and the same by `--as`."""
    database = store.database
    found = resolve_readers(database, find_own_readers(database, person(store, email))).tokens
    named = add_groups_of_accounts(database, Readers.of(f"user:{email}"))
    assert resolve_readers(database, named).tokens == found
    return found


def test_by_a_mapped_account_a_person_holds_all_that_it_is_a_member_of(
    store: Store, admin: SourceAccountService
) -> None:
    both = Access.all_of([[token(store, "team")], [f"user:{ANN}"]])
    save_conjunctions(store.database, both)
    before = held(store)
    assert before == {"public", f"user:{ANN}"}
    mapped = admin.map(ANN, "hub", "octocat")
    groups = {token(store, each) for each in ("account/octocat", "repository/1", "team")}
    assert held(store) == before | groups | both.readers
    assert held(store, BOB) == {"public", f"user:{BOB}"}
    admin.withdraw(mapped.id)
    assert held(store) == before


def test_what_the_account_joins_and_leaves_later_counts_too(
    store: Store, admin: SourceAccountService
) -> None:
    admin.map(ANN, "hub", "octocat")
    save_groups(store.database, "hub", {**GROUPS, "repository/1": ["account/hubot"]}, NAMES)
    assert held(store) == {"public", f"user:{ANN}", token(store, "account/octocat")}


def test_who_asks_holds_nothing_until_it_is_approved(
    store: Store, admin: SourceAccountService
) -> None:
    asked = own(store).ask("hub", "octocat")
    assert held(store) == {"public", f"user:{ANN}"}
    assert [one.id for one in admin.list_accounts("asked")] == [asked.id]
    approved = admin.approve(asked.id)
    assert (approved.id, approved.state) == (asked.id, "mapped")
    assert own(store).list_accounts() == admin.list_accounts("mapped") == [approved]
    assert approved.mapped_by == f"user:{ADMIN}"
    assert token(store, "team") in held(store)
    assert admin.approve(asked.id) == approved
    own(store).withdraw(asked.id)
    assert held(store) == {"public", f"user:{ANN}"}


def test_each_action_is_in_the_audit_with_before_and_after(
    store: Store, admin: SourceAccountService
) -> None:
    admin.approve(own(store).ask("hub", "Octocat").id)
    admin.withdraw(admin.list_accounts()[0].id)
    admin.withdraw(own(store).ask("hub", "hubot").id)
    entries = audit.list_entries(store.database, limit=5)
    assert [
        (one.actor, one.action, one.detail["before"], one.detail["after"]) for one in entries
    ] == [
        (f"user:{ADMIN}", "decline_source_account", "hubot of hub", None),
        (f"user:{ANN}", "ask_source_account", None, "hubot of hub"),
        (f"user:{ADMIN}", "withdraw_source_account", "octocat of hub", None),
        (f"user:{ADMIN}", "map_source_account", None, "octocat of hub"),
        (f"user:{ANN}", "ask_source_account", None, "Octocat of hub"),
    ]
    assert {one.subject for one in entries} == {f"user:{ANN}"}


def test_an_account_has_one_person(store: Store, admin: SourceAccountService) -> None:
    mapped = admin.map(ANN, "hub", "octocat")
    assert admin.map(ANN, "hub", "octocat") == mapped
    with pytest.raises(ConflictError, match=f"octocat of hub is mapped to {ANN}"):
        admin.map(BOB, "hub", "octocat")
    asked = own(store, BOB).ask("hub", "octocat")
    with pytest.raises(ConflictError, match=ANN):
        admin.approve(asked.id)
    assert held(store, BOB) == {"public", f"user:{BOB}"}
    admin.withdraw(mapped.id)
    admin.approve(asked.id)
    assert token(store, "team") in held(store, BOB)


def test_an_account_whose_address_is_somebodys_is_given_to_nobody_else(
    store: Store, admin: SourceAccountService
) -> None:
    assert admin.map(BOB, "hub", "carol").email == BOB, "nobody here has the address"
    admin.withdraw(admin.list_accounts()[0].id)
    add_person(store.database, "carol@example.com")
    with pytest.raises(ConflictError, match=r"By its address.*carol@example\.com"):
        admin.map(BOB, "hub", "carol")
    assert admin.map("carol@example.com", "hub", "carol").email == "carol@example.com"
    admin.withdraw(admin.list_accounts()[0].id)
    PeopleService(store.database).disable("carol@example.com")
    assert admin.map(BOB, "hub", "carol").email == BOB


def test_a_mapping_gives_no_right_while_the_source_shows_the_address_of_somebody_else(
    store: Store, admin: SourceAccountService
) -> None:
    admin.map(ANN, "hub", "octocat")
    octocat = token(store, "account/octocat")
    assert octocat in held(store)
    shown = find_admitted(store.database, Access.to([octocat]))
    assert [one.token for one in shown.readers] == [f"user:{ANN}"]
    save_groups(store.database, "hub", {**GROUPS, "account/octocat": [f"user:{BOB}"]}, NAMES)
    assert octocat not in held(store)
    assert octocat in held(store, BOB)
    shown = find_admitted(store.database, Access.to([octocat]))
    assert [one.token for one in shown.readers] == [f"user:{BOB}"]
    save_groups(store.database, "hub", GROUPS, NAMES)
    assert octocat in held(store)


def test_two_who_map_one_account_at_once_leave_it_with_one(
    store: Store, admin: SourceAccountService
) -> None:
    def map_to_ann(database: Database) -> None:
        SourceAccountService(database).map(ANN, "hub", "octocat")

    outcome = race(store.database, map_to_ann, lambda: admin.map(BOB, "hub", "octocat"))
    assert isinstance(outcome, ConflictError)
    assert [one.email for one in admin.list_accounts()] == [ANN]


def test_of_two_requests_at_once_the_limit_admits_one(store: Store) -> None:
    def ask_last(database: Database) -> None:
        OwnSourceAccounts(database, person(store), Actor("ann")).ask("hub", "last")

    for number in range(MOST_ASKED - 1):
        own(store).ask("hub", f"a{number}")
    outcome = race(store.database, ask_last, lambda: own(store).ask("hub", "one more"))
    assert isinstance(outcome, ConflictError)
    assert len(own(store).list_accounts()) == MOST_ASKED


def test_a_disabled_person_gets_no_account_and_reads_nothing_by_theirs(
    store: Store, admin: SourceAccountService
) -> None:
    asked = own(store).ask("hub", "hubot")
    admin.map(ANN, "hub", "octocat")
    PeopleService(store.database).disable(ANN)
    named = Readers.of(f"user:{ANN}")
    assert add_groups_of_accounts(store.database, named) == named
    _raises(lambda: admin.approve(asked.id), ConflictError)
    _raises(lambda: admin.map(ANN, "hub", "carol"), ConflictError)
    PeopleService(store.database).enable(ANN)
    assert token(store, "team") in held(store)


def test_a_source_of_the_same_name_later_inherits_nothing(
    store: Store, admin: SourceAccountService
) -> None:
    admin.map(ANN, "hub", "octocat")
    own(store).ask("hub", "hubot")
    former = token(store, "team")
    sources.remove(store.database, "hub")
    sources.add(store.database, "hub", "folder", {"path": "/srv/hub"})
    save_groups(store.database, "hub", GROUPS, NAMES)
    assert token(store, "team") != former
    assert held(store) == {"public", f"user:{ANN}"}
    assert own(store).list_accounts() == []


def test_what_is_asked_of_a_source_that_did_not_exist_is_never_given_by_a_later_one(
    store: Store, admin: SourceAccountService
) -> None:
    asked = own(store).ask("later", "octocat")
    sources.add(store.database, "later", "folder", {"path": "/srv/later"})
    save_groups(store.database, "later", {"account/octocat": []})
    with pytest.raises(ConflictError, match="no source later when"):
        admin.approve(asked.id)
    admin.withdraw(asked.id)
    assert own(store).ask("later", "octocat").source_id is not None


def test_to_ask_tells_nothing_of_sources_accounts_and_others(
    store: Store, admin: SourceAccountService
) -> None:
    """The same for what exists, what does not, and what is somebody else's."""
    admin.map(BOB, "hub", "octocat")
    wanted = [("hub", "octocat"), ("hub", "hubot"), ("hub", "nobody"), ("none", "octocat")]
    asked = [own(store).ask(source, account) for source, account in wanted]
    assert [(one.source, one.account, one.state, one.name) for one in asked] == [
        (source, account, "asked", None) for source, account in wanted
    ]
    assert {one.id for one in own(store).list_accounts()} == {one.id for one in asked}
    assert own(store).ask("hub", "octocat").id == asked[0].id


def test_a_person_reaches_no_account_but_their_own(
    store: Store, admin: SourceAccountService
) -> None:
    of_bob = admin.map(BOB, "hub", "octocat")
    for wrong in (of_bob.id, "absent", "\0"):
        with pytest.raises(NotFoundError, match="There is no such source account"):
            own(store).withdraw(wrong)
    assert admin.list_accounts() == [of_bob]


def test_a_source_manager_approves_for_the_own_sources_alone(store: Store) -> None:
    manager = add_person(store.database, "manager@example.com", Role.SOURCE_MANAGER)
    sources.set_owner(store.database, "hub", manager.id)
    save_groups(store.database, "wiki", {"account/octocat": []})
    here, there, nowhere = (own(store).ask(name, "octocat") for name in ("hub", "wiki", "none"))
    service = SourceAccountService(store.database, Actor("manager"), SourcesOf(manager.id))
    assert [one.id for one in service.list_accounts()] == [here.id]
    for act in (service.approve, service.withdraw):
        for of_others in (there.id, nowhere.id, "absent"):
            with pytest.raises(NotFoundError, match="There is no such source account"):
                act(of_others)
    with pytest.raises(NotFoundError):
        service.list_candidates("wiki")
    SourceAccountService(store.database).map(BOB, "hub", "octocat")
    with pytest.raises(ConflictError, match="mapped to somebody else") as told:
        service.approve(here.id)
    assert BOB not in str(told.value)


def test_a_source_manager_approves_no_request_of_their_own(
    store: Store, admin: SourceAccountService
) -> None:
    """The source may be read with an admin's credential: the manager would read whatever the account of anybody reads."""
    manager = add_person(store.database, "manager@example.com", Role.SOURCE_MANAGER)
    sources.set_owner(store.database, "hub", manager.id)
    asked = own(store, manager.email).ask("hub", "octocat")
    service = SourceAccountService(store.database, Actor("manager"), SourcesOf(manager.id))
    with pytest.raises(ConflictError, match="An admin has to approve"):
        service.approve(asked.id)
    with pytest.raises(ConflictError, match="An admin has to approve"):
        service.map(manager.email, "hub", "octocat")
    assert token(store, "account/octocat") not in held(store, manager.email)
    admin.approve(asked.id)
    assert token(store, "account/octocat") in held(store, manager.email)


def test_who_approves_sees_whose_account_it_is_at_the_source_and_who_asks_does_not(
    store: Store, admin: SourceAccountService
) -> None:
    own(store).ask("hub", "hubot")
    own(store).ask("hub", "nobody")
    names = {one.account: one.name for one in admin.list_accounts()}
    assert names == {"hubot": "Hub Robot", "nobody": None}
    assert [one.name for one in own(store).list_accounts()] == [None, None]


def test_what_no_text_of_the_database_holds_finds_nothing(
    store: Store, admin: SourceAccountService
) -> None:
    own(store).ask("hub", "hubot")
    assert admin.list_accounts(after="\0") == []
    assert admin.list_candidates("hub", "h\0") == []


def _raises(act: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        act()


def test_ids_are_composed_and_only_those_that_the_source_lists_are_mapped(
    store: Store, admin: SourceAccountService
) -> None:
    composed, split = "J\u00f6rg", normalize("NFD", "J\u00f6rg")
    groups: dict[str, list[str]] = {
        "account/J%C3%B6rg": [],
        "account/Ann": [],
        "account/ann": [],
        "account/Bob": [],
    }
    save_groups(store.database, "wiki", groups)
    assert split != composed
    assert admin.map(ANN, "wiki", f" {split} ").account == composed
    _raises(lambda: admin.map(ANN, "wiki", "j\u00f6rg"), ConflictError)  # not ASCII: as it is
    assert admin.map(ANN, "wiki", "bob").account == "Bob"
    assert admin.map(ANN, "wiki", "ann").token == token(store, "account/ann", "wiki")
    assert admin.map(BOB, "wiki", "Ann").token == token(store, "account/Ann", "wiki")
    for ambiguous in ("ANN", "\u0430nn", "A\u0578n", "nobody", "account/ann", "%61nn"):
        _raises(lambda one=ambiguous: admin.map(ANN, "wiki", one), ConflictError)  # type: ignore[misc]
    _raises(lambda: admin.map(ANN, "hub", "\u212aubot"), ConflictError)


@pytest.mark.parametrize("wrong", ["", "  ", "a\nb", "a\0", "x" * (LONGEST_ACCOUNT + 1), "\u202e"])
def test_what_cannot_be_an_account_is_refused(
    store: Store, admin: SourceAccountService, wrong: str
) -> None:
    _raises(lambda: own(store).ask("hub", wrong), InvalidInputError)
    _raises(lambda: own(store).ask(wrong, "octocat"), InvalidInputError)
    _raises(lambda: admin.map(ANN, "hub", wrong), InvalidInputError)
    own(store).ask("hub", "x" * LONGEST_ACCOUNT)


def test_a_mapping_answers_what_the_person_asked_for(
    store: Store, admin: SourceAccountService
) -> None:
    asked = [own(store).ask("hub", one) for one in ("octocat", "OCTOCAT", "hubot")]
    admin.approve(asked[1].id)
    assert {(one.account, one.state) for one in own(store).list_accounts()} == {
        ("octocat", "mapped"),
        ("hubot", "asked"),
    }
    again = own(store).ask("hub", "Octocat")
    admin.approve(again.id)
    assert len(own(store).list_accounts()) == 2


def test_candidates_are_accounts_that_belong_to_nobody(
    store: Store, admin: SourceAccountService
) -> None:
    def find(begin: str = "", source: str = "hub") -> list[tuple[str, str]]:
        return [(one.account, one.name) for one in admin.list_candidates(source, begin)]

    assert find() == [("hubot", "Hub Robot"), ("octocat", "octocat")]
    assert find("OCT") == find(" octo ") == [("octocat", "octocat")]
    assert find("hub r") == [("hubot", "Hub Robot")]
    assert (
        find("carol") == find("%") == find("_") == find("repository") == find(source="wiki") == []
    )
    admin.map(ANN, "hub", "octocat")
    assert find() == [("hubot", "Hub Robot")]
    many: dict[str, list[str]] = {
        f"account/u{number:03}": [] for number in range(MOST_CANDIDATES + 5)
    }
    save_groups(store.database, "wiki", many)
    assert [account for account, _ in find(source="wiki")] == [
        f"u{number:03}" for number in range(MOST_CANDIDATES)
    ]


def test_pages_of_accounts_are_whole(store: Store, admin: SourceAccountService) -> None:
    asked = sorted(own(store).ask("hub", f"a{number}").id for number in range(7))
    first = [one.id for one in admin.list_accounts(limit=4)]
    assert first + [one.id for one in admin.list_accounts(after=first[-1], limit=4)] == asked
    assert admin.list_accounts("mapped") == []


def test_the_names_of_all_that_is_asked_for_take_one_query(
    store: Store, admin: SourceAccountService
) -> None:
    asked = ["octocat", "HUBOT", "nobody"]
    for account in asked:
        own(store).ask("hub", account)
    own(store, BOB).ask("wiki", "octocat")
    admin.map(BOB, "hub", "carol")
    with noted_statements(store.database.engine) as statements:
        found = {(one.source, one.account): one.name for one in admin.list_accounts()}
    assert found == {
        ("hub", "octocat"): "octocat",
        ("hub", "HUBOT"): "Hub Robot",
        ("hub", "nobody"): None,
        ("hub", "carol"): "carol",
        ("wiki", "octocat"): None,
    }
    assert len([each for each in statements if each.startswith("SELECT")]) == 2


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_query_of_every_request_reads_no_table_whole(
    store: Store, admin: SourceAccountService
) -> None:
    admin.map(ANN, "hub", "octocat")
    with noted_statements(store.database.engine) as statements:
        find_own_readers(store.database, person(store))
    query = statements[-1]
    with store.database.reading() as connection:
        explained = connection.exec_driver_sql(
            f"EXPLAIN QUERY PLAN {query}", (1,) * query.count("?")
        )
        plan = [row[3] for row in explained]
    assert any("memberships" in step for step in plan)
    assert [step for step in plan if step.startswith("SCAN")] == []


@pytest.mark.soak("slow")
def test_an_account_in_65_000_groups_is_resolved_in_one_look(
    store: Store, admin: SourceAccountService
) -> None:
    admin.map(ANN, "hub", "octocat")
    number, account = sources.find(store.database, "hub").id, token(store, "account/octocat")
    joined = {"member": account, "source_id": number, "pending": 0, "since": None}
    rows = [{**joined, "token": f"external:{number}:g{each}"} for each in range(65_000)]
    with store.database.writing() as connection:
        connection.execute(insert(memberships), rows)
    found = resolve_readers(store.database, find_own_readers(store.database, person(store)))
    # The groups, with the repository and its team; everybody, the address and the account.
    assert len(found.tokens) == 65_000 + 2 + 3


def test_people_ask_for_no_account_of_the_source_of_their_own_files(store: Store) -> None:
    file_source.ensure(store.database)
    assert own(store).ask("hub", "octocat").source_id is not None
    assert own(store).ask(file_source.FILES_SOURCE, "octocat").source_id is None
