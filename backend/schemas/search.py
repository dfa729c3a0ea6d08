"""JSON of a search: its results, its facets, and the events while it runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, JsonValue

from backend.schemas.base import Schema, SpanPair, with_example

if TYPE_CHECKING:
    from backend.search.models import InferenceSection, SearchDoc
    from indexing.index.protocols import Facets

PREVIEW_CHARACTERS = 300
PREVIEWS = 20
"""Results in an event of a search that is running."""

_PREVIEW: dict[str, JsonValue] = {
    "document_id": "handbook:people/parental-leave.md",
    "title": "Parental leave",
    "source": "handbook",
    "link": "file:///srv/handbook/people/parental-leave.md",
    "media_type": "text/markdown",
    "heading_path": ["Parental leave", "How long"],
    "section": 1,
    "span": [0, 36],
    "updated_at": "2025-11-03T09:30:00Z",
    "content": "Parents have 26 weeks of paid leave.",
}


class ResultReason(Schema):
    variant: str
    leg: str
    rank: int


class SearchResult(Schema):
    number: int
    document_id: str
    title: str
    source: str
    link: str
    media_type: str
    heading_path: tuple[str, ...]
    section: int
    """Of the best passage: the section of the document, counted from 0."""
    span: SpanPair
    """Of the best passage, in code points of that section."""
    updated_at: datetime | None
    content: str
    score: Annotated[float, AfterValidator(lambda score: round(score, 6))]
    why: tuple[ResultReason, ...]


class SearchResponse(Schema):
    query: str
    results: tuple[SearchResult, ...]
    seconds: float

    @classmethod
    def from_docs(cls, query: str, docs: "Sequence[SearchDoc]", seconds: float) -> Self:
        results = tuple(map(SearchResult.model_validate, docs))
        return cls(query=query, results=results, seconds=round(seconds, 4))


class PersonFacet(Schema):
    key: str
    """The value to filter by: the e-mail address in lower case, or the name where none is known."""
    name: str
    documents: int


class FacetsResponse(Schema):
    """Counts of the documents that the asker may read. Each field is counted under the filters of all others, so
    that another choice can be offered."""

    sources: dict[str, int]
    media_types: dict[str, int]
    people: tuple[PersonFacet, ...]
    """Authors and owners: the 200 with most documents, and all that are filtered by."""
    months: dict[str, int]
    """Of the last change, UTC, as `2026-11`."""

    @classmethod
    def from_facets(cls, facets: "Facets") -> Self:
        people = (
            PersonFacet(key=key, name=one.name, documents=one.documents)
            for key, one in facets.people.items()
        )
        return cls(
            sources=dict(facets.sources),
            media_types=dict(facets.media_types),
            people=tuple(people),
            months=dict(facets.months),
        )


class SearchResponseWithFacets(SearchResponse):
    model_config = with_example(
        query="parental leave",
        results=[
            {
                "number": 1,
                "score": 0.078431,
                "why": [{"variant": "original", "leg": "keyword", "rank": 1}],
                **_PREVIEW,
            }
        ],
        seconds=0.0123,
        facets={
            "sources": {"handbook": 45},
            "media_types": {"text/markdown": 21},
            "people": [{"key": "ines@example.com", "name": "Ines Almqvist", "documents": 4}],
            "months": {"2025-11": 3},
        },
    )

    facets: FacetsResponse


class QueryVariant(Schema):
    name: str
    text: str
    weight: float


class QueriesEvent(Schema):
    """The event `queries`."""

    model_config = with_example(
        variants=[{"name": "original", "text": "parental leave", "weight": 2.0}]
    )

    variants: tuple[QueryVariant, ...]


class ResultPreview(Schema):
    """A result in an event."""

    document_id: str
    title: str
    source: str
    link: str
    media_type: str
    heading_path: tuple[str, ...]
    section: int
    span: SpanPair
    updated_at: datetime | None
    content: str
    """The beginning of the best passage."""

    @classmethod
    def from_section(cls, section: "InferenceSection") -> Self:
        chunk = section.best.chunk
        return cls(
            document_id=chunk.document_id,
            title=chunk.title,
            source=chunk.source,
            link=chunk.link,
            media_type=chunk.media_type,
            heading_path=chunk.heading_path,
            section=chunk.section,
            span=(chunk.span.start, chunk.span.end),
            updated_at=chunk.updated_at,
            content=_shorten(chunk.text),
        )


class ResultsEvent(Schema):
    """The events `first_results`, `results` and `selected`."""

    model_config = with_example(results=[_PREVIEW])

    results: tuple[ResultPreview, ...]

    @classmethod
    def from_sections(cls, sections: "Sequence[InferenceSection]") -> Self:
        return cls(results=tuple(map(ResultPreview.from_section, sections[:PREVIEWS])))


class StepFailedEvent(Schema):
    """The event `lost`: a step failed, and the answer is made without it."""

    model_config = with_example(step="selection", reason="the language model did not answer")

    step: str
    reason: str


def _shorten(text: str) -> str:
    if len(text) <= PREVIEW_CHARACTERS:
        return text
    return f"{text[:PREVIEW_CHARACTERS].rstrip()}…"
