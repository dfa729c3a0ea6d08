"""Chunks: pieces of a document, small enough to be embedded whole, that are stored and found."""

from dataclasses import dataclass
from datetime import datetime

from connectors.access import Access
from connectors.document import Person, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    document_id: str
    position: int
    """Within the document, counted from 0, without gaps."""
    text: str
    """The `span` of the text of section number `section`."""
    embedded_text: str
    """The text for the embedder and the keyword leg: title, heading path, text, metadata."""
    section: int
    span: Span
    title: str
    link: str
    source: str
    media_type: str
    access: Access
    page: int | None = None
    heading_path: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    """Metadata as `key=value`."""
    sets: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    """Ids of the projects whose files it belongs to."""
    personas: frozenset[str] = frozenset()
    """Ids of the assistants whose files it belongs to."""
    owners: tuple[Person, ...] = ()
    boost: float = 1.0
    """Multiplies the hybrid score; 1 is neutral."""
    hidden: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.document_id, self.position


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """Chunks of one document by position: `[start, end)`."""

    document_id: str
    start: int
    end: int
