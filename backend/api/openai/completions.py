"""Answers as OpenAI's chat completions: in chunks as they come about, or whole."""

import secrets
import time
from collections.abc import Generator
from dataclasses import dataclass, field

from fastapi.sse import format_sse_event

from backend.api import openai_errors
from backend.api.openai.turn import TurnText
from backend.api.problem_details import Problem
from backend.api.server_sent_events import SentEvent
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
_END = "[DONE]"


@dataclass(frozen=True, slots=True)
class EncodedData:
    """Implements `server_sent_events.SentEvent`: data without a name or a number."""

    data: str
    is_last: bool = False

    def encoded(self, number: int) -> bytes:
        del number
        return format_sse_event(data_str=self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionForm:
    """Implements `openai_turn.AnswerForm`."""

    model: str
    """The assistant, as the client named it."""
    wants_usage: bool
    """In a stream."""
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_urlsafe(_ID_BYTES)}")
    created: int = field(default_factory=lambda: int(time.time()))

    def stream(self, text: TurnText) -> Generator[SentEvent, None, None]:
        """Yield the chunks; the last delta has the annotations."""
        yield self._encode_delta(CompletionDelta(role="assistant", content=""))
        try:
            for piece in text.write():
                yield self._encode_delta(CompletionDelta(content=piece))
        except Problem as failure:
            yield self.encode_failure(failure.problem)
            return
        annotations = _annotate(text)
        last = CompletionDelta(annotations=annotations) if annotations else CompletionDelta()
        yield self._encode_delta(last, text.finish)
        if self.wants_usage:
            yield self._encode(choices=(), usage=CompletionUsage.from_counts(text.usage()))
        yield EncodedData(_END, is_last=True)

    def make_whole(self, text: TurnText, written: str) -> ChatCompletionResponse:
        message = CompletionAnswer(content=written, annotations=_annotate(text))
        return ChatCompletionResponse(
            id=self.id,
            created=self.created,
            model=self.model,
            choices=(CompletionChoice(message=message, finish_reason=text.finish),),
            usage=CompletionUsage.from_counts(text.usage()),
        )

    def encode_failure(self, found: ProblemDetails) -> EncodedData:
        return EncodedData(openai_errors.make_error(found).model_dump_json(), is_last=True)

    def _encode_delta(
        self, delta: CompletionDelta, finish: FinishReason | None = None
    ) -> EncodedData:
        return self._encode(choices=(ChunkChoice(index=0, delta=delta, finish_reason=finish),))

    def _encode(self, **values: object) -> EncodedData:
        head = {"id": self.id, "created": self.created, "model": self.model}
        kind = "chat.completion.chunk"
        chunk = ChatCompletionChunk.model_validate({**head, "object": kind, **values})
        return EncodedData(chunk.model_dump_json(exclude_unset=True))


def _annotate(text: TurnText) -> tuple[Annotation, ...]:
    return tuple(Annotation(type="url_citation", url_citation=one) for one in text.citations())
