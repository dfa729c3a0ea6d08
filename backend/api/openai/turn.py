"""A turn that is answered in one of OpenAI's forms: as it is written, or whole."""

from collections.abc import Callable, Generator, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backend.api import openai_errors
from backend.api.answer_events import FAILURES, describe_failure
from backend.api.answer_streams import RunTurn
from backend.api.openai.refusals import describe_length, describe_withheld
from backend.api.openai.text import AnswerText, TextLimit
from backend.api.problem_details import Problem, from_error
from backend.api.request_context import get_request_context
from backend.api.request_pools import FairPool
from backend.api.server_sent_events import SentEvent, SentEvents
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import AnswerDone, ChatEvent, FailureCause, TurnFailed
from backend.schemas.base import Schema
from backend.schemas.openai_completion import FinishReason, UrlCitation
from backend.schemas.system import ProblemDetails
from backend.store.llm.model_usage import TokenCounts

_NO_RETRY = {"X-Should-Retry": "false"}
"""OpenAI's clients ask again where a server fails; a turn that failed is seldom better the second time, and is not cheap."""


class TurnText:
    """Runs a turn, and writes its text."""

    def __init__(self, run: RunTurn, text: AnswerText, limit: TextLimit) -> None:
        self._run = run
        self._text = text
        self._limit = limit
        self._record = ChatStateContainer()
        self.finish: FinishReason = "stop"
        """Known once the text is whole, as is what follows."""

    def write(self) -> Generator[str, None, None]:
        """Yield the pieces of the text; a limit that is reached ends the turn.

        Raises:
            Problem: the turn ends without an answer.
        """
        try:
            with closing(self._run(self._record)) as events:
                yield from filter(None, self._follow(events))
        except FAILURES as error:
            raise Problem(describe_failure(error)) from error

    def _follow(self, events: Iterator[ChatEvent]) -> Iterator[str]:
        for event in events:
            if isinstance(event, TurnFailed):
                raise Problem(_describe_failed_turn(event))
            yield self._limit.take(self._text.add(event))
            if isinstance(event, AnswerDone):
                self.finish = "length" if event.cut else "stop"
                yield self._limit.end()
            if self._limit.reached:
                self.finish = self._limit.reached
                return

    def citations(self) -> tuple[UrlCitation, ...]:
        return self._text.citations(self._limit.length)

    def usage(self) -> TokenCounts:
        return self._record.read_usage()


def _describe_failed_turn(failure: TurnFailed) -> ProblemDetails:
    match failure.cause:
        case FailureCause.LENGTH:
            return describe_length(failure.message, failure.advice)
        case FailureCause.WITHHELD:
            return describe_withheld(failure.message, failure.advice)
        case FailureCause.MODEL | FailureCause.MODEL_SETUP | FailureCause.OTHER:
            return from_error(failure.to_error())


class AnswerForm(Protocol):
    """How an answer is sent."""

    def stream(self, text: TurnText) -> Generator[SentEvent, None, None]:
        """Run the turn, and yield what is sent of it; a failure ends it."""

    def make_whole(self, text: TurnText, written: str) -> Schema: ...

    def encode_failure(self, found: ProblemDetails) -> SentEvent:
        """Return the last event of a stream that fails."""


@dataclass(frozen=True, slots=True)
class WholeResult:
    """Implements `server_sent_events.SentEvent`: all of an answer, or why there is none."""

    result: Schema
    is_last: bool = True

    def encoded(self, number: int) -> bytes:
        del number
        return self.result.model_dump_json().encode()


def collect_answer(text: TurnText, form: AnswerForm) -> Generator[SentEvent, None, None]:
    """Run a turn, and yield the whole of its answer."""
    try:
        written = "".join(text.write())
    except Problem as failure:
        yield WholeResult(failure.problem)
    else:
        yield WholeResult(form.make_whole(text, written))


class WholeAnswer(Response):
    """An answer that is sent once it is whole.

    It begins when the asker has a slot of the pool, and is refused if it gets none. The turn ends where the client
    closes the connection.
    """

    def __init__(self, begin: Callable[[], SentEvents], pool: FairPool, asker: str) -> None:
        super().__init__()
        self._begin = begin
        self._pool = pool
        self._asker = asker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = get_request_context(scope)
        try:
            async with self._pool.slot(self._asker, context.cancel_token):
                answer = await self._collect()
        except Problem as refusal:
            answer = openai_errors.make_response(refusal.problem, refusal.headers)
        await answer(scope, receive, send)

    async def _collect(self) -> Response:
        async with aclosing(self._begin()) as events:
            return _make_response(await anext(events))


def _make_response(found: SentEvent) -> Response:
    match found:
        case WholeResult(result=ProblemDetails() as failure):
            return openai_errors.make_response(failure, _NO_RETRY)
        case _:
            return Response(found.encoded(1), media_type="application/json")
