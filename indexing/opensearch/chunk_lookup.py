"""Looks chunks up by id or by position, each with the record that shows whether the asker may see it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from connectors.access import Readers
from connectors.batched import batched
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.opensearch import query_bodies
from indexing.opensearch.access_filter import read_records, read_visible
from indexing.opensearch.errors import RETRY_SOON
from indexing.opensearch.mapping import Body
from indexing.opensearch.naming import document_key, key_of
from indexing.opensearch.query_bodies import MAX_HITS, MAX_INTERVALS, Interval
from indexing.opensearch.record_mapping import Source
from indexing.opensearch.search_requests import MultiSearch, SearchResponse
from indexing.text.normalization import is_storable

Intervals: TypeAlias = Mapping[str, Sequence[Interval]]
"""Positions of chunks, by document key."""
ChunksByPosition: TypeAlias = dict[tuple[str, int], Chunk]
"""By document id and position."""

PAGE_CHUNKS = 4_000
"""Chunks of one search, where very many are wanted."""


def record_queries(keys: Sequence[str], readers: Readers) -> list[Body]:
    return [query_bodies.records_query(some, readers) for some in batched(keys, MAX_HITS)]


def chunk_queries(ids: Iterable[str], readers: Readers) -> list[Body]:
    """Build queries for these chunks with their records; no document is split between two queries."""
    found: list[Body] = []
    group: list[str] = []
    keys: list[str] = []
    for key, own in _group_by_key(ids).items():
        if len(group) + len(own) + len(keys) >= MAX_HITS:
            found.append(query_bodies.chunks_and_records_query(group, keys, readers))
            group, keys = [], []
        group += own
        keys.append(key)
    if group:
        found.append(query_bodies.chunks_and_records_query(group, keys, readers))
    return found


def _group_by_key(ids: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in ids:
        found.setdefault(key_of(each), []).append(each)
    return found


def to_intervals(ranges: Iterable[ChunkRange]) -> Intervals:
    """Convert ranges to intervals that contain each position once."""
    wanted: dict[str, list[Interval]] = {}
    for each in ranges:
        start, end = max(0, each.start), max(0, each.end)
        if start < end and is_storable(each.document_id):
            wanted.setdefault(document_key(each.document_id), []).append((start, end))
    return {key: merge_intervals(intervals) for key, intervals in wanted.items()}


def merge_intervals(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the same positions in the fewest intervals, in order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def find_few(wanted: Intervals, readers: Readers, search: MultiSearch) -> ChunksByPosition | None:
    """Read all wanted chunks by one search; `None` if they are too many for one."""
    if sum(map(len, wanted.values())) > MAX_INTERVALS:
        return None
    count = sum(end - start for intervals in wanted.values() for start, end in intervals)
    # Old chunks that are about to be deleted may be returned as well.
    size = min(2 * count + len(wanted), MAX_HITS)
    response = search.run({0: query_bodies.positions_query(wanted, readers, size)})[0]
    return _by_position([response]) if len(response.hits) < size else None


def find_many(wanted: Intervals, readers: Readers, search: MultiSearch) -> ChunksByPosition:
    """Read all wanted chunks by several searches, which must see one state of the index.

    Raises:
        TemporarilyUnavailableError: a part of the index did not answer.
    """
    records: dict[str, Source] = {}
    queries = dict(enumerate(record_queries(list(wanted), readers)))
    for response in search.run(queries).values():
        records |= read_records(_check_complete(response))
    found: ChunksByPosition = {}
    for page in _pages(wanted, records):
        versions = [records[key]["version"] for key in page]
        query = query_bodies.positions_query(page, readers, MAX_HITS)
        body = query_bodies.restrict_to_versions(query, versions)
        found |= _by_position([_check_complete(search.run({0: body})[0])])
    return found


def _pages(wanted: Intervals, records: Mapping[str, Source]) -> Iterator[Intervals]:
    """Divide the wanted positions that exist into pages of bounded size."""
    page: dict[str, list[Interval]] = {}
    chunks = pieces = 0
    for key, (start, end) in _pieces(wanted, records):
        if chunks + end - start > PAGE_CHUNKS or pieces == MAX_INTERVALS:
            yield page
            page, chunks, pieces = {}, 0, 0
        page.setdefault(key, []).append((start, end))
        chunks, pieces = chunks + end - start, pieces + 1
    if page:
        yield page


def _pieces(wanted: Intervals, records: Mapping[str, Source]) -> Iterator[tuple[str, Interval]]:
    for key, intervals in wanted.items():
        count = records[key]["chunks"] if key in records else 0
        for start, end in intervals:
            for first in range(start, min(end, count), PAGE_CHUNKS):
                yield key, (first, min(first + PAGE_CHUNKS, end, count))


def _check_complete(response: SearchResponse) -> SearchResponse:
    if response.partial:
        raise TemporarilyUnavailableError("A part of the index does not answer.", RETRY_SOON)
    return response


def _by_position(responses: Iterable[SearchResponse]) -> ChunksByPosition:
    return {each.chunk.key: each.chunk for _, each in read_visible(responses)}
