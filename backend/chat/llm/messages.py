"""Messages to a language model, and the events of its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from backend.search.llm_protocol import ChatMessage


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is described to the model."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON schema of its arguments."""
    usage: str = ""
    """What the system prompt says of it where it is offered."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it; its arguments should be JSON, but may be anything."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallMessage:
    """The message in which the model called tools."""

    text: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call; every call of a `CallMessage` is followed by one."""

    call_id: str
    text: str


ModelMessage: TypeAlias = ChatMessage | CallMessage | ToolResult


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int


CUT_REASONS = frozenset({"length", "max_tokens", "model_length"})
"""Reasons of `Finished` that a limit was reached before the end of the answer."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every complete stream."""

    reason: str
    """As the server names it, in lower case: `stop`, `length`, `tool_calls`, `content_filter`, ..."""
    usage: Usage | None = None


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCall | Finished
