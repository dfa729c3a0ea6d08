"""Many writers at a server that accepts few requests at once: some are refused, none is lost."""

import threading
from collections.abc import Iterator

import pytest
from opensearchpy import OpenSearch

from indexing.index.protocols import Amend, Delete, Written
from indexing.opensearch import bulk_requests
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.open_index import open_writer
from tests.support.chunks import IDENTITY, document
from tests.support.opensearch_server import SERVERS, Server

BUSY = {"thread_pool.write.size": "1", "thread_pool.write.queue_size": "1"}
WRITERS = 8


@pytest.fixture(scope="module", params=SERVERS)
def narrow(request: pytest.FixtureRequest) -> Iterator[OpenSearch]:
    """A server that writes one request at a time, lets one wait, and refuses the rest."""
    with Server(request.param, BUSY) as server:
        client = connect(OpenSearchSettings(urls=(server.url,)))
        yield client
        client.close()


def refused(client: OpenSearch) -> int:
    """Return how many requests the write queue has refused so far."""
    (node,) = client.nodes.stats(metric="thread_pool")["nodes"].values()
    count: int = node["thread_pool"]["write"]["rejected"]
    return count


def test_what_a_busy_cluster_refuses_is_sent_again(
    narrow: OpenSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small requests, so that there are many.
    monkeypatch.setattr(bulk_requests, "REQUEST_BYTES", 20_000)
    before = refused(narrow)
    reported: list[Written] = []

    def write(number: int) -> None:
        writer = open_writer(narrow, "t-busy", IDENTITY)
        own = [f"{number}-{n}" for n in range(20)]
        reported.append(writer.write(document(name, *["some words"] * 20) for name in own))
        reported.append(writer.write(Amend(document_id=name, boost=2.0) for name in own[:10]))
        reported.append(writer.write(map(Delete, own[10:])))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused(narrow) > before, "the server was to be too busy at times"
    assert sorted(reported, key=repr) == sorted(
        WRITERS * [Written(replaced=20, chunks=400), Written(amended=10), Written(deleted=10)],
        key=repr,
    )
    left = list(open_writer(narrow, "t-busy", IDENTITY).export())
    assert {(each.document_id, len(each.chunks)) for each in left} == {
        (f"{number}-{n}", 20) for number in range(WRITERS) for n in range(10)
    }
    assert {chunk.boost for each in left for chunk in each.chunks} == {2.0}
