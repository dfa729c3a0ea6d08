"""What a turn tells while it runs. The last event is AnswerDone or Failed."""

from dataclasses import dataclass
from typing import TypeAlias

from backend.chat.citations.citation_processor import CitationInfo
from backend.chat.citations.verification import Support
from backend.search.events import SearchEvent


@dataclass(frozen=True, slots=True)
class ReasoningStep:
    """A piece of what the model thinks before it answers."""

    text: str


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the answer, in Markdown, its citations linked."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A place of the answer where a document is cited."""

    number: int
    document_id: str
    title: str
    link: str
    sentence: str
    """The cited sentence, without markers."""
    claim: str
    """The part of it for which this citation stands; the whole where it has one citation only."""
    support: Support | None = None
    """What in the document bears the claim out; None until it was looked for, or if nothing does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDone:
    text: str
    """The whole answer, as its pieces told it."""
    plain: str
    """The same without citations."""
    citations: tuple[Citation, ...]
    """In the order of the text."""
    model: str | None
    """None where no language model was asked."""
    cut: bool = False
    """The model reached the length that it is allowed; more was to come."""


@dataclass(frozen=True, slots=True)
class Failed:
    message: str
    advice: str
    """What the asker can do about it."""


ChatEvent: TypeAlias = SearchEvent | ReasoningStep | CitationInfo | TextPiece | AnswerDone | Failed
