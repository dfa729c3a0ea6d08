"""`POST /api/ask`: an answer as it comes about, step by step."""

from collections.abc import Iterable
from datetime import date
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from backend.api import openapi
from backend.api.answer_streams import AnswerStream
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import (
    AppStateDependency,
    AssistantIdField,
    AssistantsDependency,
    ChatDependency,
    DatabaseDependency,
    ReadersDependency,
    WebSessionsDependency,
)
from backend.api.request_context import RequestContextDependency
from backend.api.server_sent_events import EventStream
from backend.chat.turn import ChatTurn
from backend.schemas.question import Question
from backend.schemas.search import FiltersBody
from backend.schemas.turn_mode import ModeBody
from backend.search.llm_protocol import ChatMessage
from backend.store.accounts.people import NOBODY
from backend.store.chat.assistants import DEFAULT_ID
from indexing.runtime.deadline import Deadline

router = APIRouter()
LONGEST_MESSAGE = 40_000
MOST_MESSAGES = 100
MODE_CONFLICT = openapi.describe_problem(
    "A switch is set in Agent mode, or the web is switched off by the admins"
)


class MessageBody(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Literal["user", "assistant"]
    text: str = Field(max_length=LONGEST_MESSAGE)


class AskBody(ModeBody):
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

    question: Question
    filters: FiltersBody = FiltersBody()
    assistant: AssistantIdField = Field(default=DEFAULT_ID, description="Which assistant answers")
    history: tuple[MessageBody, ...] = Field(
        default=(), max_length=MOST_MESSAGES, description="What was said before, oldest first"
    )


class TriedQuestion(BaseModel):
    """What is asked of settings that are not saved."""

    question: Question
    history: tuple[MessageBody, ...] = Field(
        default=(), max_length=MOST_MESSAGES, description="What was said before, oldest first"
    )


def read_history(history: Iterable[MessageBody]) -> tuple[ChatMessage, ...]:
    return tuple(ChatMessage(one.role, one.text) for one in history)


@router.post(
    "/api/ask",
    status_code=200,
    response_class=EventStream,
    responses={200: openapi.describe_stream(openapi.ANSWER_EVENTS), 409: MODE_CONFLICT},
    summary="Answer a question, each sentence with its source",
)
@requires(Permission.ASK)
def ask(
    body: AskBody,
    request: Request,
    asker: AskerDependency,
    readers: ReadersDependency,
    chat: ChatDependency,
    web_sessions: WebSessionsDependency,
    database: DatabaseDependency,
    assistants: AssistantsDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> EventStream:
    """Server-sent events, in this order: `queries`, `narrowed` where filters apply or were read from words, `first_results`; with
    a language model in Chat mode `planned`, with what the question is looked up as, and `lost` steps; again `queries`, then `results`
    and `selected`, where company knowledge is asked; `web_searched` and `pages_read` where the web is; `passages` where no language
    model answers; `reasoning`, `citation` and `text` as they are written; at the end `done`, or `error`
    with problem details. In Agent mode the model searches as often as it likes, and there is no `planned`. A greeting or a writing
    task may be answered without `results`. Where the language
    model fails, `passages` and `done` with `answered: false` follow, or `error` if nothing was found.
    The rights of the asker are read again before each citation: where a document that the answer draws on is withdrawn, or the session or
    token has ended, the last event is an `error` with the status 403 or 401. Closing the connection stops the answer, and the language model."""
    context.query = body.question
    mode = body.read_permitted_mode(lambda: web_sessions.is_on)
    turn = ChatTurn(
        message=body.question,
        readers=readers,
        deadline=Deadline.after(chat.seconds, context.cancel_token),
        person_id=asker.person.id if asker.person else NOBODY,
        history=read_history(body.history),
        filters=body.filters.filters(),
        today=date.today(),
        mode=mode,
        assistant=assistants.find_settings(body.assistant),
    )
    return AnswerStream(request, state, chat, database).open(turn, asker)
