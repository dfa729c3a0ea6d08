"""JSON of answers as OpenAI's responses."""

from collections.abc import Mapping
from typing import Literal, Self, TypeAlias

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example
from backend.schemas.openai_completion import UrlCitation
from backend.store.chat.assistants import DEFAULT_ID
from backend.store.llm.model_usage import TokenCounts

ResponseStatus: TypeAlias = Literal["in_progress", "completed", "incomplete", "failed"]
MessageStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]


class ResponseCitation(UrlCitation):
    type: Literal["url_citation"] = "url_citation"

    @classmethod
    def from_citation(cls, citation: UrlCitation) -> Self:
        return cls(**citation.model_dump())


class OutputText(Schema):
    type: Literal["output_text"] = "output_text"
    text: str
    """Markdown; sources are named by their numbers in brackets."""
    annotations: tuple[ResponseCitation, ...] = ()
    """One for each marker, in the order of the text."""
    logprobs: tuple[float, ...] = ()
    """Always empty."""


class OutputMessage(Schema):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: MessageStatus
    content: tuple[OutputText, ...]


class CachedTokens(Schema):
    cached_tokens: Literal[0] = 0


class ReasoningTokens(Schema):
    reasoning_tokens: Literal[0] = 0


class ResponseUsage(Schema):
    """Of all calls that the answer took; parts of them are not counted apart."""

    input_tokens: int
    input_tokens_details: CachedTokens = CachedTokens()
    output_tokens: int
    output_tokens_details: ReasoningTokens = ReasoningTokens()
    total_tokens: int

    @classmethod
    def from_counts(cls, counts: TokenCounts) -> Self:
        return cls(
            input_tokens=counts.input_tokens,
            output_tokens=counts.output_tokens,
            total_tokens=counts.input_tokens + counts.output_tokens,
        )


FailureCode: TypeAlias = Literal["server_error", "context_length_exceeded", "content_filter"]


class ResponseFailure(Schema):
    code: FailureCode = "server_error"
    message: str


class IncompleteDetails(Schema):
    reason: Literal["max_output_tokens"] = "max_output_tokens"


_EXAMPLE: Mapping[str, JsonValue] = {
    "id": "resp_3vT0cWqXe2mYbR9s",
    "created_at": 1_772_443_800,
    "model": DEFAULT_ID,
    "status": "completed",
    "output": [
        {
            "id": "msg_3vT0cWqXe2mYbR9s",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": "Parents have 26 weeks of paid leave [1].",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "start_index": 36,
                            "end_index": 39,
                            "url": "http://127.0.0.1:8321/document/handbook%3Apeople/parental-leave.md",
                            "title": "Parental leave",
                        }
                    ],
                }
            ],
        }
    ],
    "usage": {"input_tokens": 1_930, "output_tokens": 12, "total_tokens": 1_942},
}


class OpenAiResponse(Schema):
    model_config = with_example(**_EXAMPLE)

    id: str
    object: Literal["response"] = "response"
    created_at: int
    """Seconds since 1970."""
    status: ResponseStatus
    error: ResponseFailure | None = None
    incomplete_details: IncompleteDetails | None = None
    model: str
    """The assistant."""
    output: tuple[OutputMessage, ...] = ()
    usage: ResponseUsage | None = None
    parallel_tool_calls: Literal[False] = False
    tool_choice: Literal["none"] = "none"
    tools: tuple[str, ...] = ()
    store: Literal[False] = False
    previous_response_id: None = None
