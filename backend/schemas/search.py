"""JSON of a search: its filters, its results, its facets, and the events while it runs."""

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from backend.schemas.base import Schema, SpanPair, with_example
from indexing.index.person_keys import person_key
from indexing.index.protocols import LABEL_SIGN, DateRange, Filters

if TYPE_CHECKING:
    from backend.search.models import InferenceSection, InferredFilter, SearchDoc
    from backend.search.query_syntax import ParsedQuery
    from indexing.index.protocols import Facets

MOST_VALUES = 100
LONGEST_VALUE = 1_000
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIRST, _LAST = date(1, 1, 3), date(9999, 12, 28)
"""Between these every day has a midnight in every time zone, and one that follows."""

Names: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=LONGEST_VALUE)], ...],
    Field(min_length=1, max_length=MOST_VALUES),
]

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


def _check_day(day: object) -> object:
    """Refuse a number, which would be taken for seconds since 1970."""
    if isinstance(day, str) and _DAY.fullmatch(day):
        return day
    raise ValueError("write a day as 2026-03-31")


def _check_set_names(names: tuple[str, ...]) -> tuple[str, ...]:
    if any(name.startswith(LABEL_SIGN) for name in names):
        raise ValueError(f"no document set has a name that begins with {LABEL_SIGN}")
    return names


Day: TypeAlias = Annotated[date, BeforeValidator(_check_day)]


class FiltersBody(BaseModel):
    """Fields are AND-ed, values within a field OR-ed. What is left out does not filter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sources: Names | None = None
    sets: Annotated[Names, AfterValidator(_check_set_names)] | None = Field(
        default=None, description="Document sets, by name; see `GET /api/document-sets`"
    )
    media_types: Names | None = None
    people: Names | None = Field(
        default=None,
        description="Authors and owners: each by the key that facets return, an e-mail address, or a"
        " name where no address is known",
    )
    tags: Names | None = Field(default=None, description="Each as key=value")
    since: Day | None = Field(default=None, description="Updated on this day or later")
    until: Day | None = Field(default=None, description="Updated on this day or before")

    def filters(self) -> Filters:
        return Filters(
            sources=_to_set(self.sources),
            sets=_to_set(self.sets),
            media_types=_to_set(self.media_types),
            people=None if self.people is None else frozenset(map(person_key, self.people)),
            tags=_to_set(self.tags),
            updated=DateRange(
                _midnight(self.since) if self.since else None,
                _midnight(self.until, days=1) if self.until else None,
            ),
        )


def _to_set(values: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if values is None else frozenset(values)


def _midnight(day: date, days: int = 0) -> datetime:
    """Return the moment here at which the day begins, so many days later."""
    day = min(max(day, _FIRST), _LAST)
    return datetime.combine(day + timedelta(days=days), time.min).astimezone()


class ResultReason(Schema):
    variant: str
    leg: str
    rank: int


class SuccessorBody(Schema):
    """A document that replaces another."""

    document_id: str
    title: str


class SearchPassage(Schema):
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
    superseded_by: SuccessorBody | None = None
    """The document that replaces this one, if that was found too."""


class SearchResult(SearchPassage):
    further: tuple[SearchPassage, ...] = ()
    """The other passages of the document, best first; of results that are grouped by document."""


class QueryFilter(Schema):
    """A filter, a phrase or an exclusion of the query."""

    kind: Literal["phrase", "excluded", "source", "set", "type", "person", "before", "after"]
    value: str
    without: str
    """The query without it."""


class InferredFilterBody(Schema):
    """Words of the query that were read as a filter: what it accepts stands first."""

    kind: Literal["date", "source", "type", "person"]
    words: str
    span: SpanPair
    """Of the words, in the query with each white space as one blank."""
    meaning: str
    """What is filtered by, for a person to read."""


class SearchResponse(Schema):
    query: str
    results: tuple[SearchResult, ...]
    seconds: float
    filters: tuple[QueryFilter, ...] = ()
    """Those that were read from the query, in its order."""
    notes: tuple[str, ...] = ()
    """What of the query was not understood."""
    corrected: str | None = None
    """The corrected query that was searched, if no readable document contains some word of the original one."""
    inferred: tuple[InferredFilterBody, ...] = ()
    """Filters that words of the query were read as; none where nothing passes them that is close to the query."""

    @classmethod
    def from_docs(
        cls,
        parsed: "ParsedQuery",
        docs: "Sequence[SearchDoc]",
        seconds: float,
        corrected: str | None = None,
        inferred: "Sequence[InferredFilter]" = (),
    ) -> Self:
        return cls(
            query=parsed.query,
            results=tuple(map(SearchResult.model_validate, docs)),
            seconds=round(seconds, 4),
            filters=tuple(
                QueryFilter(kind=one.kind.value, value=one.value, without=parsed.without(one))
                for one in parsed.operators
            ),
            notes=parsed.notes,
            corrected=corrected,
            inferred=tuple(map(InferredFilterBody.model_validate, inferred)),
        )


class PersonFacet(Schema):
    key: str
    """The value to filter by: the e-mail address in lower case, or the name where none is known."""
    name: str
    documents: int


class FacetsResponse(Schema):
    """Counts of the documents among the passages that the query retrieved, of which `results` are the best: 50
    for each variant of the query, or `limit` if that is more. Each field is counted under the filters of all
    others, so that another choice can be offered."""

    sources: dict[str, int]
    media_types: dict[str, int]
    people: tuple[PersonFacet, ...]
    """Authors and owners: the 200 with the most documents, and those of the filter."""
    months: dict[str, int]
    """Of the last change, UTC, as `2026-11`."""
    sets: dict[str, int]
    """Document sets that are shown to the asker, by name."""

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
            sets=dict(facets.sets),
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
            "sets": {"Policies": 12},
        },
    )

    facets: FacetsResponse


class NarrowedEvent(Schema):
    """The event `narrowed`: only a part of what may be read is searched, or stands first. What is null does not filter."""

    model_config = with_example(sources=["handbook"], updated_since="2026-01-01T00:00:00Z")

    sources: tuple[str, ...] | None = None
    sets: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    media_types: tuple[str, ...] | None = None
    people: tuple[str, ...] | None = None
    documents: int | None = None
    """How many documents are searched, where these were chosen one by one."""
    created_since: datetime | None = None
    created_until: datetime | None = None
    updated_since: datetime | None = None
    updated_until: datetime | None = None
    inferred: tuple[InferredFilterBody, ...] = ()
    """Filters that words of the question were read as: what they accept stands first, nothing is left out."""

    @classmethod
    def from_filters(cls, filters: Filters, inferred: "Sequence[InferredFilter]" = ()) -> Self:
        return cls(
            sources=_to_sorted(filters.sources),
            sets=_to_sorted(filters.sets),
            tags=_to_sorted(filters.tags),
            media_types=_to_sorted(filters.media_types),
            people=_to_sorted(filters.people),
            documents=None if filters.document_ids is None else len(filters.document_ids),
            created_since=filters.created.since,
            created_until=filters.created.until,
            updated_since=filters.updated.since,
            updated_until=filters.updated.until,
            inferred=tuple(map(InferredFilterBody.model_validate, inferred)),
        )


def _to_sorted(values: frozenset[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(sorted(values))


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
