"""Which chunks of a response are visible, and how positions are divided into pages."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from connectors.access import Readers
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Filters
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch import visible_chunks
from indexing.opensearch.naming import document_key
from indexing.opensearch.query_bodies import MAX_HITS, MAX_INTERVALS
from indexing.opensearch.record_mapping import (
    DocumentRecord,
    Source,
    Version,
    chunk_source,
    document_source,
    record_of,
)
from indexing.opensearch.search_requests import SearchResponse
from tests.support.chunks import DIMENSION, chunk, document


def _prepared(name: str, **fields: Any) -> PreparedReplace:
    ((item,),) = prepare_batches(
        [document(name, "one", "two", **fields)], DIMENSION, BatchLimits(1, 9)
    )
    assert isinstance(item, PreparedReplace)
    return item


def _response(*sources: dict[str, Any]) -> SearchResponse:
    return SearchResponse(
        [{"_id": source.get("chunk", source["key"]), "_source": source} for source in sources],
        0,
        partial=False,
        facets={},
    )


def test_a_chunk_counts_if_its_document_came_and_names_its_version() -> None:
    item = _prepared("a")
    old, new = record_of(item, Version("old", 2)), record_of(item, Version("new", 2))
    other = record_of(_prepared("b"), Version("new", 2))
    chunks = [chunk_source(record, item, 0) for record in (old, new)]
    shown = dict(visible_chunks.read_visible([_response(*chunks, document_source(new))]))
    assert list(shown) == [f"{new.key}.new.0"]
    assert dict(visible_chunks.read_visible([_response(*chunks)])) == {}
    assert dict(visible_chunks.read_visible([_response(*chunks, document_source(other))])) == {}


def test_a_chunk_has_the_present_properties_of_its_document() -> None:
    item = _prepared("a", boost=1.0)
    record = record_of(item, Version("v", 2))
    amended = record_of(_prepared("a", boost=3.0, sets=frozenset({"hr"})), Version("v", 2))
    response = _response(document_source(amended), chunk_source(record, item, 1))
    ((_, shown),) = visible_chunks.read_visible([response])
    assert shown.chunk == chunk("a", 1, "two", boost=3.0, sets=frozenset({"hr"}))
    assert shown.words == "two"


def test_a_filter_of_sets_holds_for_what_the_document_says() -> None:
    record = record_of(_prepared("a", sets=frozenset({"hr", "it"})), Version("v", 2))
    known, name = {record.key: document_source(record)}, f"{record.key}.v.0"
    assert visible_chunks.is_visible(name, known, Filters())
    assert visible_chunks.is_visible(name, known, Filters(sets=frozenset({"it", "x"})))
    assert not visible_chunks.is_visible(name, known, Filters(sets=frozenset({"x"})))
    assert not visible_chunks.is_visible(name, known, Filters(sets=frozenset()))
    assert not visible_chunks.is_visible(f"{record.key}.w.0", known, Filters())
    assert not visible_chunks.is_visible("other.v.0", known, Filters())


def test_no_document_is_divided_between_searches() -> None:
    ids = [f"key{n % 7}.v.{n}" for n in range(2 * MAX_HITS)]
    bodies = visible_chunks.chunk_queries(ids, Readers.of())
    asked = [body["query"]["bool"]["filter"][0]["bool"]["should"] for body in bodies]
    chunks = [part[0]["ids"]["values"] for part in asked]
    keys = [{each.partition(".")[0] for each in group} for group in chunks]
    assert sorted(each for group in chunks for each in group) == sorted(ids)
    assert sum(map(len, keys)) == 7
    assert all(body["size"] <= MAX_HITS for body in bodies)
    assert visible_chunks.chunk_queries([], Readers.of()) == []


INTERVALS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60)).filter(lambda i: i[0] < i[1])
)


def _positions(intervals: list[tuple[int, int]]) -> set[int]:
    return {position for start, end in intervals for position in range(start, end)}


@given(INTERVALS)
def test_merged_intervals_hold_the_same_positions_and_do_not_touch(
    intervals: list[tuple[int, int]],
) -> None:
    found = visible_chunks.merge_intervals(intervals)
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
    assert visible_chunks.to_intervals(ranges) == {document_key("a"): [(0, 1), (2, 6)]}


def _known(key: str, chunks: int) -> dict[str, Source]:
    version = Version("v", chunks)
    record = DocumentRecord(
        id="a", state="document", generation=1, content_hash="h", version=version
    )
    return {key: document_source(record)}


def test_a_page_holds_no_more_chunks_than_it_may() -> None:
    wanted = {"a": [(0, 10**9)], "unknown": [(0, 7)]}
    pages = list(visible_chunks._pages(wanted, _known("a", 2 * visible_chunks.PAGE_CHUNKS + 5)))
    page = visible_chunks.PAGE_CHUNKS
    assert pages == [
        {"a": [(0, page)]},
        {"a": [(page, 2 * page)]},
        {"a": [(2 * page, 2 * page + 5)]},
    ]


def test_a_page_holds_no_more_ranges_than_it_may() -> None:
    apart = [(2 * n, 2 * n + 1) for n in range(MAX_INTERVALS + 3)]
    pages = list(visible_chunks._pages({"a": apart}, _known("a", 10_000)))
    assert [len(each["a"]) for each in pages] == [MAX_INTERVALS, 3]
    assert [*pages[0]["a"], *pages[1]["a"]] == apart
