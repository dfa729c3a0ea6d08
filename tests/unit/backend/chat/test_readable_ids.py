"""What an answer may rest on now: documents by the index, memories by whose they are; no id is both."""

from collections.abc import Collection, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from backend.access.roles import Role
from backend.chat.citations.citation_processor import CitationInfo
from backend.chat.events import ChatEvent, TextPiece
from backend.chat.readable_ids import (
    OwnMemories,
    find_readable,
    make_memory_reference,
    make_own_memories,
)
from backend.chat.rights_watch import DocumentWithdrawnError, RightsWatch
from backend.store.chat import memories
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline
from tests.support.accounts import add_person
from tests.support.conversations import OWNER
from tests.support.databases import sqlite_in

DOCUMENT = "wiki:memory/plan.md"
"""Of a document whose path looks like a memory."""


class Shelf:
    """An index of one document, which records what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def chunks(self, ranges: list[ChunkRange], readers: Readers, deadline: Deadline) -> list[Any]:
        del readers, deadline
        self.asked += [one.document_id for one in ranges]
        return [["a chunk"] if one.document_id == DOCUMENT else [] for one in ranges]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(sqlite_in(tmp_path))) as opened:
        yield opened


def _find(ids: Collection[str], own_memories: OwnMemories, shelf: Shelf) -> frozenset[str]:
    index = cast("Index", shelf)
    return find_readable(ids, index, Readers.of(), own_memories, Deadline.after(30))


def test_a_memory_is_never_asked_of_the_index_nor_a_document_of_the_memories() -> None:
    shelf, asked = Shelf(), list[str]()

    def own(memory_ids: Collection[str]) -> frozenset[str]:
        asked.extend(memory_ids)
        return frozenset({"mine", "memory/mine", DOCUMENT})

    mine, others = make_memory_reference("mine"), make_memory_reference("others")
    odd = ["memory/", "memory/x:y", "memory/x/y", "memory/x\n", "xmemory/mine", "Memory/mine"]
    found = _find([DOCUMENT, mine, others, *odd, mine], own, shelf)
    assert found == {DOCUMENT, mine}
    assert sorted(asked) == ["mine", "others"]
    assert sorted(shelf.asked) == sorted([DOCUMENT, *odd])


def test_the_ids_of_memories_are_recognized(database: Database) -> None:
    shelf = Shelf()
    added = [memories.add(database, OWNER, f"Fact {number}.").id for number in range(200)]
    references = frozenset(map(make_memory_reference, added))
    assert _find(references, make_own_memories(database, OWNER), shelf) == references
    assert shelf.asked == []


def test_only_the_owner_finds_a_memory_and_only_while_it_exists(database: Database) -> None:
    person = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    memory = memories.add(database, person, "I sit in Leeds.")
    reference = make_memory_reference(memory.id)

    def finds(owner: ConversationOwner | None) -> bool:
        return bool(_find([reference], make_own_memories(database, owner), Shelf()))

    assert [finds(one) for one in (person, OWNER, None)] == [True, False, False]
    memories.remove(database, person, memory.id)
    assert not finds(person)
    memories.add(database, person, "I sit in Leeds.")
    assert not finds(person)


def _watch(database: Database, *rests_on: str) -> RightsWatch:
    return RightsWatch(
        readers_now=Readers.of,
        index=cast("Index", Shelf()),
        own_memories=make_own_memories(database, OWNER),
        deadline=Deadline.after(30),
        documents=frozenset(rests_on),
    )


def _cite(document_id: str) -> CitationInfo:
    return CitationInfo(number=1, document_id=document_id, title="", link="")


def test_a_running_answer_ends_where_a_memory_is_deleted(database: Database) -> None:
    memory = memories.add(database, OWNER, "I sit in Leeds.")
    reference = make_memory_reference(memory.id)

    def write() -> Iterator[ChatEvent]:
        yield _cite(reference)
        yield _cite(DOCUMENT)
        memories.remove(database, OWNER, memory.id)
        yield TextPiece("You sit in ")
        yield _cite(DOCUMENT)

    followed = _watch(database, reference).follow(write())
    assert [next(followed) for _ in range(3)][-1] == TextPiece("You sit in ")
    with pytest.raises(DocumentWithdrawnError):
        next(followed)


def test_an_answer_that_cites_anothers_memory_is_not_shown(database: Database) -> None:
    person = ConversationOwner(add_person(database, "ann@example.com", Role.ADMIN).id)
    reference = make_memory_reference(memories.add(database, person, "I sit in Leeds.").id)
    with pytest.raises(DocumentWithdrawnError):
        next(_watch(database).follow(iter([_cite(reference)])))


def test_where_memories_cannot_be_read_nothing_is_shown() -> None:
    def fail(memory_ids: Collection[str]) -> frozenset[str]:
        raise TemporarilyUnavailableError(str(memory_ids), retry_after=timedelta(seconds=1))

    with pytest.raises(TemporarilyUnavailableError):
        _find([make_memory_reference("mine")], fail, Shelf())
