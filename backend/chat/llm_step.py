"""One step of the model: its text as cited pieces, its tool calls as values."""

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
    """Where the text of a turn goes."""

    processor: DynamicCitationProcessor
    state: ChatStateContainer

    def tell(self, token: str | None) -> list[ChatEvent]:
        """Record what the token adds to the answer."""
        return [self._record(piece) for piece in self.processor.process_token(token)]

    def _record(self, piece: CitedText) -> ChatEvent:
        self.state.add_answer(piece)
        return TextPiece(piece) if isinstance(piece, str) else piece


def run_llm_step(
    model: LanguageModel, request: StepRequest, answer: AnswerWriter
) -> Generator[ChatEvent, None, StepResult]:
    """Ask the model once, and tell what it says while it says it.

    Text beside a call that the model was told to make is no answer, and is not told. When the step
    is broken off, by either side, all that was said is in the record.

    Raises:
        ModelError: as the model does.
    """
    asked = model.stream(request.messages, request.deadline, request.tools, request.tool_choice)
    said: list[str] = []
    calls: list[ToolCall] = []
    finish = ""
    try:
        with closing(asked):
            for event in asked:
                match event:
                    case TextDelta(text):
                        said.append(text)
                        if not isinstance(request.tool_choice, ForcedTool):
                            yield from _paragraph(said, answer)
                            yield from answer.tell(text)
                    case ReasoningDelta(text):
                        answer.state.add_reasoning(text)
                        yield ReasoningStep(text)
                    case ToolCall():
                        calls.append(event)
                    case Finished(reason):
                        finish = reason
    finally:
        rest = answer.tell(None)
    yield from rest
    return StepResult("".join(said), tuple(calls), finish)


def _paragraph(said: Sequence[str], answer: AnswerWriter) -> list[ChatEvent]:
    """The text of a step begins a paragraph of its own."""
    first = len(said) == 1
    return answer.tell(PARAGRAPH) if first and answer.state.has_text else []
