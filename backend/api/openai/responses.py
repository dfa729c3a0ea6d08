"""Answers as OpenAI's responses: in events as they come about, or whole."""

import json
import secrets
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from fastapi.sse import format_sse_event

from backend.api import openai_errors
from backend.api.openai.turn import TurnText
from backend.api.problem_details import Problem
from backend.api.server_sent_events import SentEvent
from backend.schemas.base import Schema
from backend.schemas.openai_response import (
    FailureCode,
    IncompleteDetails,
    MessageStatus,
    OpenAiResponse,
    OutputMessage,
    OutputText,
    ResponseCitation,
    ResponseFailure,
    ResponseStatus,
    ResponseUsage,
)
from backend.schemas.system import ProblemDetails

_ID_BYTES = 18
_OF_MESSAGE = {"output_index": 0}
_LAST = {"response.completed", "response.incomplete", "response.failed"}


@dataclass(frozen=True, slots=True)
class ResponseEvent:
    """Implements `server_sent_events.SentEvent`."""

    type: str
    values: dict[str, object]

    @property
    def is_last(self) -> bool:
        return self.type in _LAST

    def encoded(self, number: int) -> bytes:
        data = {"type": self.type, "sequence_number": number - 1, **self.values}
        return format_sse_event(data_str=json.dumps(data), event=self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseForm:
    """Implements `openai_turn.AnswerForm`."""

    model: str
    """The assistant, as the client named it."""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(_ID_BYTES))
    created: int = field(default_factory=lambda: int(time.time()))

    def stream(self, text: TurnText) -> Generator[SentEvent, None, None]:
        yield from self._begin()
        pieces = []
        try:
            for piece in text.write():
                pieces.append(piece)
                yield self._of_text("output_text.delta", delta=piece, logprobs=[])
        except Problem as failure:
            yield self.encode_failure(failure.problem)
            return
        yield from self._end(text, "".join(pieces))

    def make_whole(self, text: TurnText, written: str) -> OpenAiResponse:
        was_cut = text.finish == "length"
        return self._make(
            "incomplete" if was_cut else "completed",
            incomplete_details=IncompleteDetails() if was_cut else None,
            output=(self._make_message(text, written),),
            usage=ResponseUsage.from_counts(text.usage()),
        )

    def encode_failure(self, found: ProblemDetails) -> ResponseEvent:
        message = openai_errors.make_error(found).error.message
        failure = ResponseFailure(code=_find_code(found), message=message)
        return _encode_response("response.failed", self._make("failed", error=failure))

    def _begin(self) -> Iterator[ResponseEvent]:
        begun = self._make("in_progress")
        yield _encode_response("response.created", begun)
        yield _encode_response("response.in_progress", begun)
        message = OutputMessage(id=self._message_id, status="in_progress", content=())
        item = message.model_dump(mode="json")
        yield ResponseEvent("response.output_item.added", {**_OF_MESSAGE, "item": item})
        yield self._of_text("content_part.added", part=OutputText(text="").model_dump(mode="json"))

    def _end(self, text: TurnText, written: str) -> Iterator[ResponseEvent]:
        whole = self.make_whole(text, written)
        (message,) = whole.output
        (part,) = message.content
        for index, one in enumerate(part.annotations):
            annotation = one.model_dump(mode="json")
            yield self._of_text(
                "output_text.annotation.added", annotation_index=index, annotation=annotation
            )
        yield self._of_text("output_text.done", text=written, logprobs=[])
        yield self._of_text("content_part.done", part=part.model_dump(mode="json"))
        item = message.model_dump(mode="json")
        yield ResponseEvent("response.output_item.done", {**_OF_MESSAGE, "item": item})
        yield _encode_response(f"response.{whole.status}", whole)

    def _of_text(self, name: str, **values: object) -> ResponseEvent:
        place = {**_OF_MESSAGE, "item_id": self._message_id, "content_index": 0}
        return ResponseEvent(f"response.{name}", place | values)

    def _make_message(self, text: TurnText, written: str) -> OutputMessage:
        status: MessageStatus = "incomplete" if text.finish == "length" else "completed"
        citations = tuple(map(ResponseCitation.from_citation, text.citations()))
        content = (OutputText(text=written, annotations=citations),)
        return OutputMessage(id=self._message_id, status=status, content=content)

    def _make(self, status: ResponseStatus, **values: object) -> OpenAiResponse:
        head = {"id": f"resp_{self.id}", "created_at": self.created, "model": self.model}
        return OpenAiResponse.model_validate({**head, "status": status, **values})

    @property
    def _message_id(self) -> str:
        return f"msg_{self.id}"


def _encode_response(name: str, response: Schema) -> ResponseEvent:
    return ResponseEvent(name, {"response": response.model_dump(mode="json")})


def _find_code(found: ProblemDetails) -> FailureCode:
    match found.type:
        case openai_errors.TOO_LONG | openai_errors.WITHHELD as code:
            return code
        case _:
            return "server_error"
