"""How far the cluster ranks as the local index does, on public question sets.

By hand, where `quarry eval run` was run on the sets with the same home:
`.venv/bin/python -m tests.benchmarks.parity http://127.0.0.1:9219 ../shared/data/scifact … [--queries N]`.
The local index of each set is copied to the cluster, one shard, and both are asked the questions of the
set: the best ten by words, by vectors (compared with every vector on both sides), and by both. Prints a
Markdown table.
"""

import argparse
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from backend.container import Container
from backend.evaluation.corpus import index_name
from backend.evaluation.dataset import Dataset, read_dataset
from backend.settings import Settings
from connectors.access import Readers
from indexing.index.protocols import Index, IndexQuery
from indexing.local import open_index, open_writer
from indexing.opensearch import open_index as opening
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.mapping import IndexLayout, VectorSettings
from indexing.runtime.deadline import Deadline
from indexing.text import tokenizer
from tests.support.parity import LEGS, average_overlap, compare_rankings, restrict_to_leg

LAYOUT = IndexLayout(vectors=VectorSettings(search="exact"))
ANYBODY = Readers.of()


@contextmanager
def copied(container: Container, folder: Path, url: str) -> Iterator[Index]:
    """The local index at `folder`, on the cluster for the time of the block."""
    client, prefix = connect(OpenSearchSettings(urls=(url,))), f"b-{secrets.token_hex(4)}"
    identity = container.embedding.embedder.identity
    try:
        writer = opening.open_writer(client, prefix, identity, LAYOUT)
        writer.write(open_writer(folder, identity).export())
        with opening.open_index(client, prefix, identity, LAYOUT) as index:
            yield index
    finally:
        client.indices.delete(index=f"{prefix}-*")
        client.close()


def merge_queries(container: Container, dataset: Dataset, most: int) -> Sequence[IndexQuery]:
    every = max(1, len(dataset.queries) // most)
    texts = [query.text for query in dataset.queries][::every][:most]
    vectors = container.embedding.embedder.embed_queries(texts, Deadline.after(600))
    return [
        IndexQuery(text=text, vector=vector, alpha=0.5, exact=tokenizer.find_exact_terms(text))
        for text, vector in zip(texts, vectors, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("datasets", nargs="+", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    given = parser.parse_args()
    container = Container(Settings())
    print("| set | questions | " + " | ".join(LEGS) + " | same exact matches |")
    print("|---|---|" + "---|" * (len(LEGS) + 1))
    for path in given.datasets:
        dataset = read_dataset(path, None)
        folder = container.home / "evaluation" / index_name(dataset, container.embedding.embedder)
        asked = merge_queries(container, dataset, given.queries)
        with (
            open_index(folder, container.embedding.embedder.identity) as local,
            copied(container, folder, given.url) as cluster,
        ):
            print(f"| {dataset.name} | {len(asked)} | {_row(local, cluster, asked)} |")


def _row(local: Index, cluster: Index, asked: Sequence[IndexQuery]) -> str:
    actual = []
    for leg in LEGS:
        found = compare_rankings(
            local, cluster, [restrict_to_leg(query, leg) for query in asked], ANYBODY
        )
        actual.append(f"{average_overlap(found):.4f}")
    exact = compare_rankings(local, cluster, [query for query in asked if query.exact], ANYBODY)
    same = [
        {hit.chunk.key for hit in each.one if hit.evidence.exact}
        == {hit.chunk.key for hit in each.other if hit.evidence.exact}
        for each in exact
    ]
    return " | ".join([*actual, f"{int(np.sum(same))} of {len(same)}"])


if __name__ == "__main__":
    main()
