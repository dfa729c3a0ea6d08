"""The events of an answer in the form in which clients receive them, as they come or to be stored."""

import html
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TypeAlias

from backend.api import problem_details
from backend.api.server_sent_events import BROKEN, Event
from backend.chat.citations.citation_processor import CitationInfo
from backend.chat.events import (
    AnswerDone,
    ChatEvent,
    EarlierFindingsShown,
    MemoriesShown,
    PagesRead,
    ReasoningStep,
    SearchPlanned,
    TextPiece,
    TurnFailed,
    WebSearched,
)
from backend.chat.file_use import FilesGiven
from backend.chat.passages import REASON_TEXTS, PassagesShown
from backend.chat.rights_watch import AskerGoneError, DocumentWithdrawnError
from backend.conversations.turn_events import EncodedEvent
from backend.schemas.answer import (
    AnswerDoneEvent,
    AnswerResponse,
    CitationEvent,
    PassagesEvent,
    TextEvent,
)
from backend.schemas.file import FilesGivenResponse
from backend.schemas.kept_knowledge import EarlierFindingsEvent
from backend.schemas.search import (
    NarrowedEvent,
    QueriesEvent,
    ResultsEvent,
    StepFailedEvent,
)
from backend.schemas.system import ProblemDetails
from backend.schemas.web_lookup import PagesReadEvent, PlannedEvent, WebSearchedEvent
from backend.search.events import (
    FiltersApplied,
    FirstResults,
    FusedResults,
    Queries,
    SearchDone,
    SectionsSelected,
    StepFailed,
)
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError

AnswerHtml: TypeAlias = Callable[[AnswerResponse], str]
"""Renders an answer as sanitized HTML."""

FAILURES = (
    TemporarilyUnavailableError,
    ActionRequiredError,
    DeadlineExceededError,
    AskerGoneError,
    DocumentWithdrawnError,
)
"""What a turn may end with."""
_GONE = problem_details.problem(
    401, "You are not signed in any more, so the answer ends here.", "Sign in, then ask again."
)
_WITHDRAWN = problem_details.problem(
    403,
    "A document that this answer draws on was deleted, or you may not read it any more. The answer ends here.",
    "Ask again.",
)


def answer_events(
    events: Generator[ChatEvent, None, None], question: str, answer_html: AnswerHtml
) -> Generator[Event, None, None]:
    """Yield the events of a turn, as they are sent; the last is `done` or `error`."""
    encoder = TurnEncoder(question, answer_html)
    try:
        with closing(events):
            for event in events:
                if (step := encoder.make_event(event)) is not None:
                    yield step
    except FAILURES as error:
        yield Event("error", describe_failure(error))


def describe_failure(error: Exception) -> ProblemDetails:
    """Return the problem of one of `FAILURES`."""
    match error:
        case AskerGoneError():
            return _GONE
        case DocumentWithdrawnError():
            return _WITHDRAWN
        case _:
            return problem_details.from_error(error)


@dataclass(frozen=True, slots=True)
class TurnEncoder:
    """Implements `backend.conversations.turn_events.EventEncoder`, for one turn."""

    question: str
    answer_html: AnswerHtml
    _began: float = field(default_factory=time.perf_counter)

    @property
    def broken(self) -> EncodedEvent:
        return _encode(BROKEN)

    def encode(self, event: ChatEvent) -> EncodedEvent | None:
        made = self.make_event(event)
        return None if made is None else _encode(made)

    def encode_failure(self, error: Exception) -> EncodedEvent:
        return _encode(Event("error", describe_failure(error)))

    def make_event(self, event: ChatEvent) -> Event | None:
        if not isinstance(event, AnswerDone):
            return _step(event)
        seconds = time.perf_counter() - self._began
        answer = AnswerResponse.from_answer(self.question, event, seconds)
        return Event("done", AnswerDoneEvent(answer=answer, html=self.answer_html(answer)))


def plain_html(answer: AnswerResponse) -> str:
    """Render an answer where nothing better does: as it was written, as text."""
    return f"<p>{html.escape(answer.answer)}</p>"


def _encode(event: Event) -> EncodedEvent:
    return EncodedEvent(event.name, event.data.model_dump_json())


def _step(event: ChatEvent) -> Event | None:
    match event:
        case FilesGiven():
            return Event("files", FilesGivenResponse.from_given(event))
        case Queries():
            return Event("queries", QueriesEvent.model_validate(event))
        case FirstResults(sections=sections):
            return Event("first_results", ResultsEvent.from_sections(sections))
        case FusedResults(sections=sections):
            return Event("results", ResultsEvent.from_sections(sections))
        case SectionsSelected(sections=sections):
            return Event("selected", ResultsEvent.from_sections(sections))
        case StepFailed(step=step, reason=reason):
            return Event("lost", StepFailedEvent(step=step, reason=reason))
        case ReasoningStep(text=text):
            return Event("reasoning", TextEvent(text=text))
        case TextPiece(text=text):
            return Event("text", TextEvent(text=text))
        case CitationInfo():
            return Event("citation", CitationEvent.model_validate(event))
        case PassagesShown():
            return Event("passages", PassagesEvent.from_shown(event, REASON_TEXTS[event.reason]))
        case TurnFailed():
            return Event("error", problem_details.from_error(event.to_error()))
        case FiltersApplied(filters=filters, inferred=inferred):
            return Event("narrowed", NarrowedEvent.from_filters(filters, inferred))
        case SearchPlanned(plan=plan):
            return Event("planned", PlannedEvent.from_plan(plan))
        case WebSearched(finding=finding, withheld=withheld):
            return Event("web_searched", WebSearchedEvent.from_finding(finding, withheld))
        case PagesRead(pages=pages):
            return Event("pages_read", PagesReadEvent.from_pages(pages))
        case EarlierFindingsShown(questions=questions):
            return Event("earlier_findings", EarlierFindingsEvent(questions=questions))
        case SearchDone() | MemoriesShown() | AnswerDone():
            return None
