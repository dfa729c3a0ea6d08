"""Assemble the chunks of a streamed chat completion into events.

Servers differ in what they leave out and what they add; only what is used here is read.
"""

from collections.abc import Iterator

from pydantic import BaseModel

from backend.chat.llm.messages import (
    Finished,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Usage,
)

THINK_START, THINK_END = "<think>", "</think>"


class _Function(BaseModel):
    name: str | None = None
    arguments: str | None = None


class _Fragment(BaseModel):
    index: int | None = None
    id: str | None = None
    function: _Function = _Function()


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Fragment] | None = None


class _Choice(BaseModel):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Tokens(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Chunk(BaseModel):
    choices: list[_Choice] | None = None
    usage: _Tokens | None = None


class StreamParser:
    """Turns chunks into events: text as it arrives, tool calls once they are complete."""

    def __init__(self) -> None:
        self._text = _ReasoningSplitter()
        self._calls = _ToolCallAssembler()
        self._finish: str | None = None
        self._usage: Usage | None = None

    def feed(self, chunk: object) -> Iterator[ModelEvent]:
        """Parse a chunk. Raises ValueError: it is not one of a chat completion."""
        if not isinstance(chunk, BaseModel):
            raise ValueError(f"not a chunk of a chat completion: {chunk!r:.100}")
        read = _Chunk.model_validate(chunk.model_dump(warnings=False))
        if read.usage:
            self._usage = Usage(read.usage.prompt_tokens, read.usage.completion_tokens)
        for choice in read.choices or ():
            self._finish = choice.finish_reason or self._finish
            yield from self._parse_delta(choice.delta)

    def end(self) -> Iterator[ModelEvent]:
        """End the stream. Raises ValueError: it was incomplete."""
        if self._finish is None:
            raise ValueError("the stream ended before the answer did")
        yield from self._text.end()
        yield from self._calls.assemble()
        yield Finished(self._finish, self._usage)

    def _parse_delta(self, delta: _Delta) -> Iterator[ModelEvent]:
        if reasoning := delta.reasoning_content or delta.reasoning:
            yield ReasoningDelta(reasoning)
        if text := delta.content or delta.refusal:
            yield from self._text.feed(text)
        for fragment in delta.tool_calls or ():
            self._calls.feed(fragment)


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
        at = self._slot(fragment)
        self._ids[at] = self._ids[at] or fragment.id or ""
        self._names[at] = self._names[at] or fragment.function.name or ""
        self._arguments[at].append(fragment.function.arguments or "")

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
            yield ToolCall(identity or f"call-{number}", name, "".join(arguments))


class _ReasoningSplitter:
    """Separates reasoning from text when a model writes `<think>…</think>` before its answer."""

    def __init__(self) -> None:
        self._held = ""
        self._thinking: bool | None = None
        """None until the first characters have decided."""

    def feed(self, text: str) -> Iterator[ModelEvent]:
        self._held += text
        if self._thinking is None:
            self._detect_reasoning()
        if self._thinking:
            yield from self._split_reasoning()
        if self._thinking is False:
            yield from self._flush_text()

    def end(self) -> Iterator[ModelEvent]:
        """Return what was held back; reasoning that was never closed remains reasoning."""
        if self._held:
            yield ReasoningDelta(self._held) if self._thinking else TextDelta(self._held)
        self._held = ""

    def _detect_reasoning(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(THINK_START):
            self._thinking, self._held = True, begun.removeprefix(THINK_START)
        elif not THINK_START.startswith(begun):
            self._thinking = False

    def _split_reasoning(self) -> Iterator[ModelEvent]:
        reasoning, closed, rest = self._held.partition(THINK_END)
        if closed:
            self._thinking, self._held = False, rest.lstrip()
        else:
            kept = _partial_length(reasoning, THINK_END)
            split = len(reasoning) - kept
            reasoning, self._held = reasoning[:split], reasoning[split:]
        if reasoning:
            yield ReasoningDelta(reasoning)

    def _flush_text(self) -> Iterator[ModelEvent]:
        if self._held:
            yield TextDelta(self._held)
        self._held = ""


def _partial_length(text: str, tag: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of `tag`."""
    longest = min(len(text), len(tag) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(tag[:n])), 0)
