"""Count the tokens that a turn uses, as the provider reports them or else as they are counted here."""

import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from backend.chat.llm.client import ChatModel
from backend.chat.llm.messages import (
    CallMessage,
    Finished,
    ModelEvent,
    ModelMessage,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from backend.chat.llm.model_settings import ModelSettings
from backend.store.model_usage import TokenCounts
from indexing.embedding.token_counting import CountTokens
from indexing.runtime.deadline import Deadline


class UsageMeter:
    """Adds up the calls of a turn, by the names of the models. Calls may end in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, TokenCounts] = {}

    def add(self, model: str, usage: Usage) -> None:
        counts = TokenCounts(
            input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens, calls=1
        )
        with self._lock:
            self._used[model] = self._used.get(model, TokenCounts()) + counts

    def read(self) -> Mapping[str, TokenCounts]:
        with self._lock:
            return dict(self._used)


@dataclass(frozen=True, slots=True)
class MeteredModel:
    """A model whose calls are counted; one that fails before its first event costs nothing."""

    model: ChatModel
    meter: UsageMeter
    count_tokens: CountTokens

    @property
    def settings(self) -> ModelSettings:
        return self.model.settings

    def stream(
        self,
        messages: Sequence[ModelMessage],
        deadline: Deadline,
        tools: Sequence[ToolSpec] = (),
    ) -> Generator[ModelEvent, None, None]:
        """As that of the model."""
        written: list[str] = []
        reported: Usage | None = None
        try:
            for event in self.model.stream(messages, deadline, tools):
                written.append(_text_of(event))
                if isinstance(event, Finished):
                    reported = event.usage
                yield event
        finally:
            if written:
                usage = reported or self._count(messages, written)
                self.meter.add(self.settings.shown_name, usage)

    def _count(self, messages: Sequence[ModelMessage], written: Sequence[str]) -> Usage:
        """Count what was sent and what came, for a server that does not report it or a stream that broke off."""
        sent = sum(self.count_tokens(_text_sent(message)) for message in messages)
        return Usage(sent, self.count_tokens("".join(written)))


def _text_of(event: ModelEvent) -> str:
    match event:
        case TextDelta(text) | ReasoningDelta(text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name}{arguments}"
        case Finished():
            return ""


def _text_sent(message: ModelMessage) -> str:
    if isinstance(message, CallMessage):
        return "".join([message.text, *(call.arguments for call in message.calls)])
    return message.text
