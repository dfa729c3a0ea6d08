"""JSON of indexed documents."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from pydantic import JsonValue

from backend.schemas.base import Schema, SpanPair, with_example
from connectors.access import describe_readers

if TYPE_CHECKING:
    from backend.store.documents import StoredDocument
    from indexing.chunking.chunk import Chunk

_DOCUMENT: dict[str, JsonValue] = {
    "id": "handbook:people/parental-leave.md",
    "title": "Parental leave",
    "source": "handbook",
    "link": "file:///srv/handbook/people/parental-leave.md",
    "readers": ["public"],
    "updated_at": "2025-11-03T09:30:00Z",
}


class DocumentSummary(Schema):
    id: str
    title: str
    source: str
    link: str
    readers: tuple[str, ...]
    chunks: int
    updated_at: datetime | None


class DocumentListResponse(Schema):
    model_config = with_example(documents=[{**_DOCUMENT, "chunks": 4}], next=None)

    documents: tuple[DocumentSummary, ...]
    next: str | None
    """The id to pass as `after` for the next page; null at the end."""


class PlaceResponse(Schema):
    page: int | None
    heading_path: tuple[str, ...]
    sheet: str | None
    rows: tuple[int, int] | None
    span: SpanPair | None


class SectionResponse(Schema):
    kind: str
    text: str
    link: str | None
    place: PlaceResponse


class DocumentContent(Schema):
    id: str
    title: str
    source: str
    link: str
    readers: tuple[str, ...]
    updated_at: datetime | None
    sections: tuple[SectionResponse, ...]

    @classmethod
    def from_stored(cls, stored: "StoredDocument") -> Self:
        return cls(**_content(stored))


class ChunkResponse(Schema):
    position: int
    section: int
    span: SpanPair


class DocumentResponse(DocumentContent):
    model_config = with_example(
        **_DOCUMENT,
        sections=[
            {
                "kind": "text",
                "text": "Parents have 26 weeks of paid leave.",
                "link": None,
                "place": {
                    "page": None,
                    "heading_path": ["Parental leave", "How long"],
                    "sheet": None,
                    "rows": None,
                    "span": [120, 156],
                },
            }
        ],
        media_type="text/markdown",
        has_original=True,
        synced_at="2025-11-03T09:30:00Z",
        chunks=[{"position": 0, "section": 0, "span": [0, 36]}],
    )

    media_type: str
    has_original: bool
    """Whether its file is available as it was when it was last synced."""
    synced_at: datetime
    chunks: tuple[ChunkResponse, ...]

    @classmethod
    def from_index(
        cls, stored: "StoredDocument", chunks: "Iterable[Chunk]", *, has_original: bool
    ) -> Self:
        return cls(
            **_content(stored),
            media_type=stored.document.media_type,
            has_original=has_original,
            synced_at=stored.indexed_at,
            chunks=tuple(map(ChunkResponse.model_validate, chunks)),
        )


def _content(stored: "StoredDocument") -> dict[str, Any]:
    document = stored.document
    return {
        "id": document.id,
        "title": document.title,
        "source": document.source,
        "link": document.link,
        "readers": tuple(describe_readers(document.access)),
        "updated_at": document.updated_at,
        "sections": tuple(map(SectionResponse.model_validate, document.sections)),
    }
