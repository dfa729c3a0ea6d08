"""A cluster of three nodes with two copies of each shard that loses a node while it is written and searched."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from opensearchpy import OpenSearch

from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Filters
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.mapping import IndexLayout
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from tests.support.fault_index import IndexUnderTest, check_none_is_mixed, generations, versions
from tests.support.index_engines import PUBLIC
from tests.support.opensearch_server import Cluster, Server

pytestmark = pytest.mark.soak("faults")

REPLICATED = IndexLayout(shards=2, replicas=1)
BARE = IndexLayout(shards=3, replicas=0)
"""One copy of a shard per node at most."""
DOCUMENTS = [f"document {n}" for n in range(12)]
GAP = 60.0
"""Seconds for which searches may fail: an idle cluster elects another manager in six."""
ENOUGH = 8
"""Writes and searches on either side of the loss."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster("opensearch-2") as cluster:
        cluster.wait("green", nodes=3)
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Iterator[OpenSearch]:
    """The address of a cluster that is complete before and after the test."""
    client = connect(OpenSearchSettings(urls=tuple(cluster.urls), timeout=20.0))
    yield client
    cluster.start()
    cluster.wait("green", nodes=3)
    client.close()


@dataclass(frozen=True)
class Search:
    """A search that returned."""

    ended: float
    acknowledged: dict[str, int]
    """What had been written when the search began."""
    shown: dict[str, int]
    partial: bool


@dataclass
class Traffic:
    """One thread that writes and one that searches, without a pause, until stopped."""

    subject: IndexUnderTest
    acknowledged: dict[str, int] = field(default_factory=dict)
    writes: int = 0
    repeated: int = 0
    searches: list[Search] = field(default_factory=list)
    wrong: list[BaseException] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Traffic":
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,))
            for work in (self._write, self._search)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    def await_more(self, seconds: float = 120) -> None:
        """Wait until both have made progress."""
        writes, searches = self.writes, len(self.searches)
        deadline = time.monotonic() + seconds
        while self.writes < writes + ENOUGH or len(self.searches) < searches + ENOUGH:
            assert time.monotonic() < deadline, (self.writes, len(self.searches))
            assert self.wrong == []
            time.sleep(0.05)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - reported by the test's own thread
            self.wrong.append(error)

    def _write(self) -> None:
        """Write documents in turn, three at a time, each time in a new generation."""
        for number in itertools.count():
            if self.over.is_set():
                return
            names = [DOCUMENTS[(3 * number + n) % len(DOCUMENTS)] for n in range(3)]
            self._write_until_done(names, number + 1)
            self.acknowledged = {**self.acknowledged, **dict.fromkeys(names, number + 1)}
            self.writes += 1

    def _write_until_done(self, names: list[str], generation: int) -> None:
        while True:
            try:
                self.subject.writer.write(versions(names, generation))
            except TemporarilyUnavailableError:
                self.repeated += 1
            else:
                return

    def _search(self) -> None:
        while not self.over.is_set():
            acknowledged = self.acknowledged
            try:
                found = self.subject.find(Deadline.after(10))
            except (TemporarilyUnavailableError, DeadlineExceededError):
                continue
            check_none_is_mixed(found)
            shown = {name: actual[0] for name, actual in generations(found).items()}
            self.searches.append(Search(time.monotonic(), acknowledged, shown, found.partial))


def manager(cluster: Cluster, _: IndexUnderTest) -> Server:
    return cluster.manager()


def holder(cluster: Cluster, subject: IndexUnderTest) -> Server:
    """Return a node that is not the manager and holds a primary shard of the index."""
    asked = {"format": "json", "h": "prirep,node"}
    shards: list[dict[str, Any]] = subject.client.cat.shards(index=subject.name, params=asked)
    holders = {each["node"] for each in shards if each["prirep"] == "p"}
    named = {server.node.name: server for server in cluster.nodes}
    return named[min(holders - {cluster.manager().node.name})]


@pytest.mark.parametrize("chosen", [manager, holder])
def test_a_cluster_that_loses_a_node_goes_on_and_has_lost_nothing(
    cluster: Cluster,
    client: OpenSearch,
    prefix: str,
    chosen: Callable[[Cluster, IndexUnderTest], Server],
) -> None:
    subject, bare = (
        IndexUnderTest(client, prefix, REPLICATED),
        IndexUnderTest(client, f"{prefix}-bare", BARE),
    )
    bare.writer.write(versions(DOCUMENTS, 1))
    # Otherwise the copies of the lost node are made anew on the others after a minute, and the index is green again.
    waits = {"index.unassigned.node_left.delayed_timeout": "1h"}
    client.indices.put_settings(index=subject.name, body=waits)
    with Traffic(subject) as traffic:
        traffic.await_more()
        lost = chosen(cluster, subject)
        lost.kill()
        traffic.await_more()
        await_color(client, subject.name, "yellow")
        await_color(client, bare.name, "red")
        check_partial(bare)
        traffic.await_more()
        lost.start()
        traffic.await_more()
    assert traffic.wrong == []
    check_searches(traffic.searches)
    cluster.wait("green", nodes=3)
    bare.check_holds(dict.fromkeys(DOCUMENTS, 1))
    subject.check_holds(traffic.acknowledged)
    for server in cluster.nodes:
        # Each node answers from its own copies.
        check_copies(server, prefix, traffic.acknowledged)


def await_color(client: OpenSearch, index: str, color: str) -> None:
    deadline = time.monotonic() + 60
    while client.cluster.health(index=index)["status"] != color:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def check_partial(bare: IndexUnderTest) -> None:
    """One of its shards is missing: results are marked as partial, and complete listings fail."""
    found = bare.find()
    left = generations(found)
    assert found.partial
    assert 0 < len(left) < len(DOCUMENTS)
    check_none_is_mixed(found)
    gone = next(name for name in DOCUMENTS if name not in left)
    for whole in (
        lambda: bare.index.facets(Filters(), PUBLIC, Deadline.after(20)),
        lambda: bare.index.chunks([ChunkRange(gone, 0, 9)], PUBLIC, Deadline.after(20)),
        lambda: list(bare.writer.scan()),
        lambda: list(bare.writer.export()),
    ):
        with pytest.raises(TemporarilyUnavailableError, match="incomplete"):
            whole()


def check_searches(searches: list[Search]) -> None:
    """A result that is not partial contains every document, as it was when the search began or newer."""
    assert max(b.ended - a.ended for a, b in itertools.pairwise(searches)) < GAP
    for search in searches:
        assert set(search.acknowledged) <= set(search.shown) or search.partial
        for name in set(search.acknowledged) & set(search.shown):
            assert search.shown[name] >= search.acknowledged[name]
    assert not any(search.partial for search in searches[-ENOUGH // 2 :])


def check_copies(server: Server, prefix: str, expected: dict[str, int]) -> None:
    client = connect(OpenSearchSettings(urls=(server.url,)))
    IndexUnderTest(client, prefix).check_holds(expected)
    client.close()
