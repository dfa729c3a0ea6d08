"""Run one step of the model: stream its text with citations, collect its tool calls."""

import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TypeAlias

from backend.chat.agent.tool_calls import TOOL_NAMES
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.bibliography import BibliographyFilter
from backend.chat.citations.citation_processor import (
    CitedText,
    DynamicCitationProcessor,
)
from backend.chat.events import ChatEvent, ReasoningStep, TextPiece
from backend.chat.llm.client import ChatModel, ModelError, ModelTimeoutError
from backend.chat.llm.messages import (
    Finished,
    ModelEvent,
    ModelMessage,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolSpec,
)
from backend.chat.written_calls import split_written_calls
from indexing.runtime.deadline import CancelToken, Deadline

PARAGRAPH = "\n\n"


@dataclass(frozen=True, slots=True)
class StepRequest:
    messages: Sequence[ModelMessage]
    deadline: Deadline
    tools: Sequence[ToolSpec] = ()
    preamble: int = 0
    """So many characters are no part of the answer if the step goes on to call tools."""


ModelStream: TypeAlias = Generator[ModelEvent, None, None]


def open_stream(model: ChatModel, request: StepRequest) -> ModelStream:
    """Ask the model when the first event is taken."""
    return model.stream(request.messages, request.deadline, request.tools)


_Arrived: TypeAlias = "SimpleQueue[ModelEvent | ModelError | None]"


def start_stream(
    model: ChatModel, request: StepRequest, patience: float | None = None
) -> ModelStream:
    """Ask the model at once, in a thread of its own that ends with the stream or the request's deadline.

    Args:
        patience: seconds to wait for the first event; by default until the deadline. Where it comes later, the
            stream raises ModelTimeoutError.
    """
    arrived: _Arrived = SimpleQueue()
    token = CancelToken()
    threading.Thread(target=_read_ahead, args=(model, request, arrived, token), daemon=True).start()
    return _take(arrived, token, patience)


def _read_ahead(
    model: ChatModel, request: StepRequest, arrived: _Arrived, token: CancelToken
) -> None:
    with ExitStack() as stack:
        stack.callback(arrived.put, None)
        if request.deadline.cancel_token is not None:
            stack.enter_context(request.deadline.cancel_token.on_cancel(token.cancel))
        try:
            deadline = replace(request.deadline, cancel_token=token)
            for event in open_stream(model, replace(request, deadline=deadline)):
                arrived.put(event)
        except ModelError as error:
            arrived.put(error)


def _take(arrived: _Arrived, token: CancelToken, patience: float | None) -> ModelStream:
    try:
        event = arrived.get(timeout=patience)
        while event is not None:
            if isinstance(event, ModelError):
                raise event
            yield event
            event = arrived.get()
    except Empty:
        raise ModelTimeoutError("The language model did not begin to answer in time.") from None
    finally:
        token.cancel()


@dataclass(frozen=True, slots=True)
class StepResult:
    text: str
    """As the model wrote it."""
    calls: tuple[ToolCall, ...]
    finish: str


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes the text of a step to the record of its turn, with citations; the list of sources is not the model's to write."""

    processor: DynamicCitationProcessor
    state: ChatStateContainer
    source_list: BibliographyFilter = field(default_factory=BibliographyFilter)

    def write(self, token: str) -> list[ChatEvent]:
        """Add a token to the answer, and return the events of what it adds."""
        return self._process(self.source_list.add(token))

    def end(self) -> list[ChatEvent]:
        """Return the events of what was held back."""
        return [*self._process(self.source_list.end()), *self._process(None)]

    def _process(self, token: str | None) -> list[ChatEvent]:
        return [self._record(piece) for piece in self.processor.process_token(token)]

    def _record(self, piece: CitedText) -> ChatEvent:
        self.state.add_answer(piece)
        return TextPiece(piece) if isinstance(piece, str) else piece


class _StepText:
    """The text of one step on its way into the answer."""

    def __init__(self, preamble: int, answer: AnswerWriter) -> None:
        self._preamble = preamble
        self._answer = answer
        self._held = ""
        self._begun = False

    def add(self, text: str) -> list[ChatEvent]:
        self._held += text
        is_preamble = not self._begun and len(self._held) <= self._preamble
        return [] if is_preamble else self.release()

    def end(self, calls: Sequence[ToolCall]) -> None:
        """Drop what is still held back if the step calls tools."""
        if calls and self._preamble:
            self._held = ""

    def release(self) -> list[ChatEvent]:
        """Write what is held back, the first of it as a new paragraph."""
        text, self._held = self._held, ""
        if not text:
            return []
        separates = not self._begun and self._answer.state.has_text
        self._begun = True
        return self._answer.write(f"{PARAGRAPH}{text}" if separates else text)


def run_llm_step(
    stream: ModelStream, preamble: int, answer: AnswerWriter
) -> Generator[ChatEvent, None, StepResult]:
    """Stream the events of one call to the model.

    Text is held back while it is no longer than a preamble, and dropped if calls follow. If the step
    is broken off by either side, the record has all that was written.

    Raises:
        ModelError: as the model does.
    """
    written = _StepText(preamble, answer)
    tokens: list[str] = []
    calls: list[ToolCall] = []
    finish = ""
    try:
        with closing(stream):
            for event in split_written_calls(stream, TOOL_NAMES):
                match event:
                    case TextDelta(text):
                        tokens.append(text)
                        yield from written.add(text)
                    case ReasoningDelta(text):
                        answer.state.add_reasoning(text)
                        yield ReasoningStep(text)
                    case ToolCall():
                        calls.append(event)
                    case Finished(reason):
                        finish = reason
                        written.end(calls)
    finally:
        rest = [*written.release(), *answer.end()]
    yield from rest
    return StepResult("".join(tokens), tuple(calls), finish)
