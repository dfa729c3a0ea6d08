"""JSON of indexed documents."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from pydantic import JsonValue

from backend.schemas.base import Schema, SpanPair, with_example
from connectors.access import Access, describe_readers

if TYPE_CHECKING:
    from backend.access.document_existence import DocumentLook
    from backend.access.document_readers import DocumentReaders
    from backend.store.documents.documents import HeldDocument, StoredDocument
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

    @classmethod
    def from_held(cls, held: "HeldDocument", access: Access) -> Self:
        """Show a document that is held.

        Args:
            access: what the asker may know of it.
        """
        return cls(
            id=held.id,
            title=held.title,
            source=held.source,
            link=held.link,
            readers=tuple(describe_readers(access)),
            chunks=held.chunks,
            updated_at=held.updated_at,
        )


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


class AdmittedReaderResponse(Schema):
    reader: str
    """A reader token: a person, a group that is not a source's, or `public`."""
    member_of: tuple[str, ...]
    """The names of the groups that admit the reader, the last of which the document names; empty if it names the reader."""
    source_account: str | None = None
    """The account of a source that is mapped to the reader and admits them; null if none is needed."""


class DocumentContent(Schema):
    id: str
    title: str
    source: str
    link: str
    readers: tuple[str, ...]
    """The reader tokens that the document names; to those who are no admins, only theirs."""
    admitted: tuple[AdmittedReaderResponse, ...]
    """The first hundred who may read it; to those who are no admins, only they themselves."""
    admitted_count: int
    updated_at: datetime | None
    sections: tuple[SectionResponse, ...]

    @classmethod
    def from_stored(cls, stored: "StoredDocument", who: "DocumentReaders") -> Self:
        return cls(**_content(stored, who))


class ChunkResponse(Schema):
    position: int
    section: int
    span: SpanPair


class DocumentResponse(DocumentContent):
    model_config = with_example(
        **_DOCUMENT,
        admitted=[{"reader": "public", "member_of": [], "source_account": None}],
        admitted_count=1,
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
        cls,
        stored: "StoredDocument",
        chunks: "Iterable[Chunk]",
        who: "DocumentReaders",
        *,
        has_original: bool,
    ) -> Self:
        return cls(
            **_content(stored, who),
            media_type=stored.document.media_type,
            has_original=has_original,
            synced_at=stored.indexed_at,
            chunks=tuple(map(ChunkResponse.model_validate, chunks)),
        )


def _content(stored: "StoredDocument", who: "DocumentReaders") -> dict[str, Any]:
    document = stored.document
    return {
        "id": document.id,
        "title": document.title,
        "source": document.source,
        "link": document.link,
        **_who(who),
        "updated_at": document.updated_at,
        "sections": tuple(map(SectionResponse.model_validate, document.sections)),
    }


def _who(who: "DocumentReaders") -> dict[str, Any]:
    return {
        "readers": tuple(describe_readers(who.access)),
        "admitted": tuple(
            AdmittedReaderResponse(
                reader=one.token, member_of=one.groups, source_account=one.source_account
            )
            for one in who.admitted
        ),
        "admitted_count": who.count,
    }


class DocumentLookResponse(Schema):
    model_config = with_example(
        id="handbook:finance/pay.md",
        title="Salary bands",
        source="handbook",
        readers=["group:finance"],
        admitted=[{"reader": "group:finance", "member_of": [], "source_account": None}],
        admitted_count=1,
        indexed_at="2025-11-03T09:30:00Z",
    )

    id: str
    title: str
    source: str
    readers: tuple[str, ...]
    """The reader tokens that the document names."""
    admitted: tuple[AdmittedReaderResponse, ...]
    """The first hundred who may read it."""
    admitted_count: int
    indexed_at: datetime

    @classmethod
    def from_look(cls, look: "DocumentLook") -> Self:
        return cls(
            id=look.id,
            title=look.title,
            source=look.source,
            indexed_at=look.indexed_at,
            **_who(look.who),
        )
