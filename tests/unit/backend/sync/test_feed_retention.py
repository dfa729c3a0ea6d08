"""Entries that a feed no longer shows: how long they are found, in the terminal and by the workers."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from backend.store.database import Database
from backend.store.schema.tables import documents
from backend.store.sync import runs, schedule, sources
from backend.store.sync.sources import Source
from backend.sync.due_work import Engine
from backend.sync.foreground_run import sync
from connectors.connector import Connector
from connectors.errors import ActionRequiredError
from connectors.registry import create_connector
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.listings import DeletionNeedsApprovalError
from indexing.ingestion.pipeline import Pipeline
from tests.support.memory_index_writer import MemoryIndexWriter
from tests.support.services.feed import FeedServer, Post, rss_2
from tests.support.services.serving import serve
from tests.support.store import Store, source_service, store_at

EMBEDDER = HashingEmbedder()


def _feed(numbers: Iterable[int]) -> str:
    return rss_2(
        Post(
            id=str(number),
            title=f"Post {number}",
            html="Said.",
            link=f"https://news.test/{number}",
            at=datetime(2026, 11, 2, tzinfo=UTC),
        )
        for number in numbers
    )


@dataclass
class Desk:
    """A source `news` of feeds. Implements `backend.sync.due_work.SyncParts`."""

    store: Store
    server: FeedServer
    url: str
    writer: MemoryIndexWriter = field(default_factory=lambda: MemoryIndexWriter(EMBEDDER.dimension))

    @property
    def database(self) -> Database:
        return self.store.database

    def connector(self, source: Source) -> Connector:
        return create_connector(source.kind, source.name, source.settings)

    def pipeline(self, source: Source) -> Pipeline:
        return Pipeline(source.name, EMBEDDER, self.writer, self.store.ledger)

    def batch_worker(self) -> BatchWorker:
        return BatchWorker(EMBEDDER, self.writer, self.store.ledger)

    def settings(self, *paths: str, **more: object) -> dict[str, object]:
        first, *others = (f"{self.url}{path}" for path in paths)
        addresses = {"url": first, "more": others, "private_hosts": ["127.0.0.1"]}
        return {**addresses, "readers": ["public"], **more}

    def edit(self, *paths: str, **more: object) -> None:
        source_service(self.database).edit("news", self.settings(*paths, **more), None)

    def sync(self) -> None:
        source = sources.find(self.database, "news")
        list(sync(self.database, source, self.connector(source), self.pipeline(source)))

    def prune(self) -> str:
        """Let a worker check what was deleted, and return how that ended."""
        schedule.request_run(self.database, "news", "prune")
        return self.run_due()

    def run_due(self) -> str:
        engine = Engine(lambda: self)
        while engine.light_due("news"):
            pass
        return runs.latest(self.database)["news"].state

    def titles(self) -> list[int]:
        shown = (chunk.title for one in self.writer.held.values() for chunk in one.chunks)
        return sorted(int(title.removeprefix("Post ")) for title in shown)

    def pass_time(self, days: int) -> None:
        """Let all that rolled out have done so so much earlier."""
        with self.database.writing() as connection:
            rows = connection.execute(
                documents.select().where(documents.c.unlisted_since.is_not(None))
            ).all()
            for row in rows:
                earlier = row.unlisted_since - timedelta(days=days)
                change = update(documents).where(documents.c.id == row.id)
                connection.execute(change.values(unlisted_since=earlier))


@contextmanager
def _desk(database_url: str, **settings: object) -> Iterator[Desk]:
    server = FeedServer({"/a": _feed(range(12)), "/b": _feed([1000, 1001])})
    with store_at(database_url) as store, serve(server) as service:
        desk = Desk(store, server, service.url)
        sources.add(store.database, "news", "feed", desk.settings("/a", "/b", **settings))
        desk.sync()
        yield desk


def test_what_rolls_out_stays_however_short_the_feed_becomes(database_url: str) -> None:
    """11 of 14 documents would be too many to delete unasked; of a feed none are missing."""
    with _desk(database_url) as desk:
        everything = [*range(12), 1000, 1001]
        assert desk.titles() == everything
        desk.server.feeds |= {"/a": _feed([100]), "/b": _feed([1001])}
        desk.sync()
        assert desk.titles() == sorted([*everything, 100])
        desk.server.feeds |= {"/a": _feed([]), "/b": _feed([])}
        assert desk.prune() == "done"
        desk.pass_time(10_000)
        assert desk.prune() == "done"
        assert desk.titles() == sorted([*everything, 100])


def test_what_is_past_its_retention_is_deleted_unless_the_feed_shows_it(database_url: str) -> None:
    with _desk(database_url, keep_days=30) as desk:
        desk.server.feeds["/a"] = _feed(range(8, 12))
        assert desk.prune() == "done"
        desk.pass_time(29)
        assert desk.prune() == "done"
        assert desk.titles() == [*range(12), 1000, 1001]
        # What comes back begins anew when it rolls out again.
        desk.server.feeds["/a"] = _feed(range(7, 12))
        assert desk.prune() == "done"
        desk.server.feeds["/a"] = _feed(range(8, 12))
        assert desk.prune() == "done"
        desk.pass_time(1)
        assert desk.prune() == "done"
        assert desk.titles() == [*range(7, 12), 1000, 1001]


def test_entries_of_a_feed_that_the_settings_name_no_more_are_removed(database_url: str) -> None:
    with _desk(database_url) as desk:
        desk.server.feeds["/a"] = _feed([11])
        desk.edit("/a")
        desk.sync()
        assert desk.titles() == [*range(12)]
        desk.edit("/b")
        with pytest.raises(DeletionNeedsApprovalError):
            desk.sync()
        assert desk.titles() == [*range(12), 1000, 1001]
        decision = source_service(desk.database).decision("news")
        assert (decision.missing, len(decision.documents)) == (12, 12)
        source_service(desk.database).accept("news", 12)
        assert desk.run_due() == "done"
        assert desk.titles() == [1000, 1001]


def test_what_is_to_be_decided_names_no_entry_that_stays(database_url: str) -> None:
    with _desk(database_url) as desk:
        desk.server.feeds["/b"] = _feed([1001])
        desk.edit("/b")
        with pytest.raises(DeletionNeedsApprovalError):
            desk.sync()
        decision = source_service(desk.database).decision("news")
        names = {one.title for one in decision.documents}
        assert (decision.missing, names) == (12, {f"Post {number}" for number in range(12)})


def test_a_token_that_is_rotated_keeps_what_the_feed_once_showed(database_url: str) -> None:
    with _desk(database_url) as desk:
        desk.edit("/a?token=old", "/b")
        desk.sync()
        desk.server.feeds["/a"] = _feed([11])
        desk.edit("/a?token=new", "/b")
        desk.sync()
        assert desk.prune() == "done"
        assert desk.titles() == [*range(12), 1000, 1001]


@pytest.mark.parametrize("broken", [None, "<html>Sign in", "garbage", _feed([11])[:-9], ""])
def test_a_feed_that_cannot_be_read_deletes_nothing_and_says_so(
    database_url: str, broken: str | None
) -> None:
    with _desk(database_url, keep_days=1) as desk:
        if broken is None:
            del desk.server.feeds["/a"]
        else:
            desk.server.feeds["/a"] = broken
        for _ in range(2):
            assert desk.prune() == "failed"
            desk.pass_time(100)
        error = runs.latest(desk.database)["news"].error
        assert error is not None
        assert "Nothing was deleted." in error
        with pytest.raises(ActionRequiredError, match="Nothing was deleted"):
            desk.sync()
        assert desk.titles() == [*range(12), 1000, 1001]
