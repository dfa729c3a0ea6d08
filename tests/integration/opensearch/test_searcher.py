"""Searching on real servers while writers are half done, and what is too large for one search."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from opensearchpy import OpenSearch

from connectors.access import Access, Readers
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Filters, IndexQuery, IndexWriter, Replace
from indexing.opensearch import chunk_lookup
from indexing.opensearch.mapping import IndexLayout, Quantisation, Search, VectorSettings
from indexing.opensearch.open_index import open_index, open_writer
from indexing.opensearch.query_bodies import MAX_INTERVALS
from indexing.opensearch.record_mapping import Version, record_of
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.runtime.deadline import Deadline
from indexing.text import tokenizer
from tests.support.chunks import DIMENSION, IDENTITY, document, near, query, unit, vector
from tests.support.opensearch_records import chunk_records, document_of, prepared, put

PUBLIC = Readers.of()
COMING = Version("coming", 300)


def soon() -> Deadline:
    return Deadline.after(30)


@pytest.fixture
def writer(client: OpenSearch, prefix: str) -> IndexWriter:
    return open_writer(client, prefix, IDENTITY)


@pytest.fixture
def index(client: OpenSearch, prefix: str) -> Iterator[OpenSearchIndex]:
    with open_index(client, prefix, IDENTITY) as index:
        yield index


def _found(index: OpenSearchIndex, asked: IndexQuery, readers: Readers = PUBLIC) -> list[str]:
    (ranking,) = index.find([asked], readers, soon()).rankings
    return [hit.chunk.document_id for hit in ranking]


@contextmanager
def _points(client: OpenSearch, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collect the points in time that are opened within the block."""
    made: list[str] = []
    create = client.create_pit

    def noted(**arguments: Any) -> Any:
        answer = create(**arguments)
        made.append(answer["pit_id"])
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_pit", noted)
        yield made


ASKED = [
    query("valve gasket", size=5),
    query("", vector=vector("asked"), alpha=1.0, size=5),
    query("valve gasket", alpha=1.0, exact=("of steel",), size=5),
]


def _held(names: str) -> list[Replace]:
    return [
        document(name, "a valve of steel", vectors_of=near(vector("asked"), 0.5)[None])
        for name in names
    ]


@pytest.fixture
def half_written(client: OpenSearch, prefix: str, writer: IndexWriter) -> None:
    """Five documents, and a new version of the first that does not count yet."""
    writer.write(_held("abcde"))
    # 300 chunks that rank above all visible ones in each leg, and fill its candidates.
    near_asked = np.repeat(near(vector("asked"), 0.99)[None], COMING.chunks, axis=0)
    texts = ["valve of steel, gasket and valve"] * COMING.chunks
    item = prepared(document("a", *texts, generation=2, vectors_of=near_asked))
    put(client, prefix, chunk_records(record_of(item, COMING), item))


@pytest.mark.usefixtures("half_written")
def test_the_chunks_of_a_half_written_version_do_not_take_the_place_of_others(
    client: OpenSearch, index: OpenSearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _points(client, monkeypatch) as points:
        for asked in ASKED:
            assert sorted(_found(index, asked)) == list("abcde")
        assert len(points) == 3
        (part,) = index.chunks([ChunkRange("a", 0, 9)], PUBLIC, soon())
        assert [chunk.text for chunk in part] == ["a valve of steel"]
    stats = client.nodes.stats(metric="indices", index_metric="search")["nodes"]
    assert all(node["indices"]["search"]["point_in_time_current"] == 0 for node in stats.values())


@pytest.mark.usefixtures("half_written")
def test_a_point_in_time_that_is_lost_is_opened_anew(
    client: OpenSearch, index: OpenSearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = client.create_pit
    lost: list[str] = []

    def once_lost(**arguments: Any) -> Any:
        made = create(**arguments)
        if not lost:
            lost.append(made["pit_id"])
            client.delete_pit(body={"pit_id": lost})
        return made

    monkeypatch.setattr(client, "create_pit", once_lost)
    for asked in ASKED:
        assert sorted(_found(index, asked)) == list("abcde")
    monkeypatch.setattr(client, "create_pit", lambda **_: {"pit_id": lost[0]})
    with pytest.raises(TemporarilyUnavailableError):
        _found(index, ASKED[0])


def test_where_nothing_is_half_written_no_point_in_time_is_opened(
    client: OpenSearch,
    writer: IndexWriter,
    index: OpenSearchIndex,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer.write(_held("abcde"))
    with _points(client, monkeypatch) as points:
        assert all(sorted(_found(index, asked)) == list("abcde") for asked in ASKED)
        index.chunks([ChunkRange("a", 0, 2**80)], PUBLIC, soon())
    assert points == []


@pytest.mark.parametrize("asked", ASKED, ids=["words", "vector", "exact"])
def test_the_record_of_a_document_decides_though_its_chunks_say_otherwise(
    client: OpenSearch, prefix: str, writer: IndexWriter, index: OpenSearchIndex, asked: IndexQuery
) -> None:
    # As during an amendment: more readers find the chunk than may see its document.
    writer.write(_held("bc"))
    item = prepared(_held("a")[0])
    labelled = record_of(item, Version("v", 1))
    closed = replace(labelled, access=Access.to(["group:finance"]), sets=frozenset({"new"}))
    wide = [(n, s | {"sets": ["new", "old"]}) for n, s in chunk_records(labelled, item)]
    put(client, prefix, [*wide, document_of(closed)])
    assert sorted(_found(index, asked)) == ["b", "c"]
    finance = Readers.of("group:finance")
    assert sorted(_found(index, asked, finance)) == ["a", "b", "c"]
    for name, found in (("new", ["a"]), ("old", [])):
        filtered = replace(asked, filters=Filters(sets=frozenset({name})))
        assert _found(index, filtered, finance) == found


def test_very_many_words_and_phrases_are_no_error(
    writer: IndexWriter, index: OpenSearchIndex
) -> None:
    writer.write([document("a", "w17x and others"), document("b", "w4999x only")])
    terms = tuple(f"{'日本語の長い引用文' * 20}{n}" for n in range(tokenizer.MOST_EXACT_TERMS))
    everything = Filters(
        sources=frozenset({"folder"}),
        media_types=frozenset({"text/plain"}),
        document_ids=frozenset({"a", "b", *(f"{n}" for n in range(70_000))}),
    )
    text = " ".join(f"w{n}x" for n in range(5_000))
    asked = query(text, exact=terms, filters=everything)
    assert _found(index, asked) == ["a"]


def test_more_hits_than_one_search_gives(writer: IndexWriter, index: OpenSearchIndex) -> None:
    texts = [f"page {n}" for n in range(10_050)]
    writer.write([document("long", *texts), document("short", "one", "two")])
    ranges = [
        ChunkRange("long", 0, 10**9),
        ChunkRange("short", 1, 10**9),
        *(ChunkRange("long", 3 * n, 3 * n + 1) for n in range(450)),
    ]
    whole, short, *each = index.chunks(ranges, PUBLIC, soon())
    assert [chunk.text for chunk in whole] == texts
    assert [chunk.text for chunk in short] == ["two"]
    assert [chunk.text for part in each for chunk in part] == [f"page {3 * n}" for n in range(450)]
    apart = index.chunks(ranges[2:], PUBLIC, soon())
    assert apart == each
    assert sum(map(len, chunk_lookup.to_intervals(ranges[2:]).values())) > MAX_INTERVALS


def _corpus() -> list[Replace]:
    rows = unit(np.random.default_rng(1).standard_normal((600, DIMENSION)))
    return [
        document(f"{n:03}", "text", vectors_of=rows[n][None], readers=[f"group:{n % 3}"])
        for n in range(600)
    ]


@pytest.mark.parametrize("quantisation", ["float", "scalar", "byte"])
@pytest.mark.parametrize("search", ["graph", "exact"])
def test_cosines_are_those_of_the_vectors(
    client: OpenSearch, prefix: str, quantisation: Quantisation, search: Search
) -> None:
    layout = IndexLayout(vectors=VectorSettings(quantisation=quantisation, search=search))
    changes = _corpus()
    open_writer(client, prefix, IDENTITY, layout).write(changes)
    index = open_index(client, prefix, IDENTITY, layout)
    asked = vector("asked")
    true = {each.document_id: float(each.vectors[0] @ asked) for each in changes}
    mine = sorted((name for name in true if int(name) % 3 == 1), key=true.__getitem__)
    readers = Readers.of("group:1")
    by_vector = query("", vector=asked, alpha=1.0, size=10)
    by_words = query("text", vector=asked, alpha=0.0, size=300)
    best, all_of_them = index.find([by_vector, by_words], readers, soon()).rankings
    tolerance = {"float": 1e-5, "scalar": 0.01, "byte": 0.02}[quantisation]
    cosines = {hit.chunk.document_id: hit.evidence.cosine for hit in [*best, *all_of_them]}
    assert cosines == pytest.approx({name: true[name] for name in mine}, abs=tolerance)
    found = [hit.chunk.document_id for hit in best]
    assert len(set(found) & set(mine[-10:])) >= (10 if quantisation == "float" else 8)


def test_words_score_alike_on_every_version(writer: IndexWriter, index: OpenSearchIndex) -> None:
    writer.write([document(f"{n}", "valve") for n in range(3)])
    (ranking,) = index.find([query("valve")], PUBLIC, soon()).rankings
    # All 3 of 3 chunks contain it: idf = ln(1 + 0.5 / 3.5); of average length and once: 2.2 / (1 + 1.2).
    assert [hit.evidence.bm25 for hit in ranking] == pytest.approx([np.log(8 / 7)] * 3, rel=1e-5)
