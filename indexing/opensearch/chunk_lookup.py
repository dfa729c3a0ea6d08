"""Chunks by the document that they are of and their place in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from connectors.document import Readers
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.opensearch import query_bodies, visible_chunks
from indexing.opensearch.errors import SOON
from indexing.opensearch.naming import document_key
from indexing.opensearch.query_bodies import LARGEST, MOST_SPANS, Interval
from indexing.opensearch.record_mapping import Source
from indexing.opensearch.search_requests import Answer, Searches
from indexing.text.normalization import is_storable

Spans: TypeAlias = Mapping[str, Sequence[Interval]]
"""By key of a document."""
Places: TypeAlias = dict[tuple[str, int], Chunk]
"""By document id and position."""

PAGE = 4_000
"""Chunks of one search, where there are very many."""


def spans(ranges: Iterable[ChunkRange]) -> Spans:
    """What is asked for, each position once."""
    wanted: dict[str, list[Interval]] = {}
    for each in ranges:
        start, end = max(0, each.start), max(0, each.end)
        if start < end and is_storable(each.document_id):
            wanted.setdefault(document_key(each.document_id), []).append((start, end))
    return {key: merged(intervals) for key, intervals in wanted.items()}


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The same positions in as few intervals as can be, in their order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def few(wanted: Spans, readers: Readers, searches: Searches) -> Places | None:
    """All that is wanted, in one search; `None` where it is too much for one."""
    if sum(map(len, wanted.values())) > MOST_SPANS:
        return None
    count = sum(end - start for intervals in wanted.values() for start, end in intervals)
    # Old chunks that are about to be deleted may come too.
    size = min(2 * count + len(wanted), LARGEST)
    answer = searches.ask({0: query_bodies.parts(wanted, readers, size)})[0]
    return _places([answer]) if len(answer.hits) < size else None


def many(wanted: Spans, readers: Readers, searches: Searches) -> Places:
    """All that is wanted, by several searches, which must see one state of the index.

    Raises:
        TemporarilyUnavailableError: a part of the index did not answer.
    """
    known: dict[str, Source] = {}
    for answer in searches.ask(
        dict(enumerate(visible_chunks.documents(list(wanted), readers)))
    ).values():
        known |= visible_chunks.records(_whole(answer))
    found: Places = {}
    for page in _pages(wanted, known):
        versions = [known[key]["version"] for key in page]
        body = query_bodies.of_versions(query_bodies.parts(page, readers, LARGEST), versions)
        found |= _places([_whole(searches.ask({0: body})[0])])
    return found


def _pages(wanted: Spans, known: Mapping[str, Source]) -> Iterator[Spans]:
    """What is there of it, a little at a time."""
    page: dict[str, list[Interval]] = {}
    chunks = pieces = 0
    for key, (start, end) in _pieces(wanted, known):
        if chunks + end - start > PAGE or pieces == MOST_SPANS:
            yield page
            page, chunks, pieces = {}, 0, 0
        page.setdefault(key, []).append((start, end))
        chunks, pieces = chunks + end - start, pieces + 1
    if page:
        yield page


def _pieces(wanted: Spans, known: Mapping[str, Source]) -> Iterator[tuple[str, Interval]]:
    for key, intervals in wanted.items():
        count = known[key]["chunks"] if key in known else 0
        for start, end in intervals:
            for first in range(start, min(end, count), PAGE):
                yield key, (first, min(first + PAGE, end, count))


def _whole(answer: Answer) -> Answer:
    if answer.partial:
        raise TemporarilyUnavailableError(
            "A part of the index does not answer at the moment.", SOON
        )
    return answer


def _places(answers: Iterable[Answer]) -> Places:
    return {each.chunk.key: each.chunk for _, each in visible_chunks.shown(answers)}
