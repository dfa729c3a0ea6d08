"""Answers as OpenAI's chat completions: in chunks as they come about, or whole."""

import secrets
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass, field

from fastapi.sse import format_sse_event
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backend.api import openai_errors
from backend.api.answer_events import FAILURES, describe_failure
from backend.api.answer_streams import RunTurn
from backend.api.document_addresses import SourceAddresses
from backend.api.openai_text import AnswerText, TextLimit
from backend.api.problem_details import Problem, problem
from backend.api.request_context import get_request_context
from backend.api.request_pools import FairPool
from backend.api.server_sent_events import SentEvent, SentEvents
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import AnswerDone, ChatEvent, TurnFailed
from backend.schemas.openai_completion import (
    Annotation,
    ChatCompletionChunk,
    ChatCompletionResponse,
    ChunkChoice,
    CompletionAnswer,
    CompletionChoice,
    CompletionDelta,
    CompletionUsage,
    FinishReason,
)
from backend.schemas.system import ProblemDetails

_ID_BYTES = 18
_NO_RETRY = {"X-Should-Retry": "false"}
"""OpenAI's clients ask again where a server fails; a turn that failed is seldom better the second time, and is not cheap."""
_END = "[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionForm:
    """What a client asked for besides the answer."""

    model: str
    """The assistant, as the client named it."""
    addresses: SourceAddresses
    make_limit: Callable[[], TextLimit]
    wants_usage: bool
    """In a stream."""
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_urlsafe(_ID_BYTES)}")
    created: int = field(default_factory=lambda: int(time.time()))


@dataclass(frozen=True, slots=True)
class EncodedData:
    """Implements `server_sent_events.SentEvent`: data without a name or a number."""

    data: str
    is_last: bool = False

    def encoded(self, number: int) -> bytes:
        del number
        return format_sse_event(data_str=self.data)


@dataclass(frozen=True, slots=True)
class WholeResult:
    """Implements `server_sent_events.SentEvent`: all of an answer, or why there is none."""

    result: ChatCompletionResponse | ProblemDetails
    is_last: bool = True

    def encoded(self, number: int) -> bytes:
        del number
        return self.result.model_dump_json().encode()


def encode_problem(found: ProblemDetails) -> EncodedData:
    """Return the error that ends a stream."""
    return EncodedData(openai_errors.make_error(found).model_dump_json(), is_last=True)


_BROKEN = problem(500, "An internal error occurred. The log says more.", "Ask again.")
BROKEN_STREAM, BROKEN_WHOLE = encode_problem(_BROKEN), WholeResult(_BROKEN)
STOPPING_STREAM = encode_problem(
    problem(503, "The server is stopping.", "Ask again when it is back.")
)


class _Writer:
    """Runs a turn, and writes its text."""

    def __init__(self, run: RunTurn, form: CompletionForm) -> None:
        self._run = run
        self._record = ChatStateContainer()
        self._text = AnswerText(form.addresses)
        self._limit = form.make_limit()
        self.finish: FinishReason = "stop"

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
                raise Problem(problem(503, event.message, event.advice))
            yield self._limit.take(self._text.add(event))
            if isinstance(event, AnswerDone):
                self.finish = "length" if event.cut else "stop"
                yield self._limit.end()
            if self._limit.reached:
                self.finish = self._limit.reached
                return

    def annotations(self) -> tuple[Annotation, ...]:
        return self._text.annotations(self._limit.length)

    def usage(self) -> CompletionUsage:
        return CompletionUsage.from_counts(self._record.read_usage())


def stream_chunks(run: RunTurn, form: CompletionForm) -> Generator[SentEvent, None, None]:
    """Run a turn, and yield its chunks; the last delta has the annotations."""
    writer = _Writer(run, form)
    yield _encode_chunk(form, CompletionDelta(role="assistant", content=""))
    try:
        for piece in writer.write():
            yield _encode_chunk(form, CompletionDelta(content=piece))
    except Problem as failure:
        yield encode_problem(failure.problem)
        return
    annotations = writer.annotations()
    last = CompletionDelta(annotations=annotations) if annotations else CompletionDelta()
    yield _encode_chunk(form, last, writer.finish)
    if form.wants_usage:
        yield _encode_usage(form, writer.usage())
    yield EncodedData(_END, is_last=True)


def collect_answer(run: RunTurn, form: CompletionForm) -> Generator[SentEvent, None, None]:
    """Run a turn, and yield the whole of its answer."""
    writer = _Writer(run, form)
    try:
        text = "".join(writer.write())
    except Problem as failure:
        yield WholeResult(failure.problem)
    else:
        yield WholeResult(_make_completion(form, writer, text))


def _encode_chunk(
    form: CompletionForm, delta: CompletionDelta, finish: FinishReason | None = None
) -> EncodedData:
    choice = ChunkChoice(index=0, delta=delta, finish_reason=finish)
    return _encode(form, choices=(choice,))


def _encode_usage(form: CompletionForm, usage: CompletionUsage) -> EncodedData:
    return _encode(form, choices=(), usage=usage)


def _encode(form: CompletionForm, **values: object) -> EncodedData:
    head = {"id": form.id, "created": form.created, "model": form.model}
    kind = "chat.completion.chunk"
    chunk = ChatCompletionChunk.model_validate({**head, "object": kind, **values})
    return EncodedData(chunk.model_dump_json(exclude_unset=True))


def _make_completion(form: CompletionForm, writer: _Writer, text: str) -> ChatCompletionResponse:
    message = CompletionAnswer(content=text, annotations=writer.annotations())
    return ChatCompletionResponse(
        id=form.id,
        created=form.created,
        model=form.model,
        choices=(CompletionChoice(message=message, finish_reason=writer.finish),),
        usage=writer.usage(),
    )


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
            found = await anext(events)
        result = found.result if isinstance(found, WholeResult) else None
        match result:
            case ChatCompletionResponse():
                return Response(result.model_dump_json(), media_type="application/json")
            case ProblemDetails():
                return openai_errors.make_response(result, _NO_RETRY)
            case None:
                raise ValueError("the answer did not come whole")
