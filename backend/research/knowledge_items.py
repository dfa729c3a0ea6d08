"""What research learns: questions with their answers, each with the quotes that it rests on."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backend.web_search.results import Freshness
from connectors.document import Span


class KnowledgeType(StrEnum):
    """Where an item comes from."""

    QA = "qa"
    """A question that came up on the way, and what answered it."""
    SIDE_INFO = "side-info"
    """What search engines say of a query."""
    URL = "url"
    """A page that was read."""
    CODING = "coding"
    """A calculation, with its code."""
    CHAT_HISTORY = "chat-history"
    """What the conversation before established."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A quote of a source, and the part of an answer that it bears out."""

    exact_quote: str
    url: str
    """Where a person reads the source; empty where it has no address."""
    document_id: str | None = None
    """Of a document of the index; None for any other source."""
    title: str
    date_time: datetime | None = None
    """When the source was published or last changed."""
    relevance_score: float
    """0 to 1: how alike the quote and the part of the answer are, or of what was looked up, the quote and the question."""
    answer_chunk: str
    answer_chunk_position: Span
    """Of `answer_chunk` in the answer."""
    section: int = 0
    """Of the source, counted from 0, that holds the quote."""
    span: Span
    """Of the quote in that section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeItem:
    question: str
    answer: str
    type: KnowledgeType
    references: tuple[Reference, ...] = ()
    updated: datetime | Freshness | None = None
    """As of when the answer holds: a time, or for what search engines said, the age of results that was asked for."""
    updated_is_guess: bool = False
    """Whether a page does not declare this time: it was concluded from its address or its first lines."""
    source_code: str | None = None
    """That computed the answer."""
