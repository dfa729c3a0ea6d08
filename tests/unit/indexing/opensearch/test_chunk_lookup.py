"""How chunks are looked up: no document is divided, and positions are divided into pages."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from connectors.access import Readers
from indexing.chunking.chunk import ChunkRange
from indexing.opensearch import chunk_lookup
from indexing.opensearch.naming import document_key
from indexing.opensearch.query_bodies import MAX_HITS, MAX_INTERVALS
from indexing.opensearch.record_mapping import (
    DocumentRecord,
    Source,
    Version,
    document_source,
)


def test_no_document_is_divided_between_searches() -> None:
    ids = [f"key{n % 7}.v.{n}" for n in range(2 * MAX_HITS)]
    bodies = chunk_lookup.chunk_queries(ids, Readers.of())
    asked = [body["query"]["bool"]["filter"][0]["bool"]["should"] for body in bodies]
    chunks = [part[0]["ids"]["values"] for part in asked]
    keys = [{each.partition(".")[0] for each in group} for group in chunks]
    assert sorted(each for group in chunks for each in group) == sorted(ids)
    assert sum(map(len, keys)) == 7
    assert all(body["size"] <= MAX_HITS for body in bodies)
    assert chunk_lookup.chunk_queries([], Readers.of()) == []


INTERVALS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60)).filter(lambda i: i[0] < i[1])
)


def _positions(intervals: list[tuple[int, int]]) -> set[int]:
    return {position for start, end in intervals for position in range(start, end)}


@given(INTERVALS)
def test_merged_intervals_hold_the_same_positions_and_do_not_touch(
    intervals: list[tuple[int, int]],
) -> None:
    found = chunk_lookup.merge_intervals(intervals)
    assert _positions(found) == _positions(intervals)
    assert all(one[1] < other[0] for one, other in pairwise(found))


def test_positions_that_cannot_exist_are_not_searched() -> None:
    ranges = [
        ChunkRange("a", 2, 4),
        ChunkRange("a", 3, 6),
        ChunkRange("a", -5, 1),
        ChunkRange("b", 4, 4),
        ChunkRange("c", -3, -1),
        ChunkRange("d\0", 0, 9),
        ChunkRange("e\ud800", 0, 9),
    ]
    assert chunk_lookup.to_intervals(ranges) == {document_key("a"): [(0, 1), (2, 6)]}


def _known(key: str, chunks: int) -> dict[str, Source]:
    version = Version("v", chunks)
    record = DocumentRecord(
        id="a", state="document", generation=1, content_hash="h", version=version
    )
    return {key: document_source(record)}


def test_a_page_holds_no_more_chunks_than_it_may() -> None:
    wanted = {"a": [(0, 10**9)], "unknown": [(0, 7)]}
    pages = list(chunk_lookup._pages(wanted, _known("a", 2 * chunk_lookup.PAGE_CHUNKS + 5)))
    page = chunk_lookup.PAGE_CHUNKS
    assert pages == [
        {"a": [(0, page)]},
        {"a": [(page, 2 * page)]},
        {"a": [(2 * page, 2 * page + 5)]},
    ]


def test_a_page_holds_no_more_ranges_than_it_may() -> None:
    apart = [(2 * n, 2 * n + 1) for n in range(MAX_INTERVALS + 3)]
    pages = list(chunk_lookup._pages({"a": apart}, _known("a", 10_000)))
    assert [len(each["a"]) for each in pages] == [MAX_INTERVALS, 3]
    assert [*pages[0]["a"], *pages[1]["a"]] == apart
