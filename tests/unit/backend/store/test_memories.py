"""Memories in the database: each is its owner's alone, and nothing is left of one that was deleted."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from sqlalchemy import delete

from backend.access.roles import Role
from backend.store.chat import memories
from backend.store.chat.memories import Memory, MemoryPosition
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.store.schema.tables import people
from connectors.errors import ConflictError, NotFoundError
from tests.support.accounts import add_person
from tests.support.conversations import OWNER
from tests.support.races import race

ANN = ConversationOwner(1)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        add_person(opened, "ann@example.com", Role.ADMIN)
        yield opened


def _list(database: Database, owner: ConversationOwner) -> list[Memory]:
    return memories.list_page(database, owner, None, 1_000)


def _acts(
    database: Database, owner: ConversationOwner, memory_id: str
) -> list[Callable[[], object]]:
    return [
        lambda: memories.get(database, owner, memory_id),
        lambda: memories.set_text(database, owner, memory_id, "Mine."),
        lambda: memories.remove(database, owner, memory_id),
    ]


def test_one_of_somebody_else_and_one_that_never_was_are_the_same(database: Database) -> None:
    own = memories.add(database, ANN, "I sit in Leeds.")
    said = set()
    for memory_id in (own.id, "never-was", "half \ud800", "nul \0"):
        for act in _acts(database, OWNER, memory_id):
            with pytest.raises(NotFoundError) as caught:
                act()
            said.add(str(caught.value))
    assert said == {"There is no such memory."}
    assert memories.find_own(database, OWNER, [own.id]) == frozenset()
    assert memories.remove_all(database, OWNER) == 0
    assert _list(database, OWNER) == []
    assert _list(database, ANN) == [own]


def test_the_newest_comes_first_on_pages_without_gaps(database: Database) -> None:
    added = [memories.add(database, ANN, f"Fact {number}.") for number in range(5)]
    found: list[Memory] = []
    position = None
    while page := memories.list_page(database, ANN, position, 2):
        found += page
        position = MemoryPosition(page[-1].created_at, page[-1].id)
    assert found == added[::-1]


def test_a_change_keeps_the_place_and_says_when(database: Database) -> None:
    first, second = (memories.add(database, ANN, text) for text in ("Leeds.", "Graz."))
    memories.set_text(database, ANN, first.id, "Denver.")
    changed = memories.get(database, ANN, first.id)
    assert (changed.text, changed.created_at) == ("Denver.", first.created_at)
    assert changed.updated_at > first.updated_at
    assert _list(database, ANN) == [second, changed]


def test_what_is_deleted_is_nobodys(database: Database) -> None:
    first, second, third = (memories.add(database, ANN, text) for text in "abc")
    ids = [first.id, second.id, third.id, "never-was", "half \ud800"]
    assert memories.find_own(database, ANN, ids) == {first.id, second.id, third.id}
    memories.remove(database, ANN, first.id)
    assert memories.find_own(database, ANN, ids) == {second.id, third.id}
    assert memories.remove_all(database, ANN) == 2
    assert memories.find_own(database, ANN, ids) == frozenset()


def test_there_is_a_limit_for_each_owner(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories, "MOST_MEMORIES", 2)
    memories.add(database, OWNER, "Of the machine.")
    memories.add(database, ANN, "One.")
    raced = race(
        database,
        lambda opened: memories.add(opened, ANN, "Two."),
        lambda: memories.add(database, ANN, "Three."),
    )
    assert isinstance(raced, ConflictError)
    with pytest.raises(ConflictError, match=r"You have 2 memories already\. Delete some"):
        memories.add(database, ANN, "Four.")
    memories.remove(database, ANN, _list(database, ANN)[0].id)
    memories.add(database, ANN, "Five.")


def test_memories_go_with_the_person(database: Database) -> None:
    bob = add_person(database, "bob@example.com")
    of_ann = memories.add(database, ANN, "Leeds.")
    memories.add(database, ConversationOwner(bob.id), "Graz.")
    with database.writing() as connection:
        connection.execute(delete(people).where(people.c.id == bob.id))
    assert _list(database, ConversationOwner(bob.id)) == []
    assert _list(database, ANN) == [of_ann]
