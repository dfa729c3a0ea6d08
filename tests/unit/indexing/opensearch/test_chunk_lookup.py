"""Positions that are asked for, each once and a little at a time."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from indexing.chunking.chunk import ChunkRange
from indexing.opensearch import chunk_lookup
from indexing.opensearch.naming import document_key
from indexing.opensearch.query_bodies import MOST_SPANS
from indexing.opensearch.record_mapping import DocumentRecord, Source, Version, document_source

INTERVALS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60)).filter(lambda i: i[0] < i[1])
)


def _positions(intervals: list[tuple[int, int]]) -> set[int]:
    return {position for start, end in intervals for position in range(start, end)}


@given(INTERVALS)
def test_merged_intervals_hold_the_same_positions_and_do_not_touch(
    intervals: list[tuple[int, int]],
) -> None:
    found = chunk_lookup.merged(intervals)
    assert _positions(found) == _positions(intervals)
    assert all(one[1] < other[0] for one, other in pairwise(found))


def test_what_is_nowhere_is_not_asked_for() -> None:
    ranges = [
        ChunkRange("a", 2, 4),
        ChunkRange("a", 3, 6),
        ChunkRange("a", -5, 1),
        ChunkRange("b", 4, 4),
        ChunkRange("c", -3, -1),
        ChunkRange("d\0", 0, 9),
        ChunkRange("e\ud800", 0, 9),
    ]
    assert chunk_lookup.spans(ranges) == {document_key("a"): [(0, 1), (2, 6)]}


def _known(key: str, chunks: int) -> dict[str, Source]:
    version = Version("v", chunks)
    record = DocumentRecord(
        id="a", state="document", generation=1, content_hash="h", version=version
    )
    return {key: document_source(record)}


def test_a_page_holds_no_more_chunks_than_it_may() -> None:
    wanted = {"a": [(0, 10**9)], "unknown": [(0, 7)]}
    pages = list(chunk_lookup._pages(wanted, _known("a", 2 * chunk_lookup.PAGE + 5)))
    page = chunk_lookup.PAGE
    assert pages == [
        {"a": [(0, page)]},
        {"a": [(page, 2 * page)]},
        {"a": [(2 * page, 2 * page + 5)]},
    ]


def test_a_page_holds_no_more_ranges_than_it_may() -> None:
    apart = [(2 * n, 2 * n + 1) for n in range(MOST_SPANS + 3)]
    pages = list(chunk_lookup._pages({"a": apart}, _known("a", 10_000)))
    assert [len(each["a"]) for each in pages] == [MOST_SPANS, 3]
    assert [*pages[0]["a"], *pages[1]["a"]] == apart
