"""Run one step of the model: stream its text with citations, collect its tool calls."""

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import CitedText, DynamicCitationProcessor
from backend.chat.events import ChatEvent, ReasoningStep, TextPiece
from backend.chat.llm.client import LanguageModel
from backend.chat.llm.messages import (
    Finished,
    ForcedTool,
    ModelMessage,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolChoice,
    ToolSpec,
)
from backend.chat.tools import TOOL_NAMES
from backend.chat.written_calls import split_written_calls
from indexing.runtime.deadline import Deadline

PARAGRAPH = "\n\n"


@dataclass(frozen=True, slots=True)
class StepRequest:
    messages: Sequence[ModelMessage]
    deadline: Deadline
    tools: Sequence[ToolSpec] = ()
    tool_choice: ToolChoice = "auto"


@dataclass(frozen=True, slots=True)
class StepResult:
    text: str
    """As the model wrote it."""
    calls: tuple[ToolCall, ...]
    finish: str


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes the text of a turn to its record, with citations."""

    processor: DynamicCitationProcessor
    state: ChatStateContainer

    def write(self, token: str | None) -> list[ChatEvent]:
        """Add a token to the answer, and return the events of what it adds."""
        return [self._record(piece) for piece in self.processor.process_token(token)]

    def _record(self, piece: CitedText) -> ChatEvent:
        self.state.add_answer(piece)
        return TextPiece(piece) if isinstance(piece, str) else piece


def run_llm_step(
    model: LanguageModel, request: StepRequest, answer: AnswerWriter
) -> Generator[ChatEvent, None, StepResult]:
    """Call the model once, and stream its events.

    Text beside a call that the model was forced to make is no part of the answer. If the step is
    broken off by either side, the record has all that was written.

    Raises:
        ModelError: as the model does.
    """
    stream = model.stream(request.messages, request.deadline, request.tools, request.tool_choice)
    tokens: list[str] = []
    calls: list[ToolCall] = []
    finish = ""
    try:
        with closing(stream):
            for event in split_written_calls(stream, TOOL_NAMES):
                match event:
                    case TextDelta(text):
                        tokens.append(text)
                        if not isinstance(request.tool_choice, ForcedTool):
                            yield from _separate_paragraph(tokens, answer)
                            yield from answer.write(text)
                    case ReasoningDelta(text):
                        answer.state.add_reasoning(text)
                        yield ReasoningStep(text)
                    case ToolCall():
                        calls.append(event)
                    case Finished(reason):
                        finish = reason
    finally:
        rest = answer.write(None)
    yield from rest
    return StepResult("".join(tokens), tuple(calls), finish)


def _separate_paragraph(tokens: Sequence[str], answer: AnswerWriter) -> list[ChatEvent]:
    """Begin the text of a step with a new paragraph."""
    first = len(tokens) == 1
    return answer.write(PARAGRAPH) if first and answer.state.has_text else []
