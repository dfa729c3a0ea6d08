"""A server that is overloaded or has a full disk: refused requests are retried, or an error says why."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from opensearchpy import OpenSearch

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.protocols import Amend, Delete, IndexChange, Written
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.open_index import open_writer
from tests.support.chunks import IDENTITY
from tests.support.fault_index import IndexUnderTest, generations, versions
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.opensearch_server import Server

pytestmark = pytest.mark.soak("faults")

NARROW = {
    # One request is processed, one waits, the others are refused.
    "thread_pool.write.size": "1",
    "thread_pool.write.queue_size": "1",
    # The minimum interval of disk checks.
    "cluster.info.update.interval": "10s",
}
SLACK = 5.0
NAMES = [f"document {n}" for n in range(10)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("opensearch-2", NARROW) as server:
        yield server


@pytest.fixture
def line(server: Server) -> Iterator[FaultProxy]:
    """Records requests and their times."""
    with fault_proxy(server.url) as proxy:
        yield proxy


@pytest.fixture
def client(line: FaultProxy) -> Iterator[OpenSearch]:
    client = connect(OpenSearchSettings(urls=(line.url,)))
    yield client
    client.close()


@pytest.fixture
def direct(server: Server) -> Iterator[OpenSearch]:
    client = connect(OpenSearchSettings(urls=(server.url,), timeout=120.0))
    yield client
    client.close()


BUSY = """
String text = 'a';
for (int i = 0; i < 20; i++) { text = text + text }
while (new Date().getTime() < params.until) { text.indexOf('b') }
ctx.op = 'none'
"""
"""A change that blocks its thread until a certain moment."""


@contextmanager
def jammed(client: OpenSearch, prefix: str, seconds: float) -> Iterator[float]:
    """Keep the only write thread busy and its queue full for so long; yields the end of it."""
    index = f"{prefix}-jam"
    client.index(index=index, id="1", body={"a": 1})
    end = time.time() + seconds
    script = {"lang": "painless", "source": BUSY, "params": {"until": int(1000 * end)}}
    change = [{"update": {"_index": index, "_id": "1"}}, {"script": script}]

    def occupy() -> None:
        while client.bulk(body=change)["errors"]:
            time.sleep(0.02)  # something else was in its place

    threads = [threading.Thread(target=occupy) for _ in range(2)]
    for thread in threads:
        thread.start()
    await_that(lambda: writing(client) == {"active": 1, "queue": 1})
    yield end
    for thread in threads:
        thread.join()


def writing(client: OpenSearch) -> dict[str, int]:
    (node,) = client.nodes.stats(metric="thread_pool")["nodes"].values()
    pool = node["thread_pool"]["write"]
    return {"active": pool["active"], "queue": pool["queue"]}


def await_that(ready: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_queue_that_is_full_is_waited_for_with_growing_pauses(
    client: OpenSearch, direct: OpenSearch, line: FaultProxy, prefix: str
) -> None:
    subject = IndexUnderTest(client, prefix)
    with jammed(direct, prefix, 6.0) as end:
        before = len(line.asked("_bulk"))
        written = subject.writer.write(versions(NAMES, 1))
        assert time.time() > end
    assert written == Written(replaced=10, chunks=30)
    # 0.1, 0.2, 0.4, 0.8, 1.6, 3.2 s, plus or minus half, and the steps of the write; a steady 0.1 s would be 60.
    assert 5 <= len(line.asked("_bulk")) - before <= 13
    subject.check_holds(dict.fromkeys(NAMES, 1))


def test_a_queue_that_stays_full_raises_when_patience_has_run_out(
    client: OpenSearch, direct: OpenSearch, prefix: str
) -> None:
    subject = IndexUnderTest(client, prefix, patience=1.5)
    subject.writer.write(versions(NAMES, 1))
    with jammed(direct, prefix, 8.0):
        begun = time.monotonic()
        with pytest.raises(
            TemporarilyUnavailableError, match=r"document 0: OpenSearch is busy .*rejected"
        ) as raised:
            subject.writer.write(versions(NAMES, 2))
        assert time.monotonic() - begun < 1.5 + SLACK
        assert raised.value.retry_after.total_seconds() > 0
        # Only writes wait.
        assert generations(subject.find()) == {name: [1] * 3 for name in NAMES}
    subject.writer.write(versions(NAMES, 2))
    subject.check_holds(dict.fromkeys(NAMES, 2))


def test_a_server_short_of_memory_is_waited_for(
    client: OpenSearch, direct: OpenSearch, prefix: str
) -> None:
    """It refuses requests of more than a kilobyte until the limit is raised."""
    subject = IndexUnderTest(client, prefix)
    hasty = IndexUnderTest(client, prefix, patience=1.0)
    with limited(direct, {"network.breaker.inflight_requests.limit": "1kb"}):
        with pytest.raises(TemporarilyUnavailableError, match="OpenSearch is busy"):
            hasty.writer.write(versions(NAMES, 1))
        with pytest.raises(TemporarilyUnavailableError, match="OpenSearch is busy"):
            subject.find()
        lifting = threading.Timer(
            1.0, limit, (direct, {"network.breaker.inflight_requests.limit": None})
        )
        lifting.start()
        assert subject.writer.write(versions(NAMES, 1)) == Written(replaced=10, chunks=30)
        lifting.join()
    subject.check_holds(dict.fromkeys(NAMES, 1))


def limit(client: OpenSearch, settings: dict[str, str | None]) -> None:
    client.cluster.put_settings(body={"transient": settings})


@contextmanager
def limited(client: OpenSearch, settings: dict[str, str]) -> Iterator[None]:
    limit(client, dict(settings))
    try:
        yield
    finally:
        limit(client, dict.fromkeys(settings))


DISK = "cluster.routing.allocation.disk.watermark"
FULL = {f"{DISK}.low": "902tb", f"{DISK}.high": "901tb", f"{DISK}.flood_stage": "900tb"}
"""More free space than there is, required by the server."""


def is_blocked(client: OpenSearch, name: str) -> bool:
    (found,) = client.indices.get_settings(index=name, params={"flat_settings": "true"}).values()
    blocked: bool = found["settings"].get("index.blocks.read_only_allow_delete") == "true"
    return blocked


def test_a_disk_at_its_flood_stage_has_a_readable_error_and_writes_continue_with_free_space(
    client: OpenSearch, direct: OpenSearch, prefix: str
) -> None:
    subject = IndexUnderTest(client, prefix)
    subject.writer.write(versions(NAMES, 1))
    right = subject.find()
    refused: list[list[IndexChange]] = [
        [*versions(NAMES[:1], 2)],
        [*versions(["new"], 1)],
        [Amend(document_id=NAMES[0], boost=2.0)],
        # Also deletions: the record of a deleted document is written before its chunks are deleted.
        [Delete(NAMES[0])],
    ]
    with limited(direct, FULL):
        await_that(lambda: is_blocked(direct, subject.name))
        for changes in refused:
            begun = time.monotonic()
            with pytest.raises(
                ActionRequiredError, match=r"disk of the cluster is nearly full.*Free space"
            ):
                subject.writer.write(changes)
            assert time.monotonic() - begun < SLACK, "nothing is gained by waiting"
        assert subject.find() == right
        assert [each.id for each in subject.writer.scan()] == NAMES
        # The index can be opened and searched; a new one cannot be created.
        assert IndexUnderTest(client, prefix).find() == right
        with pytest.raises(ActionRequiredError, match=r"creates no new index.*disks of all nodes"):
            open_writer(client, f"{prefix}-other", IDENTITY)
    await_that(lambda: not is_blocked(direct, subject.name))
    for changes in refused:
        subject.writer.write(changes)
    subject.check_holds({**dict.fromkeys(NAMES[1:], 1), "new": 1})
