"""A search that nobody waits for any more ends on the server too."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from opensearchpy import OpenSearch

from connectors.access import Readers
from indexing.opensearch.cancellable_connection import cancel_on
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.naming import index_name
from indexing.opensearch.open_index import open_index, open_writer
from indexing.opensearch.search_requests import (
    MultiSearch,
    best_effort_search,
    point_in_time_search,
    strict_search,
)
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError
from tests.support.chunks import IDENTITY, document, query
from tests.support.opensearch_server import SERVERS, url_of

SEGMENTS, CHUNKS = 50, 20
"""A server checks for cancellation at the end of each segment at the latest."""
SPIN = """
String text = 'a';
for (int n = 0; n < 14; ++n) { text = text + text }
long end = new Date().getTime() + 20L;
double found = 0;
while (new Date().getTime() < end) { found += text.indexOf('b') }
return 1 + found * 0;
"""
"""Takes 20 ms per chunk on any processor."""
PATIENCE = 8.0
"""Seconds: less than `SLOW` takes, and a busy cluster needs some to see that its part is over."""
SLOW: dict[str, Any] = {
    "size": 5,
    "query": {
        "script_score": {
            "query": {"term": {"kind": "chunk"}},
            "script": {"source": SPIN},
        }
    },
}


@dataclass(frozen=True)
class SlowIndex:
    """An index with enough chunks for `SLOW` to take many seconds."""

    client: OpenSearch
    prefix: str
    name: str


@pytest.fixture(scope="module", params=SERVERS)
def slow_index(request: pytest.FixtureRequest) -> Iterator[SlowIndex]:
    client = connect(OpenSearchSettings(urls=(url_of(request.param),)))
    prefix = f"t-{secrets.token_hex(6)}"
    writer, name = open_writer(client, prefix, IDENTITY), index_name(prefix, IDENTITY)
    client.indices.put_settings(
        index=name, body={"index.merge.policy.segments_per_tier": 2 * SEGMENTS}
    )
    for n in range(SEGMENTS):
        writer.write([document(f"{n}", *["text"] * CHUNKS)])
    yield SlowIndex(client, prefix, name)
    client.indices.delete(index=f"{prefix}-*")
    client.close()


@pytest.fixture
def client(slow_index: SlowIndex) -> OpenSearch:
    return slow_index.client


@pytest.fixture
def prefix(slow_index: SlowIndex) -> str:
    return slow_index.prefix


@pytest.fixture
def name(slow_index: SlowIndex) -> str:
    return slow_index.name


def _running(client: OpenSearch, name: str) -> list[str]:
    tasks = client.tasks.list(params={"actions": "*search*", "detailed": "true"})
    return [
        task["action"]
        for node in tasks["nodes"].values()
        for task in node["tasks"].values()
        if name in task["description"]
    ]


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _ask(searches: MultiSearch) -> float:
    """Return the seconds until the search was cancelled."""
    start = time.monotonic()
    with pytest.raises(DeadlineExceededError), cancel_on(searches.deadline):
        searches.run({0: SLOW})
    return time.monotonic() - start


def test_a_search_whose_time_is_up_is_cancelled(client: OpenSearch, name: str) -> None:
    assert _ask(strict_search(client, name, Deadline.after(0.7))) < 10.0
    assert _within(10.0, lambda: not _running(client, name))


def test_a_search_that_is_stopped_is_cancelled(client: OpenSearch, name: str) -> None:
    cancel_token = CancelToken()
    seen: list[str] = []

    def watch() -> None:
        assert _within(20.0, lambda: bool(_running(client, name)))
        seen.extend(_running(client, name))
        cancel_token.cancel()

    watcher = threading.Thread(target=watch)
    watcher.start()
    waited = _ask(strict_search(client, name, Deadline.after(60.0, cancel_token)))
    watcher.join()
    assert seen
    assert waited < 25.0
    assert _within(10.0, lambda: not _running(client, name))


def test_others_on_the_same_client_are_not_disturbed(
    client: OpenSearch, prefix: str, name: str
) -> None:
    index, cancel_token = open_index(client, prefix, IDENTITY), CancelToken()
    given_up = threading.Thread(
        target=_ask, args=(strict_search(client, name, Deadline.after(60.0, cancel_token)),)
    )
    given_up.start()
    assert _within(20.0, lambda: bool(_running(client, name)))
    cancel_token.cancel()
    for _ in range(20):
        (ranking,) = index.find([query("text", size=7)], Readers.of(), Deadline.after(30)).rankings
        assert len(ranking) == 7
    given_up.join()


def test_a_stop_before_the_question_is_heeded(client: OpenSearch, prefix: str, name: str) -> None:
    assert name
    cancel_token = CancelToken()
    cancel_token.cancel()
    with pytest.raises(DeadlineExceededError):
        open_index(client, prefix, IDENTITY).find(
            [query("text")], Readers.of(), Deadline.after(60.0, cancel_token)
        )


@pytest.mark.soak("engines")
def test_who_can_live_with_a_part_gets_one_in_time(client: OpenSearch, name: str) -> None:
    assert (
        best_effort_search(client, name, Deadline.after(PATIENCE), "copy").run({0: SLOW})[0].partial
    )
    with point_in_time_search(client, name, Deadline.after(PATIENCE)) as searches:
        assert searches.run({0: SLOW})[0].partial
