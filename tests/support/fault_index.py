"""An index on a cluster with faults, and checks of what it holds afterwards."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opensearchpy import OpenSearch

from indexing.index.protocols import Found, Hit, IndexQuery, Replace
from indexing.opensearch.mapping import IndexLayout, VectorSettings
from indexing.opensearch.naming import index_name
from indexing.opensearch.open_index import open_index, open_writer
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.opensearch.writer import OpenSearchIndexWriter
from indexing.runtime.deadline import Deadline
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION, IDENTITY, query, vector
from tests.support.index_engines import PUBLIC, is_whole, version

ALL = 3_000
"""More hits than any of these tests has chunks."""


class IndexUnderTest:
    """An index of `version`s, with a writer and a reader."""

    def __init__(
        self,
        client: OpenSearch,
        prefix: str,
        layout: IndexLayout | None = None,
        patience: float = 60.0,
        writing: OpenSearch | None = None,
    ) -> None:
        """`patience`: of the writer, in seconds; `writing`: by which it writes, if not by the client of everything else."""
        self.client = client
        self.name = index_name(prefix, IDENTITY)
        open_writer(client, prefix, IDENTITY, layout)
        self.writer = OpenSearchIndexWriter(
            writing or client,
            self.name,
            DIMENSION,
            VectorSettings(),
            BY_LANGUAGE,
            patience=patience,
        )
        self.index: OpenSearchIndex = open_index(client, prefix, IDENTITY)
        # The first search asks the cluster for its version; later ones do not.
        self.find()

    def find(self, deadline: Deadline | None = None, asked: IndexQuery | None = None) -> Found:
        return self.index.find([asked or everything()], PUBLIC, deadline or Deadline.after(60))

    def check_holds(self, expected: Mapping[str, int]) -> None:
        """Assert that exactly these documents are in the index, in these generations, each complete and once."""
        chunks = {name: 2 + generation % 5 for name, generation in expected.items()}
        scanned = {each.id: (each.generation, each.chunks) for each in self.writer.scan()}
        assert scanned == {name: (expected[name], chunks[name]) for name in expected}
        for asked in (everything(), by_words(), by_vector()):
            found = self.find(asked=asked)
            assert not found.partial
            assert generations(found) == {
                name: [generation] * chunks[name] for name, generation in expected.items()
            }
        self.client.indices.refresh(index=self.name)
        assert self.count("chunk") == sum(chunks.values())
        assert self.count("document") == len(expected)
        assert self.count() == sum(chunks.values()) + len(expected)

    def count(self, kind: str | None = None) -> int:
        """Count the records of this kind."""
        asked: dict[str, Any] = {"term": {"kind": kind}} if kind else {"match_all": {}}
        found: int = self.client.count(index=self.name, body={"query": asked})["count"]
        return found


def everything() -> IndexQuery:
    """Build a query that finds every chunk of a `version` by words and by vector."""
    return query("version", size=ALL, vector=vector("any"), alpha=0.5)


def by_words() -> IndexQuery:
    return query("version", size=ALL)


def by_vector() -> IndexQuery:
    return query("", size=ALL, vector=vector("any"), alpha=1.0)


def generations(found: Found) -> dict[str, list[int]]:
    """Return the generations of each document's hits; no chunk comes twice."""
    (ranking,) = found.rankings
    assert len({hit.chunk.key for hit in ranking}) == len(ranking)
    reported: dict[str, list[int]] = {}
    for hit in ranking:
        reported.setdefault(hit.chunk.document_id, []).append(_generation(hit))
    return reported


def _generation(hit: Hit) -> int:
    return int(hit.chunk.text.partition("generation")[2].partition(" ")[0])


def check_none_is_mixed(found: Found) -> None:
    assert all(is_whole(actual) for actual in generations(found).values())


def versions(names: Iterable[str], generation: int) -> list[Replace]:
    return [version(name, generation) for name in names]


def outcome(call: Callable[[], object], *ours: type[Exception]) -> type[Exception] | None:
    """Return the type of the expected exception that the call raised, `None` if it returned."""
    try:
        call()
    except ours as error:
        return type(error)
    return None
