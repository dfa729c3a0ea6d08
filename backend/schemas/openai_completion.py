"""JSON of answers as OpenAI's chat completions: whole, and in chunks."""

from typing import Literal, Self, TypeAlias

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example
from backend.store.chat.assistants import DEFAULT_ID
from backend.store.llm.model_usage import TokenCounts

FinishReason: TypeAlias = Literal["stop", "length"]

_HEAD: dict[str, JsonValue] = {
    "id": "chatcmpl-3vT0cWqXe2mYbR9s",
    "created": 1_772_443_800,
    "model": DEFAULT_ID,
}
_ANNOTATION: dict[str, JsonValue] = {
    "type": "url_citation",
    "url_citation": {
        "start_index": 36,
        "end_index": 39,
        "url": "http://127.0.0.1:8321/document/handbook%3Apeople/parental-leave.md",
        "title": "Parental leave",
    },
}
_USAGE: dict[str, JsonValue] = {
    "prompt_tokens": 1_930,
    "completion_tokens": 12,
    "total_tokens": 1_942,
}


class UrlCitation(Schema):
    start_index: int
    """Of the marker in the text, in code points."""
    end_index: int
    url: str
    """Where the document is; its page here where no browser opens that."""
    title: str


class Annotation(Schema):
    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class CompletionUsage(Schema):
    """Of all calls that the answer took: those that plan, select and check included."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def from_counts(cls, counts: TokenCounts) -> Self:
        return cls(
            prompt_tokens=counts.input_tokens,
            completion_tokens=counts.output_tokens,
            total_tokens=counts.input_tokens + counts.output_tokens,
        )


class CompletionAnswer(Schema):
    role: Literal["assistant"] = "assistant"
    content: str
    """Markdown; sources are named by their numbers in brackets."""
    refusal: None = None
    annotations: tuple[Annotation, ...]
    """One for each marker, in the order of the text."""


class CompletionChoice(Schema):
    index: Literal[0] = 0
    message: CompletionAnswer
    finish_reason: FinishReason
    logprobs: None = None


class ChatCompletionResponse(Schema):
    model_config = with_example(
        **_HEAD,
        object="chat.completion",
        choices=[
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Parents have 26 weeks of paid leave [1].",
                    "refusal": None,
                    "annotations": [_ANNOTATION],
                },
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        usage=_USAGE,
    )

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    """Seconds since 1970."""
    model: str
    """The assistant."""
    choices: tuple[CompletionChoice]
    usage: CompletionUsage


class CompletionDelta(Schema):
    """What is left out adds nothing."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    annotations: tuple[Annotation, ...] | None = None


class ChunkChoice(Schema):
    index: Literal[0] = 0
    delta: CompletionDelta
    finish_reason: FinishReason | None = None


class ChatCompletionChunk(Schema):
    model_config = with_example(
        **_HEAD,
        object="chat.completion.chunk",
        choices=[{"index": 0, "delta": {"annotations": [_ANNOTATION]}, "finish_reason": "stop"}],
        usage=None,
    )

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    """None in the chunk that says what was used."""
    usage: CompletionUsage | None = None
