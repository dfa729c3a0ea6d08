"""Chunks to rows of tables, and back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from connectors.document import Access, Readers, Span
from indexing.chunk import Chunk
from indexing.embedded import sql
from indexing.embedded.database import Connection

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
            "owners": chunk.owners,
        }
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """A document as its chunks tell of it."""

    id: str
    first_row: int
    boost: float
    created: datetime | None
    updated: datetime | None
    title: str
    source: str
    media_type: str
    tags: frozenset[str]
    sets: frozenset[str]
    owners: tuple[str, ...]
    access: Access


def _shown(row: Row) -> tuple[int, Shown]:
    ordinal, document_id, first_row, boost, created, updated, kept, tokens = row
    said = json.loads(kept)
    return ordinal, Shown(
        document_id,
        first_row,
        boost,
        to_moment(created),
        to_moment(updated),
        said["title"],
        said["source"],
        said["media_type"],
        frozenset(said["tags"]),
        frozenset(said["sets"]),
        tuple(said["owners"]),
        Access(frozenset(json.loads(tokens))),
    )


def _chunk(row: Row, document: Shown) -> Chunk:
    (
        number,
        _,
        section,
        start,
        end,
        page,
        link,
        headings,
        embedded,
        text_start,
        text_end,
        text,
        _,
    ) = row
    return Chunk(
        document_id=document.id,
        position=number - document.first_row,
        text=embedded[text_start:text_end] if text is None else text,
        embedded_text=embedded,
        section=section,
        span=Span(start, end),
        title=document.title,
        link=link,
        source=document.source,
        media_type=document.media_type,
        access=document.access,
        page=page,
        heading_path=tuple(json.loads(headings)) if headings else (),
        tags=document.tags,
        sets=document.sets,
        owners=document.owners,
        boost=document.boost,
        created_at=document.created,
        updated_at=document.updated,
    )


@dataclass(frozen=True, slots=True)
class Fetched:
    chunk: Chunk
    words: str
    """Its indexed words with a space between them."""


class Door:
    """Where chunks are read for an asker: whatever the asker may not see is not there."""

    def __init__(self, connection: Connection, readers: Readers) -> None:
        """`connection` stands in one snapshot for as long as the door is used."""
        self._connection = connection
        self._tokens = json.dumps(sorted(readers.tokens))

    def fetch(self, rows: Iterable[int]) -> dict[int, Fetched]:
        found = self._ask(sql.CHUNKS_TO_SHOW, rows=json.dumps(sorted(rows)))
        documents = self._documents({row[1] for row in found})
        return {row[0]: Fetched(_chunk(row, documents[row[1]]), row[-1]) for row in found}

    def texts(self, rows: Sequence[int]) -> Mapping[int, str]:
        """The embedded text of each row."""
        return dict(self._ask(sql.TEXTS_TO_CHECK, rows=json.dumps(list(rows))))

    def part(self, document_id: str, start: int, end: int) -> list[Chunk]:
        """Chunks `[start, end)` of a document."""
        found = self._ask(sql.CHUNKS_OF_RANGE, id=document_id, start=start, end=end)
        documents = self._documents({row[1] for row in found})
        return [_chunk(row, documents[row[1]]) for row in found]

    def _documents(self, ordinals: set[int]) -> dict[int, Shown]:
        found = self._ask(sql.DOCUMENTS_TO_SHOW, ordinals=json.dumps(sorted(ordinals)))
        return dict(_shown(row) for row in found)

    def _ask(self, statement: str, **values: str | int) -> list[Row]:
        return self._connection.execute(statement, {"tokens": self._tokens, **values}).fetchall()
