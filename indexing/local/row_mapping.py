"""Chunks to rows of tables, and back."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

from connectors.access import Access, Readers
from connectors.document import Person, Span
from indexing.chunking.chunk import Chunk
from indexing.local import sql
from indexing.local.database import Connection, to_json_list
from indexing.text.normalization import is_storable

Row: TypeAlias = tuple[Any, ...]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // MICROSECOND


def to_moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + microseconds * MICROSECOND


def chunk_row(row: int, ordinal: int, chunk: Chunk) -> Row:
    """Of the table `chunks`. A text that stands in the embedded text is not kept twice."""
    start = chunk.embedded_text.find(chunk.text)
    return (
        row,
        ordinal,
        chunk.section,
        chunk.span.start,
        chunk.span.end,
        chunk.page,
        chunk.link,
        json.dumps(chunk.heading_path) if chunk.heading_path else None,
        chunk.embedded_text,
        start if start >= 0 else None,
        start + len(chunk.text) if start >= 0 else None,
        chunk.text if start < 0 else None,
    )


def details(chunk: Chunk) -> str:
    """What all chunks of a document say alike."""
    return json.dumps(
        {
            "title": chunk.title,
            "source": chunk.source,
            "media_type": chunk.media_type,
            "tags": sorted(chunk.tags),
            "sets": sorted(chunk.sets),
            "owners": [[owner.name, owner.email] for owner in chunk.owners],
        }
    )


@lru_cache(maxsize=4_096)
def access_of(tokens: str) -> Access:
    """Many documents share one set of readers, and many results one document."""
    return Access(frozenset(json.loads(tokens)))


def _of_document(row: Row) -> dict[str, Any]:
    """Fields of Chunk that all chunks of a document share."""
    document_id, _, boost, created, updated, kept, tokens = row
    said = json.loads(kept)
    return {
        "document_id": document_id,
        "boost": boost,
        "created_at": to_moment(created),
        "updated_at": to_moment(updated),
        "title": said["title"],
        "source": said["source"],
        "media_type": said["media_type"],
        "tags": frozenset(said["tags"]),
        "sets": frozenset(said["sets"]),
        "owners": tuple(Person(name, email) for name, email in said["owners"]),
        "access": access_of(tokens),
    }


def _chunk(row: Row, first_row: int, shared: Mapping[str, Any]) -> Chunk:
    number, section, start, end, page, link, headings, embedded, text_start, text_end, text = row
    return Chunk(
        position=number - first_row,
        text=embedded[text_start:text_end] if text is None else text,
        embedded_text=embedded,
        section=section,
        span=Span(start, end),
        link=link,
        page=page,
        heading_path=tuple(json.loads(headings)) if headings else (),
        **shared,
    )


@dataclass(frozen=True, slots=True)
class Fetched:
    row: int
    chunk: Chunk
    words: str
    """Its indexed words with a space between them."""


def _fetched(found: Iterable[Row]) -> Iterator[Fetched]:
    shared: dict[int, dict[str, Any]] = {}
    for words, *row in found:
        stored, ordinal, document = row[:11], row[11], row[12:]
        if ordinal not in shared:
            shared[ordinal] = _of_document(tuple(document))
        yield Fetched(stored[0], _chunk(tuple(stored), document[1], shared[ordinal]), words)


def whole(connection: Connection, ordinal: int) -> list[Chunk]:
    """All chunks of a document, whoever may read it: for writers. None of them is `hidden`."""
    found = connection.execute(sql.CHUNKS_OF_DOCUMENT, (ordinal,))
    return [fetched.chunk for fetched in _fetched(found)]


class Door:
    """Where chunks are read for an asker: whatever the asker may not see is not there."""

    def __init__(self, connection: Connection, readers: Readers) -> None:
        """`connection` stands in one snapshot for as long as the door is used."""
        self._connection = connection
        self._tokens = to_json_list(readers.tokens)

    def fetch(self, rows: Iterable[int]) -> dict[int, Fetched]:
        """By row."""
        found = self._ask(sql.CHUNKS_TO_SHOW, rows=to_json_list(rows))
        return {fetched.row: fetched for fetched in _fetched(found)}

    def texts(self, rows: Sequence[int]) -> Mapping[int, str]:
        """The embedded text of each row."""
        return dict(self._ask(sql.TEXTS_TO_CHECK, rows=to_json_list(rows)))

    def part(self, document_id: str, start: int, end: int) -> list[Chunk]:
        """Chunks `[start, end)` of a document."""
        if not is_storable(document_id):
            return []
        found = self._ask(sql.CHUNKS_OF_RANGE, id=document_id, start=start, end=end)
        return [fetched.chunk for fetched in _fetched(found)]

    def _ask(self, statement: str, **values: str | int) -> list[Row]:
        return self._connection.execute(statement, {"tokens": self._tokens, **values}).fetchall()
