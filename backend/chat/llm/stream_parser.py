"""Assemble the chunks of a streamed chat completion into events.

Servers differ in what they leave out and what they add; only what is used here is read.
"""

import json
from collections.abc import Iterator

from pydantic import BaseModel, JsonValue

from backend.chat.llm.messages import (
    CUT_REASONS,
    Finished,
    ModelEvent,
    ReasoningDelta,
    ToolCall,
    Usage,
)
from backend.chat.llm.reasoning_splitter import ReasoningSplitter
from backend.chat.llm.surrogates import SurrogateJoiner, join_surrogates

_MOST_TOKENS = 1_000_000_000


class ReportedError(Exception):
    """The server reports an error instead of a chunk; the message is the server's."""


class _Function(BaseModel):
    name: str | None = None
    arguments: str | dict[str, JsonValue] | None = None


class _Fragment(BaseModel):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Fragment] | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Tokens(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(BaseModel):
    choices: list[_Choice] | None = None
    usage: _Tokens | None = None
    error: JsonValue = None


class StreamParser:
    """Turns chunks into events: text as it arrives, tool calls once they are complete."""

    def __init__(self) -> None:
        self._characters = SurrogateJoiner()
        self._reasoning_characters = SurrogateJoiner()
        self._text = ReasoningSplitter()
        self._calls = _ToolCallAssembler()
        self._finish: str | None = None
        self._usage: Usage | None = None

    def feed(self, data: str) -> Iterator[ModelEvent]:
        """Parse a chunk.

        Raises:
            ValueError, RecursionError: it is not one of a chat completion.
            ReportedError: it is an error of the server.
        """
        chunk = _Chunk.model_validate(json.loads(data))
        if chunk.error:
            raise ReportedError(_error_message(chunk.error))
        if chunk.usage:
            self._usage = _read_usage(chunk.usage)
        for choice in chunk.choices or ():
            self._finish = (choice.finish_reason or "").lower() or self._finish
            if choice.delta:
                yield from self._parse_delta(choice.delta)

    def finish(self, reason: str) -> None:
        """Give the reason for the end, where the server gave none."""
        self._finish = self._finish or reason

    def end(self) -> Iterator[ModelEvent]:
        """End the stream. Raises ValueError: it was incomplete."""
        if self._finish is None:
            raise ValueError("the stream ended before the answer did")
        if half := self._reasoning_characters.end():
            yield ReasoningDelta(half)
        yield from self._text.feed(self._characters.end())
        yield from self._text.break_off() if self._finish in CUT_REASONS else self._text.end()
        yield from self._calls.assemble()
        yield Finished(self._finish, self._usage)

    def _parse_delta(self, delta: _Delta) -> Iterator[ModelEvent]:
        reasoning = delta.reasoning_content or delta.reasoning or ""
        if reasoning := self._reasoning_characters.feed(reasoning):
            yield ReasoningDelta(reasoning)
        yield from self._text.feed(self._characters.feed(delta.content or delta.refusal or ""))
        for fragment in delta.tool_calls or ():
            self._calls.feed(fragment)


def _read_usage(tokens: _Tokens) -> Usage | None:
    """Return what a server reports; None if no answer could have taken that."""
    counts = (tokens.prompt_tokens or 0, tokens.completion_tokens or 0)
    return Usage(*counts) if all(0 <= count <= _MOST_TOKENS for count in counts) else None


def _error_message(error: JsonValue) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else json.dumps(error)


class _ToolCallAssembler:
    """Assembles tool calls by the index of their fragments.

    Some servers send every complete call under index 0: a new id there begins a new call.
    """

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._names: list[str] = []
        self._arguments: list[list[str]] = []
        self._at: dict[int, int] = {}

    def feed(self, fragment: _Fragment) -> None:
        at, function = self._slot(fragment), fragment.function or _Function()
        self._ids[at] = self._ids[at] or fragment.id or ""
        self._names[at] = self._names[at] or function.name or ""
        arguments = function.arguments or ""
        self._arguments[at].append(
            arguments if isinstance(arguments, str) else json.dumps(arguments)
        )

    def _slot(self, fragment: _Fragment) -> int:
        index = fragment.index or 0
        at = self._at.get(index)
        if at is not None and fragment.id in {None, "", self._ids[at]}:
            return at
        self._at[index] = len(self._ids)
        self._ids.append("")
        self._names.append("")
        self._arguments.append([])
        return self._at[index]

    def assemble(self) -> Iterator[ToolCall]:
        parts = zip(self._ids, self._names, self._arguments, strict=True)
        for number, (identity, name, arguments) in enumerate(parts, 1):
            written = (identity or f"call-{number}", name, "".join(arguments))
            yield ToolCall(*map(join_surrogates, written))
