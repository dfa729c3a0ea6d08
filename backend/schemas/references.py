"""JSON of references that were built for a text."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator

from backend.schemas.base import Schema, SpanPair, with_example

if TYPE_CHECKING:
    from backend.research.references.reference_builder import ReferencedText
    from backend.research.references.reference_markers import NumberedPicture, NumberedReference

Relevance = Annotated[float, AfterValidator(lambda score: round(score, 4))]


class ReferenceResponse(Schema):
    number: int
    marker: SpanPair
    """In the text of the response."""
    exact_quote: str
    """What the source says, word for word."""
    url: str
    """Where a person reads the source; empty where it has no address."""
    document_id: str | None
    title: str
    date_time: datetime | None
    """When the source was published or last changed."""
    relevance_score: Relevance
    """0.7 to 1."""
    answer_chunk: str
    """The part of the text that the quote supports."""
    answer_chunk_position: SpanPair
    """In the text that was sent."""
    section: int
    """Of the source, counted from 0, that holds the quote."""
    span: SpanPair
    """Of the quote in that section."""

    @classmethod
    def from_numbered(cls, one: "NumberedReference") -> Self:
        reference = one.reference
        return cls(
            number=one.number,
            marker=(one.marker.start, one.marker.end),
            exact_quote=reference.exact_quote,
            url=reference.url,
            document_id=reference.document_id,
            title=reference.title,
            date_time=reference.date_time,
            relevance_score=reference.relevance_score,
            answer_chunk=reference.answer_chunk,
            answer_chunk_position=(
                reference.answer_chunk_position.start,
                reference.answer_chunk_position.end,
            ),
            section=reference.section,
            span=(reference.span.start, reference.span.end),
        )


class PictureReferenceResponse(Schema):
    """A picture of a source that shows what a part of the text says."""

    number: int
    """Among those of the references."""
    marker: SpanPair
    """In the text of the response."""
    url: str
    """Of the picture."""
    text: str
    """What is said of the picture."""
    title: str
    """Of its source."""
    relevance_score: Relevance
    answer_chunk: str
    answer_chunk_position: SpanPair
    """In the text that was sent."""

    @classmethod
    def from_numbered(cls, one: "NumberedPicture") -> Self:
        picture = one.reference
        return cls(
            number=one.number,
            marker=(one.marker.start, one.marker.end),
            url=picture.url,
            text=picture.text,
            title=picture.title,
            relevance_score=picture.relevance_score,
            answer_chunk=picture.answer_chunk,
            answer_chunk_position=(
                picture.answer_chunk_position.start,
                picture.answer_chunk_position.end,
            ),
        )


class ReferencesResponse(Schema):
    model_config = with_example(
        text="Parents have 26 weeks of paid leave, which they may take in two parts if the manager agrees.[1]",
        references=[
            {
                "number": 1,
                "marker": [93, 96],
                "exact_quote": "Each parent is entitled to 26 weeks of paid leave, in two parts where the manager agrees.",
                "url": "file:///srv/handbook/people/parental-leave.md",
                "document_id": "handbook:people/parental-leave.md",
                "title": "Parental leave",
                "date_time": "2025-11-03T09:30:00Z",
                "relevance_score": 0.9312,
                "answer_chunk": "Parents have 26 weeks of paid leave, which they may take in two parts if the manager agrees.",
                "answer_chunk_position": [0, 93],
                "section": 1,
                "span": [0, 90],
            }
        ],
        pictures=[],
        notes=[],
    )

    text: str
    """The text that was sent, with its markers."""
    references: tuple[ReferenceResponse, ...]
    pictures: tuple[PictureReferenceResponse, ...]
    """In the order of the text, numbered with the references: where one place has both, the passage comes first."""
    notes: tuple[str, ...]
    """What was left out, and why."""

    @classmethod
    def from_built(cls, built: "ReferencedText") -> Self:
        return cls(
            text=built.text,
            references=tuple(map(ReferenceResponse.from_numbered, built.references)),
            pictures=tuple(map(PictureReferenceResponse.from_numbered, built.pictures)),
            notes=built.notes,
        )
