"""`POST /api/ask`: an answer as it comes about, step by step."""

import html
import time
from collections.abc import Generator
from datetime import date
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend.api import openapi, problem_details
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import (
    AnswerHtml,
    AppStateDependency,
    ChatDependency,
    DatabaseDependency,
    ReadersDependency,
)
from backend.api.readers_now import make_readers_now
from backend.api.request_context import RequestContextDependency
from backend.api.server_sent_events import Event, Events, EventStream, from_thread
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import CitationInfo
from backend.chat.events import AnswerDone, ChatEvent, ReasoningStep, TextPiece, TurnFailed
from backend.chat.llm_loop import ChatTurn
from backend.chat.passages import PassagesShown
from backend.chat.rights_watch import (
    AskerGoneError,
    DocumentWithdrawnError,
    RightsWatch,
)
from backend.composition.chat import ChatService
from backend.schemas.answer import (
    AnswerDoneEvent,
    AnswerResponse,
    CitationEvent,
    PassagesEvent,
    TextEvent,
)
from backend.schemas.search import (
    FiltersBody,
    NarrowedEvent,
    QueriesEvent,
    ResultsEvent,
    StepFailedEvent,
)
from backend.search.events import (
    FiltersApplied,
    FirstResults,
    FusedResults,
    Queries,
    SearchDone,
    SectionsSelected,
    StepFailed,
)
from backend.search.llm_protocol import ChatMessage
from backend.store.people import NOBODY
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

router = APIRouter()
LONGEST_QUESTION = 8_000
LONGEST_MESSAGE = 40_000
MOST_MESSAGES = 100
_GONE = problem_details.problem(
    401, "You are not signed in any more, so the answer ends here.", "Sign in, then ask again."
)
_WITHDRAWN = problem_details.problem(
    403,
    "A document that this answer draws on was deleted, or you may not read it any more. The answer ends here.",
    "Ask again.",
)


def _check_question(text: str) -> str:
    if not text.strip():
        raise ValueError("write a question")
    return text


class MessageBody(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Literal["user", "assistant"]
    text: str = Field(max_length=LONGEST_MESSAGE)


class AskBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "question": "And for adoptions?",
                    "history": [
                        {"role": "user", "text": "How long is parental leave?"},
                        {"role": "assistant", "text": "Parents have 26 weeks of paid leave."},
                    ],
                }
            ]
        },
    )

    question: Annotated[
        str,
        Field(max_length=LONGEST_QUESTION, json_schema_extra={"pattern": r"\S"}),
        AfterValidator(_check_question),
    ]
    filters: FiltersBody = FiltersBody()
    history: tuple[MessageBody, ...] = Field(
        default=(), max_length=MOST_MESSAGES, description="What was said before, oldest first"
    )


@router.post(
    "/api/ask",
    status_code=200,
    response_class=EventStream,
    responses={200: openapi.describe_stream(openapi.ANSWER_EVENTS)},
    summary="Answer a question, each sentence with its source",
)
@requires(Permission.ASK)
def ask(
    body: AskBody,
    request: Request,
    asker: AskerDependency,
    readers: ReadersDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> EventStream:
    """Server-sent events, in this order: `queries`, `narrowed` where filters apply or were read from words, `first_results`; with
    a language model again `queries` and `lost` steps; `results`, `selected`; `passages` where no language
    model answers; `reasoning`, `citation` and `text` as they are written; at the end `done`, or `error`
    with problem details. A greeting or a writing task may be answered without `results`. Where the language
    model fails, `passages` and `done` with `answered: false` follow, or `error` if nothing was found.
    The rights of the asker are read again before each citation: where a document that the answer draws on is withdrawn, or the session or
    token has ended, the last event is an `error` with the status 403 or 401. Closing the connection stops the answer, and the language model."""
    context.query = body.question
    turn = ChatTurn(
        message=body.question,
        readers=readers,
        deadline=Deadline.after(chat.seconds, context.cancel_token),
        person_id=asker.person.id if asker.person else NOBODY,
        history=tuple(ChatMessage(one.role, one.text) for one in body.history),
        filters=body.filters.filters(),
        today=date.today(),
    )

    def begin() -> Events:
        watch = RightsWatch(
            readers_now=make_readers_now(request, state.authenticator, database),
            index=chat.engine.index,
            deadline=turn.deadline,
        )
        return from_thread(lambda: answer_events(chat, turn, state.answer_html, watch))

    return EventStream(begin, state.pools.answers, asker.turn_key)


def answer_events(
    chat: ChatService, turn: ChatTurn, answer_html: AnswerHtml, watch: RightsWatch
) -> Generator[Event, None, None]:
    """The events of a turn, as they are sent; the last is `done` or `error`."""
    began = time.perf_counter()
    events = chat.answer(turn, (), ChatStateContainer())
    try:
        for event in watch.follow(events):
            if isinstance(event, AnswerDone):
                answer = AnswerResponse.from_answer(
                    turn.message, event, time.perf_counter() - began
                )
                yield Event("done", AnswerDoneEvent(answer=answer, html=answer_html(answer)))
            elif (step := _step(event)) is not None:
                yield step
    except (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError) as error:
        yield Event("error", problem_details.from_error(error))
    except AskerGoneError:
        yield Event("error", _GONE)
    except DocumentWithdrawnError:
        yield Event("error", _WITHDRAWN)
    finally:
        if isinstance(events, Generator):
            events.close()


def _step(event: ChatEvent) -> Event | None:
    match event:
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
            return Event("passages", PassagesEvent.from_shown(event))
        case TurnFailed(message=message, advice=advice):
            return Event("error", problem_details.problem(503, message, advice))
        case FiltersApplied(filters=filters, inferred=inferred):
            return Event("narrowed", NarrowedEvent.from_filters(filters, inferred))
        case SearchDone() | AnswerDone():
            return None


def plain_html(answer: AnswerResponse) -> str:
    """Where nothing better renders it: the answer as it was written, as text."""
    return f"<p>{html.escape(answer.answer)}</p>"
