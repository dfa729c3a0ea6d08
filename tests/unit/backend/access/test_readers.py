"""What an asker holds: groups of groups, scopes and conjunctions, as they are at this moment."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.access.readers import resolve_readers
from backend.store.sync import sources
from connectors.access import Access, Readers
from tests.support.groups import save_conjunctions, save_groups, token_of
from tests.support.rights import may_read
from tests.support.store import Store, store_at, store_with

ANN, BOB = "user:ann@example.com", "user:bob@example.com"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web") as store:
        yield store


def held(store: Store, *own: str) -> set[str]:
    """Return what an asker holds besides `public` and its own tokens, without the source in them."""
    number = sources.find(store.database, "desk").id
    found = resolve_readers(store.database, Readers.of(*own)).tokens
    assert found >= Readers.of(*own).tokens
    return {each.removeprefix(f"external:{number}:") for each in found - Readers.of(*own).tokens}


def test_without_groups_an_asker_holds_its_own_tokens(store: Store) -> None:
    assert held(store, ANN, "group:hr") == set()


def test_members_hold_their_groups_and_the_groups_of_these(store: Store) -> None:
    groups = {
        "team": [ANN],
        "department": ["team", BOB],
        "company": ["department"],
        "round": ["trip", BOB],
        "trip": ["round"],
        "others": ["group:hr"],
        "lobby": ["public"],
        "nobody": [],
    }
    save_groups(store.database, "desk", groups)
    assert held(store, ANN) == {"team", "department", "company", "lobby"}
    assert held(store, BOB) == {"department", "company", "round", "trip", "lobby"}
    assert held(store, "group:hr") == {"others", "lobby"}
    assert held(store) == {"lobby"}
    assert held(store, "user:ann@example.co") == {"lobby"}
    assert held(store, ANN + "\0", "group:hr\0x") == {"lobby"}


def test_conjunctions_are_held_by_those_who_meet_every_clause(store: Store) -> None:
    save_groups(store.database, "desk", {"space": [ANN, BOB], "lobby": ["public"]})
    number = sources.find(store.database, "desk").id
    space, lobby = token_of(number, "space"), token_of(number, "lobby")
    restricted = Access.all_of([[space], ["group:board", BOB]])
    open_to_board = Access.all_of([[lobby], ["group:board"]])
    save_conjunctions(store.database, restricted, open_to_board)
    both = {*restricted.readers, *open_to_board.readers}
    assert held(store, ANN) == {"space", "lobby"}
    assert held(store, ANN, "group:board") == {"space", "lobby", *both}
    assert held(store, BOB) == {"space", "lobby", *restricted.readers}
    assert held(store, "group:board") == {"lobby", *open_to_board.readers}


def test_what_is_withdrawn_counts_for_the_next_request(store: Store) -> None:
    number = sources.find(store.database, "desk").id
    restricted = Access.all_of([[token_of(number, "space")], ["group:board"]])
    save_conjunctions(store.database, restricted)
    save_groups(store.database, "desk", {"space": [ANN, BOB]})
    assert held(store, ANN, "group:board") == {"space", *restricted.readers}
    save_groups(store.database, "desk", {"space": [BOB]})
    assert held(store, ANN, "group:board") == set()
    save_groups(store.database, "desk", {"space": [ANN]})
    assert held(store, ANN) == {"space"}
    assert held(store, BOB) == set()
    save_groups(store.database, "desk", {})
    assert held(store, ANN) == set()


def test_groups_end_with_their_source_and_its_number_is_never_given_again(store: Store) -> None:
    save_groups(store.database, "desk", {"team": [ANN]})
    save_groups(store.database, "web", {"team": [ANN]})
    number = sources.find(store.database, "web").id
    sources.remove(store.database, "web")
    assert held(store, ANN) == {"team"}
    again = sources.add(store.database, "web", "folder", {"path": "/srv/web"})
    assert again.id > number
    assert held(store, ANN) == {"team"}


def test_askers_may_hold_more_tokens_than_a_query_has_parameters(store: Store) -> None:
    many = [f"group:{number}" for number in range(70_000)]
    save_groups(store.database, "desk", {"team": [many[-1]], "other": [ANN]})
    assert held(store, *many) == {"team"}


GROUPS = st.dictionaries(
    st.sampled_from("abcde"), st.lists(st.sampled_from([*"abcde", ANN, BOB, "public"]), max_size=3)
)
CLAUSES = st.lists(st.sampled_from([*"abc", ANN, "group:x"]), min_size=1, max_size=2)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return store_with(tmp_path_factory.mktemp("shelf"), "desk")


@settings(max_examples=25, deadline=None)
@given(GROUPS, st.lists(st.lists(CLAUSES, min_size=2, max_size=3), max_size=3), st.data())
def test_what_is_resolved_is_what_every_path_to_it_admits(
    shelf: Store,
    groups: dict[str, list[str]],
    documents: list[list[list[str]]],
    data: st.DataObject,
) -> None:
    own = data.draw(st.sets(st.sampled_from([ANN, BOB, "group:x"])))
    number = sources.find(shelf.database, "desk").id
    save_groups(shelf.database, "desk", groups)
    granted = [
        Access.all_of([[token_of(number, one) for one in clause] for clause in clauses])
        for clauses in documents
    ]
    save_conjunctions(shelf.database, *granted)
    expected = {"public", *own}
    for _ in groups:
        expected |= {
            token_of(number, name)
            for name, members in groups.items()
            if expected.intersection(token_of(number, one) for one in members)
        }
    found = resolve_readers(shelf.database, Readers.of(*own))
    assert {one for one in found.tokens if not one.startswith("all:")} == expected
    for access in granted:
        assert (not found.tokens.isdisjoint(access.readers)) is may_read(found, access)
