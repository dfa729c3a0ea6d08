"""Chunks to rows of the tables, and back."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from connectors.access import Access, Readers
from connectors.document import Person, Span
from indexing.chunking.chunk import Chunk
from indexing.local import sql
from indexing.local.database import Connection, to_json_list
from indexing.text.normalization import is_storable

Row: TypeAlias = tuple[Any, ...]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def pack_labels(labels: Iterable[int]) -> bytes:
    return np.array(sorted(labels), "<i4").tobytes()


def unpack_labels(blob: bytes) -> list[int]:
    labels: list[int] = np.frombuffer(blob, "<i4").tolist()
    return labels


def to_microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // MICROSECOND


def to_datetime(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + microseconds * MICROSECOND


def to_chunk_row(row: int, ordinal: int, chunk: Chunk) -> Row:
    """Build a row of the table `chunks`; a text that is part of the embedded text is not stored twice."""
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


def to_details(chunk: Chunk) -> str:
    """Encode fields that all chunks of a document share."""
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
def parse_access(tokens: str) -> Access:
    """Decode a set of readers; cached, because many documents share one set."""
    return Access(frozenset(json.loads(tokens)))


def _document_fields(row: Row) -> dict[str, Any]:
    """Return the fields of Chunk that all chunks of a document share."""
    document_id, _, boost, created, updated, encoded, tokens = row
    details = json.loads(encoded)
    return {
        "document_id": document_id,
        "boost": boost,
        "created_at": to_datetime(created),
        "updated_at": to_datetime(updated),
        "title": details["title"],
        "source": details["source"],
        "media_type": details["media_type"],
        "tags": frozenset(details["tags"]),
        "sets": frozenset(details["sets"]),
        "owners": tuple(Person(name, email) for name, email in details["owners"]),
        "access": parse_access(tokens),
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
class FetchedChunk:
    row: int
    chunk: Chunk
    words: str
    """Its indexed words, joined by spaces."""


def _read_chunks(found: Iterable[Row]) -> Iterator[FetchedChunk]:
    shared: dict[int, dict[str, Any]] = {}
    for words, *row in found:
        stored, ordinal, document = row[:11], row[11], row[12:]
        if ordinal not in shared:
            shared[ordinal] = _document_fields(tuple(document))
        yield FetchedChunk(stored[0], _chunk(tuple(stored), document[1], shared[ordinal]), words)


def read_document_chunks(connection: Connection, ordinal: int) -> list[Chunk]:
    """Return all chunks of a document without a check of access, for writers only; `hidden` is not set."""
    found = connection.execute(sql.CHUNKS_OF_DOCUMENT, (ordinal,))
    return [fetched.chunk for fetched in _read_chunks(found)]


class VisibleChunks:
    """Reads chunks for one asker: a chunk that the asker may not read is not found.

    All chunks that leave the local index go through here, and each of its statements checks access.
    """

    def __init__(self, connection: Connection, readers: Readers) -> None:
        """`connection` is in a read transaction for as long as this is used."""
        self._connection = connection
        self._tokens = to_json_list(readers.tokens)

    def fetch(self, rows: Iterable[int]) -> dict[int, FetchedChunk]:
        """Return the visible ones of these rows."""
        found = self._select(sql.CHUNKS_TO_SHOW, rows=to_json_list(rows))
        return {fetched.row: fetched for fetched in _read_chunks(found)}

    def texts(self, rows: Sequence[int]) -> Mapping[int, str]:
        """Return the embedded texts of the visible ones of these rows."""
        return dict(self._select(sql.TEXTS_TO_CHECK, rows=to_json_list(rows)))

    def range(self, document_id: str, start: int, end: int) -> list[Chunk]:
        """Return the chunks `[start, end)` of a document, if it is visible."""
        if not is_storable(document_id):
            return []
        found = self._select(sql.CHUNKS_OF_RANGE, id=document_id, start=start, end=end)
        return [fetched.chunk for fetched in _read_chunks(found)]

    def _select(self, statement: str, **values: str | int) -> list[Row]:
        return self._connection.execute(statement, {"tokens": self._tokens, **values}).fetchall()
