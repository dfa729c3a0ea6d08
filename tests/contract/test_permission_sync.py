"""Permission syncs of every connector whose documents name groups or scopes: who joins is one row."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import delete

from backend.access.readers import resolve_readers
from backend.store.database import Database
from backend.store.schema.tables import (
    conjunction_readers,
    conjunctions,
    group_listings,
    memberships,
    source_groups,
)
from backend.store.sync import runs, schedule, sources
from backend.store.sync.sources import Source
from backend.sync.due_work import Engine
from backend.sync.foreground_run import sync
from connectors.access import PUBLIC, Access, Readers
from connectors.connector import Connector
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import Amend
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.ledger import AccessAmended
from indexing.ingestion.pipeline import Pipeline
from tests.contract.connector_worlds.world import (
    ANN,
    BO,
    CY,
    SOURCE_ID,
    Grouped,
    World,
    number_of,
)
from tests.contract.connector_worlds.worlds import WORLDS
from tests.support.databases import sqlite_in
from tests.support.memory_index_writer import WatchedIndexWriter
from tests.support.store import Store, store_at

EMBEDDER = HashingEmbedder()
SOURCE = "源"
_OF_GROUPS = (memberships, source_groups, group_listings, conjunction_readers, conjunctions)
ASKERS = (ANN, BO, CY, "user:dan@example.com")


@dataclass(frozen=True)
class Place:
    """A source that was synced. Implements `backend.sync.due_work.SyncParts`."""

    world: World
    store: Store
    writer: WatchedIndexWriter

    @property
    def database(self) -> Database:
        return self.store.database

    def connector(self, source: Source) -> Connector:
        assert source.id == SOURCE_ID
        return self.world.connect()

    def pipeline(self, source: Source) -> Pipeline:
        return Pipeline(source.name, EMBEDDER, self.writer, self.store.ledger)

    def batch_worker(self) -> BatchWorker:
        return BatchWorker(EMBEDDER, self.writer, self.store.ledger)

    def sync_content(self) -> None:
        source = sources.find(self.database, SOURCE)
        list(sync(self.database, source, self.world.connect(), self.pipeline(source)))

    def sync_permissions(self) -> None:
        schedule.request_run(self.database, SOURCE, "permissions")
        assert Engine(lambda: self).light_due(SOURCE)
        run = runs.latest(self.database)[SOURCE]
        assert (run.kind, run.state) == ("permissions", "done")

    def find_readers(self) -> dict[int, set[str]]:
        """Who of the askers is shown each item by the index, by number."""
        held = {one: resolve_readers(self.database, Readers.of(one)).tokens for one in ASKERS}
        return {
            number: {asker for asker, tokens in held.items() if tokens & access.readers}
            for number, access in self._indexed().items()
        }

    def expected_readers(self) -> dict[int, set[str]]:
        return {number: self._people(number) for number in self._indexed()}

    def forget_groups(self) -> None:
        """Make it what it was when documents carried all their readers."""
        people = {
            one.id: Access.to(self._people(number_of(self._title(one.id))))
            for one in self.writer.scan()
        }
        self.writer.write(Amend(document_id=one, access=those) for one, those in people.items())
        self.store.ledger.save([AccessAmended(one, those) for one, those in people.items()])
        with self.database.writing() as connection:
            for table in _OF_GROUPS:
                connection.execute(delete(table))

    def _people(self, number: int) -> set[str]:
        assert isinstance(self.world, Grouped)
        people = self.world.people(number)
        return set(ASKERS) if PUBLIC in people else set(people)

    def _indexed(self) -> dict[int, Access]:
        return {number_of(self._title(one.id)): one.access for one in self.writer.scan()}

    def _title(self, document_id: str) -> str:
        return self.writer.held[document_id].chunks[0].title


@pytest.fixture(
    params=[one for one in WORLDS if issubclass(one, Grouped)], ids=lambda one: one.name
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "world"
    folder.mkdir()
    world: World = request.param(folder)
    with store_at(sqlite_in(tmp_path), SOURCE) as store:
        made = Place(world, store, WatchedIndexWriter(EMBEDDER.dimension))
        made.sync_content()
        yield made
    world.close()


def test_who_joins_or_leaves_is_in_the_database_and_no_document_is_written(place: Place) -> None:
    assert place.find_readers() == place.expected_readers()
    world, written = place.world, len(place.writer.log)
    assert isinstance(world, Grouped)
    for change in (world.join, world.leave):
        change()
        place.sync_permissions()
        assert place.find_readers() == place.expected_readers()
    assert len(place.writer.log) == written


@pytest.mark.soak("slow")
def test_documents_that_carry_all_their_readers_are_rewritten(place: Place) -> None:
    """From one readership to the other: meanwhile nobody reads what neither admits, or misses what both admit."""
    assert isinstance(place.world, Grouped)
    wanted = {one.id: one.access for one in place.writer.scan()}
    place.forget_groups()
    before = place.expected_readers()
    assert place.find_readers() == before
    place.world.join()
    place.world.leave()
    after = place.expected_readers()
    assert before != after
    seen = 0

    def watch() -> None:
        nonlocal seen
        seen += 1
        for number, found in place.find_readers().items():
            assert before[number] & after[number] <= found <= before[number] | after[number]

    place.writer.watch = watch
    place.sync_permissions()
    assert seen
    assert place.find_readers() == after
    assert {one.id: one.access for one in place.writer.scan()} == wanted


@pytest.mark.soak("slow")
def test_a_content_sync_takes_nothing_from_who_may_read_before_groups_were_listed(
    place: Place,
) -> None:
    place.forget_groups()
    place.world.edit(5)
    place.sync_content()
    assert place.find_readers() == place.expected_readers()
