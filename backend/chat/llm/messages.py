"""What is said to a language model, and what it says back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from backend.search.llm_protocol import ChatMessage


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON schema of its arguments."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it: its arguments should be JSON, and need not be."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallMessage:
    """The model's own turn in which it called tools."""

    text: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call brought; every call of a `CallMessage` is followed by one."""

    call_id: str
    text: str


ModelMessage: TypeAlias = ChatMessage | CallMessage | ToolResult


@dataclass(frozen=True, slots=True)
class Forced:
    """The model is to call this tool and no other."""

    name: str


ToolChoice: TypeAlias = Forced | Literal["auto"]


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


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every stream that was not broken off."""

    reason: str
    """As the server names it: `stop`, `length`, `tool_calls`, `content_filter`, ..."""
    usage: Usage | None = None


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCall | Finished
