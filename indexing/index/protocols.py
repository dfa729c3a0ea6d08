"""The chunk index: `Index` for searches on behalf of a person, `IndexWriter` for the pipeline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from connectors.access import NOBODY, Access, Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.embedder import Vector, Vectors
from indexing.embedding.language_support import RAW_COSINES, CosineScale
from indexing.index.person_keys import PersonCount
from indexing.index.spelling import Corrections, SpellingQuery
from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class DateRange:
    """`[since, until)`, both timezone-aware; a document without a date is in no bounded range."""

    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        for moment in (self.since, self.until):
            if moment is not None and moment.utcoffset() is None:
                raise ValueError(f"a time without a time zone: {moment}")

    def narrowed_by(self, other: "DateRange") -> "DateRange":
        """Return the range of what lies in both."""
        begins = [moment for moment in (self.since, other.since) if moment]
        ends = [moment for moment in (self.until, other.until) if moment]
        return DateRange(max(begins, default=None), min(ends, default=None))


LABEL_SIGN = "#"
"""Begins the label that a document carries of a set, and no name of a set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Fields are AND-ed, values within a field OR-ed. `None` does not filter; an empty set matches nothing."""

    sources: frozenset[str] | None = None
    sets: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    media_types: frozenset[str] | None = None
    people: frozenset[str] | None = None
    """Owners, by their keys; see `indexing.index.person_keys`."""
    document_ids: frozenset[str] | None = None
    project_id_filter: frozenset[str] | None = None
    """Projects whose files are searched, by id."""
    persona_id_filter: frozenset[str] | None = None
    """Assistants whose files are searched, by id."""
    created: DateRange = field(default_factory=DateRange)
    updated: DateRange = field(default_factory=DateRange)
    any_of: tuple["Filters", ...] = ()
    """Alternatives, of which one has to accept as well; none of them do not filter."""

    def narrowed_by(self, other: "Filters") -> "Filters":
        """Return filters that accept what both accept."""
        return Filters(
            sources=_intersect(self.sources, other.sources),
            sets=_intersect(self.sets, other.sets),
            tags=_intersect(self.tags, other.tags),
            media_types=_intersect(self.media_types, other.media_types),
            people=_intersect(self.people, other.people),
            document_ids=_intersect(self.document_ids, other.document_ids),
            project_id_filter=_intersect(self.project_id_filter, other.project_id_filter),
            persona_id_filter=_intersect(self.persona_id_filter, other.persona_id_filter),
            created=self.created.narrowed_by(other.created),
            updated=self.updated.narrowed_by(other.updated),
            any_of=_intersect_alternatives(self.any_of, other.any_of),
        )


def _intersect_alternatives(
    some: tuple[Filters, ...], others: tuple[Filters, ...]
) -> tuple[Filters, ...]:
    if not some or not others:
        return some or others
    return tuple(one.narrowed_by(other) for one in some for other in others)


def _intersect(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


@dataclass(frozen=True, slots=True)
class TextConditions:
    """What the text of a chunk must and must not contain; its title and headings belong to it."""

    required_phrases: tuple[str, ...] = ()
    """The words of each must be adjacent and in this order."""
    excluded: tuple[str, ...] = ()
    """Words and phrases of which none may occur."""


NO_CONDITIONS = TextConditions()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    text: str
    vector: Vector | None
    """The embedding of `text`; without one the vector leg is skipped."""
    alpha: float
    """Weight of the vector leg, 0 to 1, where both legs find equally good evidence."""
    scale: CosineScale = RAW_COSINES
    """What cosines of the embedder mean."""
    exact: tuple[str, ...] = ()
    """Quoted phrases and identifiers to look up exactly, from `tokenizer.find_exact_terms`."""
    size: int = 50
    filters: Filters = field(default_factory=Filters)
    conditions: TextConditions = NO_CONDITIONS

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0:
            raise ValueError(f"alpha must be between 0 and 1: {self.alpha}")
        if self.size < 1:
            raise ValueError(f"size must be positive: {self.size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a chunk was found, in raw scores that are comparable across queries."""

    cosine: float | None = None
    bm25: float | None = None
    word_share: float = 0.0
    """Share of the query's distinct words that the chunk contains, 0 to 1."""
    exact: int = 0
    """Number of the query's exact terms that it contains."""
    vector_rank: int | None = None
    """In the vector leg, counted from 1."""
    keyword_rank: int | None = None
    exact_rank: int | None = None


VariantName: TypeAlias = Literal["original", "semantic", "llm", "keyword"]
Leg: TypeAlias = Literal["vector", "keyword", "exact"]


@dataclass(frozen=True, slots=True)
class RankReason:
    """One reason for a rank: the place, counted from 1, in one leg of one variant of a message."""

    variant: VariantName
    query: str
    leg: Leg
    rank: int


@dataclass(frozen=True, slots=True)
class Hit:
    chunk: Chunk
    score: float
    """Of the hybrid, or of the fusion of several queries; compares within one ranking only."""
    evidence: Evidence
    """Of a fused hit, the strongest of each figure over the queries that found it."""
    why: tuple[RankReason, ...] = ()
    """Set by the fusion of several queries."""


@dataclass(frozen=True, slots=True)
class Found:
    rankings: tuple[tuple[Hit, ...], ...]
    """One per query, best first."""
    partial: bool = False
    """Whether some part of the index did not answer, so that hits may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """Counts of documents that the asker may read."""

    sources: Mapping[str, int]
    media_types: Mapping[str, int]
    people: Mapping[str, PersonCount]
    """Owners, by their keys: those of most documents, at most `people.MOST`."""
    months: Mapping[str, int]
    """By month of `updated_at`, UTC, as `2026-11`."""
    sets: Mapping[str, int] = field(default_factory=dict)


class Index(Protocol):
    """Search on behalf of a person. No method returns or counts what `readers` may not read, or what is hidden."""

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        """Search all variants in one call, against one state of the index. Raises DeadlineExceededError."""
        ...

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        """Return the chunks of each range by position; forbidden and missing ones alike are left out."""
        ...

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets: ...

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        """Return the words that no document of `readers` contains, with the nearest ones that one contains."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """Replace all of a document, in one step for every reader."""

    document_id: str
    generation: int
    """Grows with every version of a document; an older one than the indexed one is not written."""
    content_hash: str
    chunks: tuple[Chunk, ...]
    vectors: Vectors
    """Shape (chunks, dimension), unit rows."""


@dataclass(frozen=True, slots=True)
class Delete:
    document_id: str
    up_to: int | None = None
    """The last generation to delete; a later one is kept. `None` deletes any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amend:
    """Change access, memberships, boost or hiding of a document, without new vectors. `None` keeps a value."""

    document_id: str
    access: Access | None = None
    sets: frozenset[str] | None = None
    projects: frozenset[str] | None = None
    personas: frozenset[str] | None = None
    boost: float | None = None
    hidden: bool | None = None
    up_to: int | None = None
    """As in `Delete`."""


IndexChange: TypeAlias = Replace | Delete | Amend


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    replaced: int = 0
    chunks: int = 0
    deleted: int = 0
    amended: int = 0
    stale: tuple[str, ...] = ()
    """Ids whose change was older than the indexed generation, and was not made."""
    missing: tuple[str, ...] = ()
    """Ids of a Delete or an Amend that are not in the index."""

    def __add__(self, other: "Written") -> "Written":
        return Written(
            **{
                field.name: getattr(self, field.name) + getattr(other, field.name)
                for field in fields(Written)
            }
        )


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    id: str
    generation: int
    chunks: int
    content_hash: str
    access: Access = NOBODY
    """Who can find it: nobody, if it has no chunks."""


@dataclass(frozen=True, slots=True)
class SelectedDocument:
    id: str
    tags: frozenset[str]
    sets: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Documents by what they are, whoever may read them. Fields are AND-ed; `None` does not restrict."""

    prefix: str = ""
    """Of their ids, such as `wiki:handbook/`."""
    tag: str | None = None
    document_ids: frozenset[str] | None = None
    in_set: str | None = None
    outside_set: str | None = None

    def accepts(self, document: SelectedDocument) -> bool:
        return (
            document.id.startswith(self.prefix)
            and (self.tag is None or self.tag in document.tags)
            and (self.document_ids is None or document.id in self.document_ids)
            and (self.in_set is None or self.in_set in document.sets)
            and (self.outside_set is None or self.outside_set not in document.sets)
        )


class IndexWriter(Protocol):
    """Write to the index and read it without a check of access; never given to code that serves a person."""

    def write(self, changes: Iterable[IndexChange]) -> Written:
        """Write the changes in order; they are visible to every process when this returns.

        Raises:
            ValueError: a wrong dimension, a vector that is not of length 1, chunks of another document, or
                positions with gaps.
        """
        ...

    def scan(self) -> Iterator[IndexedDocument]:
        """Yield every document by id, for repair, audit and moving."""
        ...

    def select(self, selection: Selection) -> Iterator[SelectedDocument]:
        """Yield the selected documents that have chunks, in any order; `write` may be called between two.

        A document that is written meanwhile may or may not be among them.
        """
        ...

    def count(self, selections: Sequence[Selection]) -> int:
        """Count the documents with chunks that at least one of these selects."""
        ...

    def export(self, after: str = "") -> Iterator[Replace]:
        """Yield every document whose id follows `after`, by id, ready to be written to another index.

        Vectors have the precision of the index. A document without chunks has no more fields than `scan`
        yields.
        """
        ...
