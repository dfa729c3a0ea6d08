"""Who may read a document is named with the groups that admit them."""

from collections.abc import Iterator

import pytest

from backend.access.document_readers import AllReaders, OwnReaders
from backend.access.own_readers import find_own_readers
from backend.access.people import PeopleService
from backend.access.readers import resolve_readers
from backend.access.roles import Role
from backend.access.source_accounts import SourceAccountService
from backend.store.accounts import people
from backend.store.sync import sources
from connectors.access import EVERYBODY, NOBODY, Access, Readers
from tests.support.accounts import add_person
from tests.support.groups import save_groups, token_of
from tests.support.store import Store, store_at

ANN, BOB, CY = (f"user:{name}@example.com" for name in ("ann", "bob", "cy"))


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk") as store:
        yield store


def to(store: Store, *clauses: list[str]) -> Access:
    number = sources.find(store.database, "desk").id
    return Access.all_of([token_of(number, name) for name in clause] for clause in clauses)


def describe(store: Store, access: Access) -> list[str]:
    return AllReaders(store.database).find(access).describe()


def test_people_are_named_with_the_groups_that_admit_them(store: Store) -> None:
    groups = {"general": ["staff", ANN, "group:board"], "staff": ["account/cy", BOB]}
    save_groups(store.database, "desk", groups | {"account/cy": [CY], "other": [CY]})
    assert describe(store, to(store, ["general", BOB])) == [
        "group:board · member of general",
        "ann@example.com · member of general",
        "bob@example.com",
        "cy@example.com · member of staff in general",
    ]
    assert describe(store, EVERYBODY) == ["everybody"]
    assert describe(store, NOBODY) == []


def test_groups_that_contain_each_other_are_followed_once(store: Store) -> None:
    save_groups(store.database, "desk", {"a": ["b", ANN], "b": ["a", BOB]})
    assert describe(store, to(store, ["a"])) == [
        "ann@example.com · member of a",
        "bob@example.com · member of b in a",
    ]


def test_of_several_clauses_those_are_named_who_meet_all(store: Store) -> None:
    save_groups(
        store.database, "desk", {"space": [ANN, BOB], "board": [BOB, CY], "open": ["public"]}
    )
    assert describe(store, to(store, ["space"], ["board"])) == ["bob@example.com · member of board"]
    assert describe(store, to(store, ["space"], ["open"])) == [
        "ann@example.com · member of space",
        "bob@example.com · member of space",
    ]
    assert describe(store, to(store, ["open"])) == ["everybody"]
    assert describe(store, to(store, ["space"], ["empty"])) == []


def test_of_a_large_group_a_hundred_are_named_and_the_others_counted(store: Store) -> None:
    people = [f"user:p{number:04}@example.com" for number in range(1_250)]
    save_groups(store.database, "desk", {"all": people})
    lines = describe(store, to(store, ["all"]))
    assert len(lines) == 101
    assert lines[0] == "p0000@example.com · member of all"
    assert lines[-1] == "1,150 more"


def test_who_is_no_admin_is_told_of_nobody_else(store: Store) -> None:
    save_groups(store.database, "desk", {"general": ["staff", ANN], "staff": [BOB]})
    own = Readers.of(BOB)
    lookup = OwnReaders(store.database, own, resolve_readers(store.database, own))
    found = lookup.find(to(store, ["general", CY], ["staff", "group:board"]))
    assert found.describe() == ["bob@example.com · member of staff in general"]
    assert found.count == 1
    assert found.access == to(store, ["general"], ["staff"])
    assert lookup.find(to(store, [ANN])).describe() == []


def test_a_mapped_account_is_named_as_the_way(store: Store) -> None:
    database = store.database
    add_person(database, "bob@example.com", Role.ADMIN)
    add_person(database, "ann@example.com")
    accounts = {"account/octo": [], "account/cy": [CY], "account/U1": []}
    groups = {"general": ["staff"], "staff": ["account/octo", "account/cy"], "account/cy": [CY]}
    save_groups(database, "desk", {**accounts, **groups}, {"account/octo": "Octo Cat"})
    general, direct = to(store, ["general"]), to(store, ["account/octo"])
    assert describe(store, general) == ["cy@example.com · member of staff in general"]
    mapped = SourceAccountService(database).map("ann@example.com", "desk", "octo")
    by = "ann@example.com · by the source account Octo Cat of desk"
    of_cy = "cy@example.com · member of staff in general"
    assert describe(store, general) == [f"{by} · member of staff in general", of_cy]
    assert describe(store, direct) == [by]
    assert describe(store, to(store, ["general"], [ANN])) == [f"{by} · member of staff in general"]
    assert describe(store, to(store, ["general"], [BOB])) == []
    own = find_own_readers(database, people.get_by_email(database, "ann@example.com"))
    lookup = OwnReaders(database, own, resolve_readers(database, own))
    assert lookup.find(general).describe() == [f"{by} · member of staff in general"]
    PeopleService(database).disable("ann@example.com")
    assert describe(store, general) == [of_cy]
    PeopleService(database).enable("ann@example.com")
    SourceAccountService(database).withdraw(mapped.id)
    assert describe(store, general) == [of_cy]


def test_an_address_that_the_source_shows_is_the_way_before_a_mapping(store: Store) -> None:
    add_person(store.database, "cy@example.com", Role.ADMIN)
    save_groups(store.database, "desk", {"staff": ["account/cy"], "account/cy": [CY]})
    SourceAccountService(store.database).map("cy@example.com", "desk", "cy")
    assert describe(store, to(store, ["staff"])) == ["cy@example.com · member of staff"]
