"""The values of a search: its request, its variants, sections of neighboring chunks, citation numbers, its result."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import reduce
from typing import TypeAlias

from backend.search.llm_protocol import ChatMessage
from connectors.access import Readers
from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import (
    NO_CONDITIONS,
    Filters,
    Hit,
    RankReason,
    TextConditions,
    VariantName,
)
from indexing.runtime.deadline import Deadline

CitationMapping: TypeAlias = Mapping[int, str]
"""Citation number to document id; a document keeps its number for the whole turn."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits in tokens of the chat model."""

    selection: int
    """For the excerpts that the model selects from."""
    answer: int
    """For the text of all sections that the answering model reads, however far they were expanded."""

    @classmethod
    def for_window(cls, tokens: int) -> "Budgets":
        """Allow each a quarter of a model's context window, at most 12,800 tokens."""
        share = min(12_800, tokens // 4)
        return cls(selection=share, answer=share)

    def with_selection_of(self, limit: int | None) -> "Budgets":
        """Return these with a limit on the tokens for the selection."""
        return self if limit is None else replace(self, selection=min(self.selection, limit))


class Spelling(StrEnum):
    """How the words of a query are searched."""

    CORRECT_UNKNOWN = "corrected"
    """Words that no readable document contains are replaced by the nearest that one contains."""
    AS_WRITTEN = "verbatim"


class FilterKind(StrEnum):
    """What words of a query may be read as a filter by."""

    DATE = "date"
    SOURCE = "source"
    TYPE = "type"
    PERSON = "person"


EVERY_KIND = frozenset(FilterKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredFilter:
    """Words of a query that are read as a filter, such as "in Slack"."""

    kind: FilterKind
    words: str
    span: Span
    """Of the words, in the query on one line."""
    meaning: str
    """What is filtered by, for a person to read."""
    filters: Filters
    date_names: frozenset[str] = frozenset()
    """Of a date: a text that holds all of these words names the same time."""


@dataclass(frozen=True, slots=True)
class Inference:
    """How a query is read: its filters, and what it is about."""

    inferred: tuple[InferredFilter, ...] = ()
    topic: str = ""
    """The query without the words of the filters; empty where nothing else is said."""

    @property
    def filters(self) -> Filters:
        """What all of them accept."""
        return reduce(Filters.narrowed_by, (one.filters for one in self.inferred), Filters())


NO_INFERENCE = Inference()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    message: str
    """The user's own words; the original query."""
    readers: Readers
    deadline: Deadline
    budgets: Budgets
    history: tuple[ChatMessage, ...] = ()
    """The conversation before the message, oldest first."""
    model_queries: tuple[str, ...] = ()
    """Queries that the chat model wrote."""
    filters: Filters = field(default_factory=Filters)
    conditions: TextConditions = NO_CONDITIONS
    misspelled: str | None = None
    """The message as it was typed, where words of it were corrected."""
    inference: Inference = NO_INFERENCE
    """Filters that its words may mean: what they accept stands first."""

    @property
    def corrected(self) -> str | None:
        """What is searched instead of what was typed, if anything."""
        return self.message if self.misspelled else None


ReadWords: TypeAlias = Callable[[SearchRequest], SearchRequest]
"""Reads words of the message as filters, corrects them, or both."""


def read_nothing(request: SearchRequest) -> SearchRequest:
    """Leave the message as it is: each of its words is only searched."""
    return request


def make_request(
    message: str,
    readers: Readers,
    deadline: Deadline,
    budgets: Budgets,
    *,
    model_queries: tuple[str, ...],
    history: tuple[ChatMessage, ...],
    filters: Filters,
    conditions: TextConditions = NO_CONDITIONS,
    read: ReadWords,
) -> SearchRequest:
    """Make a request, and read its words once all else of it is known.

    Every request of the product is made here. What a search may be given has no default, so that none of those who
    search forgets it; only people type conditions.

    Raises as `read` does.
    """
    request = SearchRequest(
        message=message,
        readers=readers,
        deadline=deadline,
        budgets=budgets,
        history=history,
        model_queries=model_queries,
        filters=filters,
        conditions=conditions,
    )
    return read(request)


@dataclass(frozen=True, slots=True)
class VariantQuery:
    """One of the texts that a message is searched as."""

    name: VariantName
    text: str
    weight: float
    """In the fusion."""
    message: str | None = None
    """The text that it is made of, whose vector it is searched with; None where that is its own."""
    narrowing: Inference | None = None
    """Where only what inferred filters accept is searched."""

    @property
    def embedded_text(self) -> str:
        return self.message or self.text


@dataclass(frozen=True, slots=True)
class InferenceSection:
    """Consecutive chunks of one document, read as one text."""

    chunks: tuple[Chunk, ...]
    """By position, without gaps, at least one."""
    best: Hit
    """The section ranks at the place of this chunk."""
    hits: tuple[Hit, ...]
    """All chunks that were found, best first; chunks added by expansion are not among them."""

    @property
    def document_id(self) -> str:
        return self.best.chunk.document_id

    @property
    def start(self) -> int:
        return self.chunks[0].position

    @property
    def end(self) -> int:
        """One past the position of the last chunk."""
        return self.chunks[-1].position + 1

    @property
    def text(self) -> str:
        return "\n".join(chunk.text for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Successor:
    """A document that replaces another."""

    document_id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDoc:
    """A section as people and programs are shown it."""

    number: int
    """The document's citation number."""
    document_id: str
    title: str
    source: str
    link: str
    media_type: str
    heading_path: tuple[str, ...]
    section: int
    """The section of the document that contains the best chunk."""
    span: Span
    """Of the best chunk, in the text of that section."""
    updated_at: datetime | None
    content: str
    score: float
    why: tuple[RankReason, ...]
    further: tuple["SearchDoc", ...] = ()
    """The other sections of the document, best first, where results are grouped by document."""
    superseded_by: Successor | None = None
    """The document that replaces it, if that was found too."""

    @classmethod
    def from_section(
        cls, section: InferenceSection, number: int, superseded_by: Successor | None = None
    ) -> "SearchDoc":
        chunk = section.best.chunk
        return cls(
            number=number,
            document_id=chunk.document_id,
            title=chunk.title,
            source=chunk.source,
            link=chunk.link,
            media_type=chunk.media_type,
            heading_path=chunk.heading_path,
            section=chunk.section,
            span=chunk.span,
            updated_at=chunk.updated_at,
            content=section.text,
            score=section.best.score,
            why=section.best.why,
            superseded_by=superseded_by,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    sections: tuple[InferenceSection, ...]
    docs: tuple[SearchDoc, ...]
    """One for each section, in the same order."""
    for_model: str
    """JSON: `{"results": [{"document", "title", "source", ...}], "note"}`, within the answer budget."""
    note: str
    """What the model has to know of the results as a whole; empty where there is nothing to say."""
    citations: CitationMapping
    partial: bool
    """Part of the index did not answer."""

    def renumber(self, numbers: "DocumentNumbers") -> "SearchResult":
        """Return the same with the numbers that its documents have or get there; what the model is shown is left as it is."""
        docs = tuple(replace(one, number=numbers.assign(one.document_id)) for one in self.docs)
        return replace(self, docs=docs, citations={one.number: one.document_id for one in docs})


class DocumentNumbers:
    """The citation numbers of a turn: a document keeps its number over all searches of it.

    Numbers count from 1 in the order in which documents are first shown. Safe to use from
    several threads.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()

    def assign(self, document_id: str) -> int:
        """Return the number of a document, the next free one if it has none yet."""
        with self._lock:
            return self._numbers.setdefault(document_id, len(self._numbers) + 1)
