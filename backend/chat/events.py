"""The events of a turn. The last one is AnswerDone or TurnFailed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Self, TypeAlias

from backend.chat.citations.citation_processor import CitationInfo, SourceKind
from backend.chat.citations.verification import Support
from backend.chat.earlier_findings import EarlierFinding
from backend.chat.file_use import FilesGiven
from backend.chat.intent.search_plan import SearchPlan
from backend.chat.passages import PassagesReason, PassagesShown, QuotedPassage
from backend.search.events import SearchEvent
from backend.search.models import InferenceSection
from backend.web_search.results import PageOutcome
from backend.web_search.web_session import WebFinding
from connectors.errors import ActionRequiredError, QuarryError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError

SEARCH_ERRORS = (DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError)
"""What a search raises where the index does not answer."""

GENERAL_KNOWLEDGE = "From general knowledge, not from a source. Check it before you rely on it."
"""What is said of an answer that states something and cites nothing."""


@dataclass(frozen=True, slots=True)
class ReasoningStep:
    """A piece of the model's reasoning before its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the answer, in Markdown, its citations linked."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A citation of a document in the answer."""

    number: int
    document_id: str
    title: str
    link: str
    """As `safe_link` escapes it."""
    kind: SourceKind = SourceKind.DOCUMENT
    sentence: str
    """The cited sentence, without markers."""
    claim: str
    """The part of it that this citation supports; all of it if it has one citation only."""
    support: Support | None = None
    """What in the document supports the claim; None if unchecked or if there is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDocument:
    """A document under the citation number that it has in this turn."""

    number: int
    document_id: str
    title: str
    link: str
    """As `safe_link` escapes it."""
    sections: tuple[InferenceSection, ...]
    """Those that were shown; none for a file that was put in whole, nor for what is no document of the index."""
    kind: SourceKind = SourceKind.DOCUMENT
    source: str = ""
    """What its source is called, where that is not as its sections name it, or where there is none of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDone:
    text: str
    """The whole answer, as in its pieces."""
    plain: str
    """The same without citations."""
    citations: tuple[Citation, ...]
    """In the order of the text."""
    model: str | None
    """None if the answer is extractive."""
    cut: bool = False
    """The model reached its token limit before the end of the answer."""
    answered: bool = True
    """False if the model failed, or no model is set and no passage seems to answer."""
    passages: tuple[QuotedPassage, ...] = ()
    """Those that come closest, best first; none if a model answered."""
    passages_reason: PassagesReason | None = None
    """Why they are shown; None if a model answered."""
    uncited: tuple[str, ...] = ()
    """Sentences that state something and cite nothing, in the order of the text."""
    is_general_knowledge: bool = False
    """It states something and cites nothing: the model says what it has learned, not what a source says."""
    documents: tuple[ShownDocument, ...] = ()
    """All that were shown to the model, or quoted from, by number; also those that the answer does not cite."""
    files: FilesGiven | None = None
    """What became of the files that came with the question."""


class FailureCause(Enum):
    LENGTH = auto()
    """What is asked, with what comes with it, does not fit the language model."""
    MODEL = auto()
    """The language model or its provider failed, not the search or the message."""
    MODEL_SETUP = auto()
    """The provider of the language model refuses it as it is set up: only an admin can change that."""
    WITHHELD = auto()
    """The provider of the language model does not answer this message, or not in this way."""
    OTHER = auto()
    """Such as a search that failed."""


class AnswerFailedError(ActionRequiredError):
    """A turn ended without an answer; the advice says what the asker can do about it."""


@dataclass(frozen=True, slots=True)
class TurnFailed:
    message: str
    advice: str
    """What the asker can do about it."""
    cause: FailureCause = FailureCause.OTHER
    citations: tuple[Citation, ...] = ()
    """Of what was written until then."""
    retry_after: timedelta | None = None
    """Set where what failed is unavailable only now: at the earliest then it may be asked again."""

    @property
    def by_model(self) -> bool:
        return self.cause in (FailureCause.MODEL, FailureCause.MODEL_SETUP)

    @classmethod
    def from_search_error(
        cls, error: DeadlineExceededError | TemporarilyUnavailableError | ActionRequiredError
    ) -> "TurnFailed":
        match error:
            case ActionRequiredError():
                return cls("The search cannot answer.", str(error))
            case TemporarilyUnavailableError(retry_after=after):
                return cls(f"The search failed. {error}", "Ask again.", retry_after=after)
            case _:
                return cls(f"The search failed. {error}", "Ask again.")

    def to_error(self) -> QuarryError:
        """Return the error by which a caller of the turn learns of it: it has a status and an exit code."""
        if self.retry_after is None:
            return AnswerFailedError(self.message, self.advice)
        return TemporarilyUnavailableError(self.message, self.retry_after, self.advice)


@dataclass(frozen=True, slots=True)
class SearchPlanned:
    """What the message is looked up as; comes in Chat mode alone."""

    plan: SearchPlan


@dataclass(frozen=True, slots=True)
class WebSearched:
    """A search of the web, with what was sent and to whom."""

    finding: WebFinding
    withheld: tuple[str, ...] = ()
    """What was taken out of the query before: terms that only documents say which not everybody may read."""


@dataclass(frozen=True, slots=True)
class PagesRead:
    """Pages of the web that were read, or could not be."""

    pages: tuple[PageOutcome, ...]


@dataclass(frozen=True, slots=True)
class MemoriesShown:
    """What the asker asked to remember that the model is given; comes before the answer, which rests on it."""

    references: tuple[str, ...]
    """As `make_memory_reference` makes them."""


@dataclass(frozen=True, slots=True)
class EarlierFindingsShown:
    """What research found out before that the model is given; comes before the answer, which rests on the documents of it."""

    questions: tuple[str, ...]
    """That each of them answers."""
    document_ids: frozenset[str]

    @classmethod
    def of(cls, findings: Sequence[EarlierFinding]) -> Self:
        documents = frozenset[str]().union(*(one.document_ids for one in findings))
        return cls(tuple(one.question for one in findings), documents)


ChatEvent: TypeAlias = (
    SearchEvent
    | EarlierFindingsShown
    | MemoriesShown
    | SearchPlanned
    | WebSearched
    | PagesRead
    | FilesGiven
    | ReasoningStep
    | CitationInfo
    | TextPiece
    | PassagesShown
    | AnswerDone
    | TurnFailed
)
