"""The index on a cluster at 100,000 chunks, beside the driver's own bulk helper and its own raw requests.

By hand, with a server of `make opensearch`:
`.venv/bin/python -m tests.benchmarks.opensearch http://127.0.0.1:9219 [--chunks N] [--bulk N]`. Prints
Markdown. The corpus, its readers and its questions are those of `index_scale`; two questions are one call
of `find`, as a search without a model has two variants. What is compared is measured in turns.

- *bulk*: `BulkClient.send` and `opensearchpy.helpers.parallel_bulk` (as many threads as we have requests in
  flight, requests of the same number of bytes) send the same bytes to two new indexes, and refresh.
- *find*: the requests that `OpenSearchIndex.find` sends, recorded by a client, are sent again
  by hand over one kept connection and their JSON is parsed. What we add is what is above that; three rounds,
  for other work on the machine takes from it more than the difference.
- *variants*: eight questions in one `find`, and each in a `find` of its own.
- *vectors*: the vector leg alone with vectors kept as floats, as the engine's scalar-quantised ones beside
  them, and as bytes; recall at 100 against an exact search of the floats, under readers who see all, 1, 10
  and 50 % of the documents.
- *embedded*: the same `find` on the local index of the same chunks.
"""

import argparse
import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import urllib3
from opensearchpy import OpenSearch
from opensearchpy.helpers import parallel_bulk

from indexing.index.protocols import Index, IndexQuery, Replace
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.local import open_index as open_local
from indexing.local import open_writer as keep_local
from indexing.opensearch import open_index as opening
from indexing.opensearch.bulk_requests import (
    MAX_IN_FLIGHT,
    REQUEST_BYTES,
    BulkAction,
    BulkClient,
    put_chunks,
)
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.mapping import IndexLayout, Quantisation, VectorSettings
from indexing.opensearch.naming import index_name
from indexing.opensearch.record_mapping import Version, record_of
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.runtime.deadline import Deadline
from indexing.text.analysis import BY_LANGUAGE
from tests.benchmarks.index_scale import ALL, DIMENSION, IDENTITY, READERS, Corpus

VARIANTS = 2
MANY_VARIANTS = 8
ROUNDS = 3
RECALL = 100
KINDS: tuple[Quantisation, ...] = ("float", "scalar", "byte")

Questions = Sequence[IndexQuery]


@dataclass
class Noting:
    """A client that notes the searches it sends."""

    client: OpenSearch
    bodies: list[str] = field(default_factory=list)

    def msearch(self, *, body: str, params: Any) -> Any:
        self.bodies.append(body)
        return self.client.msearch(body=body, params=params)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


@dataclass(frozen=True)
class Raw:
    """One kept connection, and nothing of ours."""

    pool: urllib3.HTTPConnectionPool

    def send(self, bodies: Sequence[str]) -> None:
        headers = {"Content-Type": "application/x-ndjson"}
        for body in bodies:
            response = self.pool.request("POST", "/_msearch", body=body.encode(), headers=headers)
            json.loads(response.data)


@dataclass(frozen=True)
class Built:
    name: str
    """Of the index on the cluster."""
    prefix: str
    index: OpenSearchIndex
    seconds: float


@dataclass(frozen=True)
class Cluster:
    url: str
    client: OpenSearch

    @contextmanager
    def prefix(self) -> Iterator[str]:
        """Of indexes that go with the block."""
        name = f"b-{secrets.token_hex(4)}"
        try:
            yield name
        finally:
            self.client.indices.delete(index=f"{name}-*")

    def index(self, prefix: str, layout: IndexLayout) -> OpenSearchIndex:
        return opening.open_index(self.client, prefix, IDENTITY, layout)


def soon() -> Deadline:
    return Deadline.after(120)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _in_turns(*calls: Sequence[Callable[[], object]]) -> list[tuple[float, float]]:
    """p50 and p95 in milliseconds of each column of calls; each row is done in an order that rotates."""
    for first in zip(*(column[:10] for column in calls), strict=True):
        for call in first:
            call()
    seconds: list[list[float]] = [[] for _ in calls]
    for number, row in enumerate(zip(*calls, strict=True)):
        for place in range(len(row)):
            column = (number + place) % len(row)
            seconds[column].append(_seconds(row[column]))
    return [
        (float(np.percentile(each, 50)) * 1e3, float(np.percentile(each, 95)) * 1e3)
        for each in seconds
    ]


def _grouped(queries: Questions, size: int) -> list[Questions]:
    return [queries[start : start + size] for start in range(0, len(queries) - size + 1, size)]


# --- bulk


def _actions(documents: Iterator[Replace]) -> Iterator[BulkAction]:
    for batch in prepare_batches(documents, DIMENSION, BatchLimits(512, 2_000), BY_LANGUAGE):
        for item in batch:
            assert isinstance(item, PreparedReplace)
            record = record_of(item, Version(secrets.token_hex(6), len(item.words)))
            yield from put_chunks(record, item, "float")


def _as_helper_takes_it(action: BulkAction) -> tuple[str, str]:
    head, body, _ = action.lines.decode().split("\n")
    return head, body


def measure_bulk(cluster: Cluster, chunks: int) -> None:
    actions = list(_actions(Corpus(chunks).documents()))
    ours, theirs = [], []
    for number in range(ROUNDS):
        for side in ("ours", "theirs") if number % 2 else ("theirs", "ours"):
            with cluster.prefix() as prefix:
                name = opening.ensure_index(
                    cluster.client, f"{prefix}-x", IDENTITY, IndexLayout()
                ).name
                if side == "ours":
                    ours.append(_seconds(lambda: _send_ours(cluster, name, actions)))  # noqa: B023
                else:
                    theirs.append(_seconds(lambda: _send_theirs(cluster, name, actions)))  # noqa: B023
    rates = [len(actions) / min(each) for each in (ours, theirs)]
    print(f"\nbulk of {len(actions):,} chunks, best of {ROUNDS}: ours {rates[0]:.0f}/s,", end=" ")
    print(f"parallel_bulk {rates[1]:.0f}/s, ours ÷ theirs {rates[0] / rates[1]:.2f}")


def _send_ours(cluster: Cluster, index: str, actions: Sequence[BulkAction]) -> None:
    BulkClient(cluster.client, index, 60.0).send(actions)
    cluster.client.indices.refresh(index=index)


def _send_theirs(cluster: Cluster, index: str, actions: Sequence[BulkAction]) -> None:
    sent = parallel_bulk(
        cluster.client,
        actions,
        thread_count=MAX_IN_FLIGHT,
        queue_size=MAX_IN_FLIGHT,
        chunk_size=1_000_000,
        max_chunk_bytes=REQUEST_BYTES,
        expand_action_callback=_as_helper_takes_it,
        index=index,
    )
    assert all(worked for worked, _ in sent)
    cluster.client.indices.refresh(index=index)


# --- find


def measure_find(cluster: Cluster, built: Built, local: Index, queries: Questions) -> None:
    index = built.index
    groups = _grouped(queries, VARIANTS)
    noted = [_requests(cluster, built.name, group) for group in groups]
    parts = urllib3.util.parse_url(cluster.url)
    raw = Raw(urllib3.HTTPConnectionPool(parts.host or "", parts.port, maxsize=1))
    print(f"\nfind of {VARIANTS} variants, p50 / p95, ms;", end=" ")
    print(f"requests a find {np.mean([*map(len, noted)]):.2f}; load {os.getloadavg()[0]:.1f}")
    print("| find | the same requests by hand | find ÷ by hand | embedded | embedded ÷ find |")
    print("|---|---|---|---|---|")
    for _ in range(ROUNDS):
        ours, sent, beside = _in_turns(
            [partial(_find, index, group) for group in groups],
            [partial(raw.send, bodies) for bodies in noted],
            [partial(_find, local, group) for group in groups],
        )
        cells = [f"{p50:.1f} / {p95:.1f}" for p50, p95 in (ours, sent, beside)]
        ratios = [f"{ours[0] / sent[0]:.2f}", f"{beside[0] / ours[0]:.2f}"]
        print(f"| {cells[0]} | {cells[1]} | {ratios[0]} | {cells[2]} | {ratios[1]} |")


def _requests(cluster: Cluster, name: str, group: Questions) -> list[str]:
    noting = Noting(cluster.client)
    # The attribute is the only way in that leaves the search itself as it is.
    spy = OpenSearchIndex(cast(OpenSearch, noting), name, DIMENSION, VectorSettings(), BY_LANGUAGE)
    spy.find(group, ALL, soon())
    return noting.bodies


def _find(index: Index, queries: Questions) -> None:
    index.find(queries, ALL, soon())


def _find_each(index: Index, queries: Questions) -> None:
    for query in queries:
        index.find([query], ALL, soon())


def measure_variants(index: Index, queries: Questions) -> None:
    groups = _grouped(queries, MANY_VARIANTS)
    together, alone = _in_turns(
        [partial(_find, index, group) for group in groups],
        [partial(_find_each, index, group) for group in groups],
    )
    print(
        f"\n{MANY_VARIANTS} variants in one find {together[0]:.0f} / {together[1]:.0f} ms,", end=" "
    )
    print(f"in {MANY_VARIANTS} finds {alone[0]:.0f} / {alone[1]:.0f} ms:", end=" ")
    print(f"{together[0] / alone[0]:.2f}")


# --- vectors


def measure_vectors(
    cluster: Cluster,
    built: dict[Quantisation, Built],
    queries: Questions,
) -> None:
    asked = [replace(query, text="", alpha=1.0, size=RECALL) for query in queries]
    exact = cluster.index(built["float"].prefix, _layout("float", "exact"))
    truth = {name: [_keys(exact, query, name) for query in asked[:50]] for name in READERS}
    print(
        "\n| vectors | build, s | on disk, MB | p50 / p95, ms | recall@100 "
        + " | ".join(READERS)
        + " |"
    )
    print("|---|---|---|---|" + "---|" * len(READERS))
    for kind, one in built.items():
        ((p50, p95),) = _in_turns([partial(_find, one.index, [query]) for query in asked])
        recalls = [
            np.mean(
                [
                    len(wanted & _keys(one.index, query, name)) / max(1, len(wanted))
                    for query, wanted in zip(asked[:50], truth[name], strict=True)
                ]
            )
            for name in READERS
        ]
        size = _size(cluster, one.prefix) / 1e6
        reported = " | ".join(f"{recall:.4f}" for recall in recalls)
        print(f"| {kind} | {one.seconds:.0f} | {size:.0f} | {p50:.1f} / {p95:.1f} | {reported} |")


def _keys(index: Index, query: IndexQuery, readers: str) -> set[tuple[str, int]]:
    (ranking,) = index.find([query], READERS[readers], soon()).rankings
    return {hit.chunk.key for hit in ranking}


def _size(cluster: Cluster, prefix: str) -> int:
    stats = cluster.client.indices.stats(index=f"{prefix}-*", metric="store")
    return int(stats["_all"]["total"]["store"]["size_in_bytes"])


def _layout(kind: Quantisation, search: Any = "graph") -> IndexLayout:
    return IndexLayout(vectors=VectorSettings(quantisation=kind, search=search))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--bulk", type=int, default=10_000)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    given = parser.parse_args()
    cluster = Cluster(given.url, connect(OpenSearchSettings(urls=(given.url,))))
    version = cluster.client.info()["version"]["number"]
    print(f"OpenSearch {version}, {given.chunks:,} chunks of {DIMENSION} dimensions")
    measure_bulk(cluster, given.bulk)
    corpus = Corpus(given.chunks)
    queries = list(islice(corpus.queries(), 200))
    with ExitStack() as stack:
        built = {kind: _built(cluster, stack, corpus, kind) for kind in given.kinds}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quarry-benchmark-")))
        keep_local(folder, IDENTITY).write(corpus.documents())
        with open_local(folder, IDENTITY) as local:
            measure_find(cluster, built["float"], local, queries)
        measure_variants(built["float"].index, queries)
        measure_vectors(cluster, built, queries)


def _built(cluster: Cluster, stack: ExitStack, corpus: Corpus, kind: Quantisation) -> Built:
    prefix, layout = stack.enter_context(cluster.prefix()), _layout(kind)
    writer = opening.open_writer(cluster.client, prefix, IDENTITY, layout)
    seconds = _seconds(lambda: writer.write(corpus.documents()))
    name = index_name(prefix, IDENTITY)
    return Built(name, prefix, cluster.index(prefix, layout), seconds)


if __name__ == "__main__":
    main()
