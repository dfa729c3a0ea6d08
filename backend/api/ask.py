"""`POST /api/ask`: an answer as it comes about, step by step."""

import html
import time
from collections.abc import Generator
from datetime import date
from typing import Annotated, Literal

from fastapi import FastAPI
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend import encoding
from backend.api import examples, problems
from backend.api.asker import AskerIs
from backend.api.events import Event, EventStream, from_thread
from backend.api.filters import FiltersBody
from backend.api.parts import AnswerHtml, PartsIs, QuarryIs
from backend.api.rules import Rule, ruled
from backend.api.visit import VisitIs
from backend.assembly import Quarry
from backend.chat.citations import CitationInfo
from backend.chat.events import AnswerDone, ChatEvent, Failed, ReasoningStep, TextPiece
from backend.chat.loop import ChatTurn
from backend.chat.state import ChatStateContainer
from backend.search.completion import Message
from backend.search.events import (
    FirstResults,
    FusedResults,
    Narrowed,
    Queries,
    SearchDone,
    Selected,
    VariantLost,
)
from backend.wire import AnsweredWire, AnswerWire, LostWire, TextWire
from connectors.errors import AskTheOwner, RetryLater
from indexing.runtime.deadline import Deadline, DeadlineExceeded

LONGEST_QUESTION = 8_000
LONGEST_MESSAGE = 40_000
MOST_MESSAGES = 100


def _asked(text: str) -> str:
    if not text.strip():
        raise ValueError("write a question")
    return text


class MessageBody(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Literal["user", "assistant"]
    text: str = Field(max_length=LONGEST_MESSAGE)


class AskBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [examples.ASK]}
    )

    question: Annotated[
        str,
        Field(max_length=LONGEST_QUESTION, json_schema_extra={"pattern": r"\S"}),
        AfterValidator(_asked),
    ]
    filters: FiltersBody = FiltersBody()
    history: tuple[MessageBody, ...] = Field(
        default=(), max_length=MOST_MESSAGES, description="What was said before, oldest first"
    )


def add_routes(app: FastAPI) -> None:
    app.post(
        "/api/ask",
        status_code=200,
        response_class=EventStream,
        responses={200: examples.stream(examples.ANSWER_EVENTS)},
        summary="Answer a question, each sentence with its source",
    )(ask)


@ruled(Rule.READER)
def ask(
    body: AskBody, asker: AskerIs, quarry: QuarryIs, parts: PartsIs, visit: VisitIs
) -> EventStream:
    """Server-sent events, in this order: `queries`, `first_results`; with a language model again
    `queries` and `lost` steps; `results`, `selected`; `reasoning`, `citation` and `text` as they
    are written; at the end `done`, or `error` with problem details. Closing the connection stops
    the answer, and the language model."""
    visit.asked = body.question
    turn = ChatTurn(
        message=body.question,
        readers=asker.readers,
        deadline=Deadline.after(quarry.settings.answer_seconds, visit.stop),
        history=tuple(Message(one.role, one.text) for one in body.history),
        filters=body.filters.filters(),
        today=date.today(),
    )
    return EventStream(
        lambda: from_thread(lambda: told(quarry, turn, parts.answer_html)), parts.streams
    )


def told(quarry: Quarry, turn: ChatTurn, answer_html: AnswerHtml) -> Generator[Event, None, None]:
    """The events of a turn, as they are sent; the last is `done` or `error`."""
    began = time.perf_counter()
    events = quarry.answer(turn, (), ChatStateContainer())
    try:
        for event in events:
            if isinstance(event, AnswerDone):
                answer = encoding.answer(turn.message, event, time.perf_counter() - began)
                yield Event("done", AnsweredWire(answer=answer, html=answer_html(answer)))
            elif (step := _step(event)) is not None:
                yield step
    except (RetryLater, AskTheOwner, DeadlineExceeded) as error:
        yield Event("error", problems.of_error(error))
    finally:
        if isinstance(events, Generator):
            events.close()


def _step(event: ChatEvent) -> Event | None:
    match event:
        case Queries():
            return Event("queries", encoding.queries(event))
        case FirstResults(sections=sections):
            return Event("first_results", encoding.results(sections))
        case FusedResults(sections=sections):
            return Event("results", encoding.results(sections))
        case Selected(sections=sections):
            return Event("selected", encoding.results(sections))
        case VariantLost(step=step, reason=reason):
            return Event("lost", LostWire(step=step, reason=reason))
        case ReasoningStep(text=text):
            return Event("reasoning", TextWire(text=text))
        case TextPiece(text=text):
            return Event("text", TextWire(text=text))
        case CitationInfo():
            return Event("citation", encoding.mark(event))
        case Failed(message=message, advice=advice):
            return Event("error", problems.problem(503, message, advice))
        case Narrowed() | SearchDone() | AnswerDone():
            return None


def plain_html(answer: AnswerWire) -> str:
    """Where nothing better renders it: the answer as it was written, as text."""
    return f"<p>{html.escape(answer.answer)}</p>"
