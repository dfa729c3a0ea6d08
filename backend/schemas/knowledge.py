"""JSON of knowledge, as it is exported and imported."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import (
    AwareDatetime,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from backend.research.knowledge.kept_knowledge import (
    DocumentVersion,
    ImportedItem,
    KeptItem,
    PageVersion,
)
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType, Reference
from backend.schemas.base import Schema, SpanPair
from backend.store.research.knowledge_records import LONGEST_TEXT, MOST_ITEMS
from backend.web_search.results import Freshness
from connectors.document import Span
from connectors.errors import InvalidInputError

MOST_REFERENCES = 1_000
_MOST_FAULTS = 5

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
ShortText = Annotated[str, Field(max_length=200)]
DocumentId = Annotated[str, Field(min_length=1, max_length=10_000)]
Place = Annotated[int, Field(ge=0)]


class ReferenceBody(Schema):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    exact_quote: Text
    url: Text
    document_id: DocumentId | None = None
    title: Text
    date_time: AwareDatetime | None = None
    relevance_score: Annotated[float, Field(ge=0, le=1)]
    answer_chunk: Text
    answer_chunk_position: SpanPair
    section: Place = 0
    span: SpanPair

    @field_validator("answer_chunk_position", "span")
    @classmethod
    def _check_span(cls, span: tuple[int, int], info: ValidationInfo) -> tuple[int, int]:
        start, end = span
        if not 0 <= start <= end:
            raise ValueError("its start comes first, and neither is below 0")
        quoted = "span" if info.field_name == "span" else "answer_chunk_position"
        text = info.data.get("exact_quote" if quoted == "span" else "answer_chunk")
        if text is not None and len(text) != end - start:
            raise ValueError("it is not as long as its text")
        return span

    def to_reference(self) -> Reference:
        return Reference(
            exact_quote=self.exact_quote,
            url=self.url,
            document_id=self.document_id,
            title=self.title,
            date_time=self.date_time,
            relevance_score=self.relevance_score,
            answer_chunk=self.answer_chunk,
            answer_chunk_position=Span(*self.answer_chunk_position),
            section=self.section,
            span=Span(*self.span),
        )


class KnowledgeItemBody(Schema):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    question: Text
    answer: Text
    type: KnowledgeType
    references: tuple[ReferenceBody, ...] = Field(default=(), max_length=MOST_REFERENCES)
    updated: Freshness | AwareDatetime | None = None
    updated_is_guess: bool = Field(
        default=False,
        description="Whether the page does not declare this time: it was concluded from its address or its first lines",
    )
    source_code: Text | None = None

    @model_validator(mode="after")
    def _check_guess(self) -> Self:
        if self.updated_is_guess and not isinstance(self.updated, datetime):
            raise ValueError("only a time can be a guess")
        return self

    def to_item(self) -> KnowledgeItem:
        updated: datetime | Freshness | None = self.updated
        return KnowledgeItem(
            question=self.question,
            answer=self.answer,
            type=self.type,
            references=tuple(one.to_reference() for one in self.references),
            updated=updated,
            updated_is_guess=self.updated_is_guess,
            source_code=self.source_code,
        )


class DocumentVersionBody(Schema):
    """A document that an item rests on, as it was."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    document_id: DocumentId
    content_hash: ShortText | None = None


class PageVersionBody(Schema):
    """A page of the web that an item rests on, as it was."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    url: Text
    text_hash: ShortText


class KeptItemBody(KnowledgeItemBody):
    """An item with what it rests on."""

    documents: tuple[DocumentVersionBody, ...] = Field(default=(), max_length=MOST_REFERENCES)
    pages: tuple[PageVersionBody, ...] = Field(default=(), max_length=MOST_REFERENCES)
    unverified: bool = Field(
        default=False, description="Some of what it rested on was dropped by an import"
    )
    made_at: AwareDatetime | None = None
    corrected_at: AwareDatetime | None = None

    @classmethod
    def from_kept(cls, kept: KeptItem) -> Self:
        said = KnowledgeItemBody.model_validate(kept.item).model_dump()
        return cls(
            **said,
            documents=tuple(map(DocumentVersionBody.model_validate, kept.documents)),
            pages=tuple(map(PageVersionBody.model_validate, kept.pages)),
            unverified=kept.unverified,
            made_at=kept.made_at,
            corrected_at=kept.corrected_at,
        )

    def to_imported(self) -> ImportedItem:
        return ImportedItem(
            item=self.to_item(),
            documents=tuple(
                DocumentVersion(one.document_id, one.content_hash) for one in self.documents
            ),
            pages=tuple(PageVersion(one.url, one.text_hash) for one in self.pages),
            unverified=self.unverified,
            made_at=self.made_at,
            corrected_at=self.corrected_at,
        )


_FILE_EXAMPLE: dict[str, JsonValue] = {
    "version": 1,
    "items": [
        {
            "question": "How long is parental leave?",
            "answer": "Parents have 26 weeks of paid leave.",
            "type": "qa",
            "references": [
                {
                    "exact_quote": "26 weeks of paid leave",
                    "url": "https://wiki.example.com/leave",
                    "document_id": "wiki:leave.md",
                    "title": "Parental leave",
                    "relevance_score": 0.9,
                    "answer_chunk": "26 weeks of paid leave",
                    "answer_chunk_position": [13, 35],
                    "section": 0,
                    "span": [13, 35],
                }
            ],
            "documents": [{"document_id": "wiki:leave.md", "content_hash": "7f8a"}],
        }
    ],
}


class KnowledgeFile(Schema):
    """Items that were exported."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        from_attributes=True,
        json_schema_extra={"examples": [_FILE_EXAMPLE]},
    )

    version: Literal[1] = 1
    items: tuple[KeptItemBody, ...] = Field(max_length=MOST_ITEMS)
    next: str | None = Field(
        default=None,
        description="There is more: exported with this as `before`, it is the next file",
    )

    @classmethod
    def of(cls, items: Iterable[KeptItem], following: str | None = None) -> Self:
        return cls(items=tuple(map(KeptItemBody.from_kept, items)), next=following)

    def to_imported(self) -> list[ImportedItem]:
        return [one.to_imported() for one in self.items]


def export_knowledge(items: Iterable[KeptItem], following: str | None = None) -> str:
    """Return a file of at most `MOST_ITEMS` items; `following` says where those begin that are not in it."""
    return KnowledgeFile.of(items, following).model_dump_json(indent=2)


def import_knowledge(text: str | bytes) -> list[ImportedItem]:
    """Read the items of an exported file.

    Raises:
        InvalidInputError: it is no such file; the message names what is wrong, and where.
    """
    try:
        read = KnowledgeFile.model_validate_json(text)
    except ValidationError as error:
        raise InvalidInputError(_describe(error)) from error
    return read.to_imported()


def _describe(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False)
    named = "; ".join(
        f"{_describe_place(one['loc'])}: {one['msg']}" for one in faults[:_MOST_FAULTS]
    )
    rest = f"; and {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
    return f"This is no knowledge that Quarry exported: {named}{rest}."


def _describe_place(place: tuple[int | str, ...]) -> str:
    """Count items and references from 1, as people do."""
    return " ".join(str(one + 1) if isinstance(one, int) else one for one in place) or "the file"
