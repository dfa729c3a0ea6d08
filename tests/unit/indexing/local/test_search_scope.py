"""The scope of an asker is the same in each leg, and no chunk outside it can be read.

The vector leg is restricted by masks, the full-text index by conditions, and the tables by the last SQL condition.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from connectors.access import EVERYBODY, Readers
from connectors.document import Person
from indexing.index.protocols import Amend, DateRange, Delete, Filters
from indexing.local import open_writer, tantivy_index
from indexing.local.access_filter import CACHED_SCOPES, SearchScope, VisibleChunks
from indexing.local.database import Connection
from indexing.local.snapshot import Snapshot, SnapshotCache
from tests.support.chunks import DIMENSION, IDENTITY, document
from tests.support.index_engines import soon
from tests.support.languages import PASSAGES

MAY = datetime(2026, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ANN = Readers.of("user:ann@example.com", "group:unknown")
ANYONE = Readers.of()
ALL = {"wiki", "mail", "plain"}


@dataclass(frozen=True)
class Shelf:
    snapshot: Snapshot
    connection: Connection

    def scope(self, readers: Readers, filters: Filters) -> SearchScope:
        return self.snapshot.scope(self.connection, readers, filters)

    def ordinals(self) -> dict[str, int]:
        return dict(self.connection.execute("SELECT id, ordinal FROM documents").fetchall())

    def rows(self, document_id: str) -> list[int]:
        found = self.connection.execute(
            "SELECT c.row FROM chunks c JOIN documents d ON c.row >= d.first_row"
            " AND c.row < d.first_row + d.count WHERE d.id = ? ORDER BY c.row",
            (document_id,),
        )
        return [row for (row,) in found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of two sources, formats, sets and people; one is hidden, one empty, two are not public."""
    folder = tmp_path_factory.mktemp("shelf")
    writer = open_writer(folder, IDENTITY)
    hr, finance = frozenset({"hr"}), ["group:finance"]
    writer.write(
        [
            document("replaced", "an earlier text", "and more"),
            document("plain", "travel one", "travel two", "travel three"),
            document(
                "wiki",
                "travel is approved",
                source="wiki",
                sets=hr,
                owners=(Person("Bob"),),
                created_at=MAY,
            ),
            document(
                "mail",
                "travel by night",
                "travel by day",
                readers=["user:ann@example.com"],
                media_type="message/rfc822",
                tags=frozenset({"lang=en"}),
                owners=(Person("Ann", "ann@example.com"), Person("Bob")),
                created_at=MAY + DAY,
                updated_at=MAY + 2 * DAY,
            ),
            document("secret", PASSAGES["de"], readers=finance, sets=hr, source="wiki"),
            document("hidden", "travel nowhere"),
            document("empty"),
            document("gone", "travel no more"),
        ]
    )
    writer.write(
        [
            Amend(document_id="hidden", hidden=True),
            Amend(document_id="empty", access=EVERYBODY),
            Delete("gone"),
            Delete("replaced"),
        ]
    )
    return folder


@pytest.fixture
def shelf(folder: Path) -> Iterator[Shelf]:
    with SnapshotCache(folder, DIMENSION).current(soon()) as (snapshot, connection):
        yield Shelf(snapshot, connection)


def seen(shelf: Shelf, readers: Readers, filters: Filters) -> set[str]:
    """Return the documents in a scope, which must be the same by document, by slot and in the full-text index."""
    scope = shelf.scope(readers, filters)
    ordinals = shelf.ordinals()
    documents = {name for name, ordinal in ordinals.items() if scope.documents[ordinal]}
    assert scope.documents.sum() == len(documents)
    assert scope.documents.dtype == scope.slots.dtype == np.bool_
    owners = shelf.snapshot.columns.owners
    assert set(owners[scope.slots]) == {ordinals[name] for name in documents}
    assert scope.slots.sum() == sum(len(shelf.rows(name)) for name in documents)
    assert scope.is_empty is (not documents)
    everything = tantivy_index.match_all(list(scope.conditions))
    matches = tantivy_index.search(shelf.snapshot.searcher, everything, (), 100)
    assert set(matches.documents) == {ordinals[name] for name in documents}
    return documents


@pytest.mark.parametrize(
    ("readers", "expected"),
    [
        (ANYONE, {"wiki", "plain"}),
        (ANN, ALL),
        (Readers.of("group:finance"), {"wiki", "plain", "secret"}),
        (Readers(frozenset({"group:finance"})), {"secret"}),
        (Readers(frozenset({"group:unknown"})), set()),
        (Readers(frozenset()), set()),
    ],
)
def test_an_asker_sees_what_one_of_the_tokens_may_read(
    shelf: Shelf, readers: Readers, expected: set[str]
) -> None:
    assert seen(shelf, readers, Filters()) == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(sources=frozenset({"wiki"})), {"wiki"}),
        (Filters(sources=frozenset({"wiki", "folder"})), ALL),
        (Filters(sources=frozenset({"hr"})), set()),
        (Filters(media_types=frozenset({"message/rfc822"})), {"mail"}),
        (Filters(media_types=frozenset()), set()),
        (Filters(sets=frozenset({"hr", "it"})), {"wiki"}),
        (Filters(sets=frozenset({"lang=en"})), set()),
        (Filters(tags=frozenset({"lang=en"})), {"mail"}),
        (Filters(tags=frozenset()), set()),
        (Filters(people=frozenset({"bob"})), {"wiki", "mail"}),
        (Filters(people=frozenset({"ann@example.com"})), {"mail"}),
        (Filters(people=frozenset({"Ann"})), set()),
        (Filters(document_ids=frozenset({"plain", "secret", "unknown"})), {"plain"}),
        (Filters(document_ids=frozenset()), set()),
        (Filters(created=DateRange(since=MAY)), {"wiki", "mail"}),
        (Filters(created=DateRange(until=MAY)), set()),
        (Filters(created=DateRange(until=MAY + DAY)), {"wiki"}),
        (Filters(created=DateRange(since=MAY + timedelta(microseconds=1))), {"mail"}),
        (Filters(created=DateRange(since=MAY, until=MAY + DAY)), {"wiki"}),
        (Filters(updated=DateRange(since=MAY)), {"mail"}),
        (Filters(updated=DateRange(since=MAY, until=MAY + 2 * DAY)), set()),
        (Filters(sources=frozenset({"wiki"}), people=frozenset({"bob"})), {"wiki"}),
        (Filters(sources=frozenset({"folder"}), sets=frozenset({"hr"})), set()),
    ],
)
def test_a_filter_is_the_same_in_each_leg(
    shelf: Shelf, filters: Filters, expected: set[str]
) -> None:
    assert seen(shelf, ANN, filters) == expected


def test_a_scope_has_the_languages_of_its_documents_only(shelf: Shelf) -> None:
    assert shelf.scope(Readers.of("group:finance"), Filters()).languages == {"de"}
    assert shelf.scope(ANN, Filters()).languages == frozenset()


def test_a_scope_is_built_once_for_each_asker_and_filter(shelf: Shelf) -> None:
    few = Filters(sets=frozenset({"hr"}))
    first = shelf.scope(ANN, Filters())
    assert shelf.scope(ANN, Filters()) is first
    assert shelf.scope(ANYONE, Filters()) is not first
    assert shelf.scope(ANN, few) is not first


def test_a_full_cache_of_scopes_begins_anew(shelf: Shelf) -> None:
    def count_after(asker: int) -> int:
        shelf.scope(Readers.of(f"group:{asker}"), Filters())
        return len(shelf.snapshot.scopes._scopes)

    counts = [count_after(asker) for asker in range(CACHED_SCOPES + 2)]
    assert counts == [*range(1, CACHED_SCOPES + 1), 1, 2]


def test_only_visible_rows_are_read(shelf: Shelf) -> None:
    names = ("plain", "mail", "secret", "hidden", "gone")
    asked = [row for name in names for row in shelf.rows(name)] + [0, 10**6]
    mail, plain = shelf.rows("mail"), shelf.rows("plain")
    chunks = VisibleChunks(shelf.connection, ANN)
    fetched = chunks.fetch(asked)
    assert {row: each.chunk.text for row, each in fetched.items()} == dict(
        zip(
            [*plain, *mail],
            ["travel one", "travel two", "travel three", "travel by night", "travel by day"],
            strict=True,
        )
    )
    assert fetched[mail[0]].words.split()[:1] == ["travel"]
    texts = VisibleChunks(shelf.connection, ANYONE).texts(asked)
    assert texts == dict(zip(plain, ["travel one", "travel two", "travel three"], strict=True))
    assert VisibleChunks(shelf.connection, Readers(frozenset())).fetch(asked) == {}


def test_a_range_of_a_document_is_read_by_its_readers(shelf: Shelf) -> None:
    everybody = VisibleChunks(shelf.connection, ANYONE)
    assert [each.text for each in everybody.range("plain", 1, 9)] == ["travel two", "travel three"]
    assert [each.position for each in everybody.range("plain", 0, 1)] == [0]
    ann = VisibleChunks(shelf.connection, ANN)
    assert [each.text for each in ann.range("mail", 0, 9)] == ["travel by night", "travel by day"]
    for hidden in ("mail", "secret", "hidden", "gone", "empty", "a\0", "a\ud800"):
        assert everybody.range(hidden, 0, 9) == []


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Shelf]:
    """A document that fifty groups read, and some that three do."""
    writer = open_writer(tmp_path, IDENTITY)
    many = [f"group:many-{n:02}" for n in range(50)]
    few = [f"group:few-{n}" for n in range(3)]
    writer.write(
        [
            document("crowd", "travel one", readers=many),
            *(document(f"few {n}", "travel two", readers=few) for n in range(20)),
        ]
    )
    with SnapshotCache(tmp_path, DIMENSION).current(soon()) as (snapshot, connection):
        yield Shelf(snapshot, connection)


@pytest.mark.parametrize("number", [0, 15, 16, 49])
def test_any_of_many_readers_reads_a_document(crowd: Shelf, number: int) -> None:
    rows = crowd.rows("crowd")
    held = Readers.of(f"group:many-{number:02}")
    assert list(VisibleChunks(crowd.connection, held).fetch(rows)) == rows
    assert VisibleChunks(crowd.connection, Readers.of("group:many-50")).fetch(rows) == {}


def test_groups_of_the_asker_add_little_to_what_a_chunk_costs(crowd: Shelf) -> None:
    rows = [row for n in range(20) for row in crowd.rows(f"few {n}")]
    others = [f"group:away-{n}" for n in range(100)]
    one = count_steps(crowd, Readers.of("group:few-0"), rows)
    assert count_steps(crowd, Readers.of("group:few-0", *others), rows) < 2 * one


def count_steps(shelf: Shelf, readers: Readers, rows: list[int]) -> int:
    """Return how many instructions of SQLite it takes to read these rows."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    shelf.connection.set_progress_handler(count, 1)
    found = VisibleChunks(shelf.connection, readers).fetch(rows)
    shelf.connection.set_progress_handler(None, 1)
    assert list(found) == rows
    return steps
