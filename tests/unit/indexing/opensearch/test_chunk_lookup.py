"""How chunks are looked up: no document is divided, and positions are divided into pages."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.access import Readers
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import ChunkRange
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch import chunk_lookup, query_bodies
from indexing.opensearch.errors import RETRY_SOON
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
from indexing.opensearch.search_requests import MultiSearch, SearchResponse
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION, document

ANN = Readers.of("user:ann@example.com")


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


def test_a_page_counts_from_nothing_and_by_the_length_of_its_ranges() -> None:
    page = chunk_lookup.PAGE_CHUNKS
    wanted = {"a": [(0, page), (page, page + 2), (page + 4, 2 * page + 2)]}
    assert list(chunk_lookup._pages(wanted, _known("a", 3 * page))) == [
        {"a": [(0, page)]},
        {"a": [(page, page + 2), (page + 4, 2 * page + 2)]},
    ]
    apart = [(2 * n, 2 * n + 1) for n in range(2 * MAX_INTERVALS)]
    halves = list(chunk_lookup._pages({"a": apart}, _known("a", 10_000)))
    assert halves == [{"a": apart[:MAX_INTERVALS]}, {"a": apart[MAX_INTERVALS:]}]


class Searches:
    """Answers searches with what a test gives, and keeps what was asked."""

    def __init__(self, *answers: SearchResponse) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    def run(self, bodies: Mapping[Any, Any]) -> dict[Any, SearchResponse]:
        self.asked += bodies.values()
        return {key: self.answers.pop(0) for key in bodies}


def _stored(name: str, texts: int) -> list[Source]:
    """Return the record of a document and its chunks, as the cluster holds them."""
    ((item,),) = prepare_batches(
        [document(name, *(f"text {n}" for n in range(texts)))],
        DIMENSION,
        BatchLimits(1, texts),
        BY_LANGUAGE,
    )
    assert isinstance(item, PreparedReplace)
    record = record_of(item, Version("v", texts))
    return [document_source(record), *(chunk_source(record, item, n) for n in range(texts))]


def _response(*sources: Source, partial: bool = False) -> SearchResponse:
    hits = [{"_id": each.get("chunk", each["key"]), "_source": each} for each in sources]
    return SearchResponse(hits, 0, partial=partial, facets={})


def _as_search(searches: Searches) -> MultiSearch:
    return cast("MultiSearch", searches)


def test_a_document_that_does_not_fit_begins_another_search() -> None:
    def ids(key: str, count: int) -> list[str]:
        return [f"{key}.v.{n}" for n in range(count)]

    def sizes(*counts: int) -> list[int]:
        asked = [each for n, count in enumerate(counts) for each in ids(f"k{n}", count)]
        return [body["size"] for body in chunk_lookup.chunk_queries(asked, ANN)]

    assert sizes(3, 4) == [9]
    assert sizes(MAX_HITS // 2, MAX_HITS // 2 - 2) == [MAX_HITS]
    assert sizes(MAX_HITS // 2, MAX_HITS // 2 - 1) == [MAX_HITS // 2 + 1, MAX_HITS // 2]
    bodies = chunk_lookup.chunk_queries(["k.v.1", "l.v.0", "k.v.0"], ANN)
    expected = query_bodies.chunks_and_records_query(["k.v.1", "k.v.0", "l.v.0"], ["k", "l"], ANN)
    assert bodies == [expected]


def test_records_are_asked_in_as_many_searches_as_it_takes() -> None:
    keys = [f"k{n}" for n in range(MAX_HITS + 1)]
    assert chunk_lookup.record_queries(keys, ANN) == [
        query_bodies.records_query(keys[:MAX_HITS], ANN),
        query_bodies.records_query(keys[MAX_HITS:], ANN),
    ]


def test_few_chunks_are_read_by_one_search_with_room_for_old_ones() -> None:
    record, *chunks = _stored("a", 3)
    searches = Searches(_response(record, *chunks))
    wanted = {record["key"]: [(0, 1), (1, 3)], "other": [(5, 6)]}
    found = chunk_lookup.find_few(wanted, ANN, _as_search(searches))
    assert found is not None
    assert {place: each.text for place, each in found.items()} == {
        ("a", 0): "text 0",
        ("a", 1): "text 1",
        ("a", 2): "text 2",
    }
    # Four chunks, as many of an old version, and two records.
    assert searches.asked == [query_bodies.positions_query(wanted, ANN, 10)]


def test_without_the_record_that_shows_the_right_to_read_no_chunk_is_found() -> None:
    record, *chunks = _stored("a", 3)
    searches = Searches(_response(*chunks))
    assert chunk_lookup.find_few({record["key"]: [(0, 3)]}, ANN, _as_search(searches)) == {}


def test_too_much_for_one_search_is_not_cut_off() -> None:
    record, *chunks = _stored("a", 3)
    full = Searches(_response(record, *chunks[:2]))
    assert chunk_lookup.find_few({record["key"]: [(0, 1)]}, ANN, _as_search(full)) is None
    nearly = Searches(_response(record, chunks[0]))
    assert chunk_lookup.find_few({record["key"]: [(0, 1)]}, ANN, _as_search(nearly)) is not None
    apart = [(2 * n, 2 * n + 1) for n in range(MAX_INTERVALS)]
    most = Searches(_response())
    assert chunk_lookup.find_few({"a": apart}, ANN, _as_search(most)) == {}
    none = Searches()
    more = {"a": apart, "b": [(0, 1)]}
    assert chunk_lookup.find_few(more, ANN, _as_search(none)) is None
    assert none.asked == []
    wide = Searches(_response())
    chunk_lookup.find_few({"a": [(0, 10**9)]}, ANN, _as_search(wide))
    assert wide.asked[0]["size"] == MAX_HITS


def test_many_chunks_are_read_in_the_versions_of_their_records() -> None:
    record, *chunks = _stored("a", 3)
    other, *others = _stored("b", 2)
    searches = Searches(_response(record, other), _response(record, *chunks, other, *others))
    wanted = {record["key"]: [(0, 9)], other["key"]: [(1, 2)], "unknown": [(0, 1)]}
    found = chunk_lookup.find_many(wanted, ANN, _as_search(searches))
    assert set(found) == {("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)}
    page = {record["key"]: [(0, 3)], other["key"]: [(1, 2)]}
    assert searches.asked == [
        *chunk_lookup.record_queries(list(wanted), ANN),
        query_bodies.restrict_to_versions(
            query_bodies.positions_query(page, ANN, MAX_HITS), ["v", "v"]
        ),
    ]


def test_all_pages_of_many_chunks_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_lookup, "PAGE_CHUNKS", 2)
    record, *chunks = _stored("a", 3)
    searches = Searches(
        _response(record), _response(record, *chunks[:2]), _response(record, *chunks[2:])
    )
    found = chunk_lookup.find_many({record["key"]: [(0, 3)]}, ANN, _as_search(searches))
    assert list(found) == [("a", 0), ("a", 1), ("a", 2)]


def test_the_records_of_several_searches_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_lookup, "MAX_HITS", 1)
    record, *chunks = _stored("a", 1)
    other, *others = _stored("b", 1)
    searches = Searches(
        _response(record), _response(other), _response(record, *chunks, other, *others)
    )
    wanted = {record["key"]: [(0, 1)], other["key"]: [(0, 1)]}
    found = chunk_lookup.find_many(wanted, ANN, _as_search(searches))
    assert set(found) == {("a", 0), ("b", 0)}


@pytest.mark.parametrize("which", [0, 1])
def test_a_part_of_the_index_that_does_not_answer_is_an_error(which: int) -> None:
    record, *chunks = _stored("a", 1)
    answers = [_response(record), _response(record, *chunks)]
    answers[which] = replace(answers[which], partial=True)
    with pytest.raises(
        TemporarilyUnavailableError, match=r"^A part of the index does not answer\.$"
    ) as away:
        chunk_lookup.find_many({record["key"]: [(0, 1)]}, ANN, _as_search(Searches(*answers)))
    assert away.value.retry_after == RETRY_SOON
