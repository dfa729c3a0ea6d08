"""Count the tokens that a turn uses, as the provider reports them or else as they are counted here."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

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
from backend.store.llm.model_usage import TokenCounts
from indexing.embedding.token_counting import CountTokens
from indexing.runtime.deadline import Deadline


class UsageMeter:
    """Adds up the calls of a turn, by the names of the models.

    Calls go on in several threads, and those of a turn that is stopped end later than the turn.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[str, Callable[[], Usage | None]]] = []

    def follow(self, model: str, count: Callable[[], Usage | None]) -> None:
        """Count a call from now on, as far as it has come whenever the meter is read; None is no call yet."""
        self._calls.append((model, count))

    def read(self) -> Mapping[str, TokenCounts]:
        used: dict[str, TokenCounts] = {}
        for model, count in tuple(self._calls):
            if (usage := count()) is not None:
                counts = TokenCounts(
                    input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens, calls=1
                )
                used[model] = used.get(model, TokenCounts()) + counts
        return used


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
        """Stream as the model does, and meter the tokens."""
        events: list[ModelEvent] = []
        count_sent = cache(lambda: sum(self.count_tokens(_text_sent(one)) for one in messages))
        name = self.settings.shown_name
        self.meter.follow(name, lambda: self._count(count_sent, tuple(events)))
        for event in self.model.stream(messages, deadline, tools):
            events.append(event)
            yield event

    def _count(self, count_sent: Callable[[], int], events: Sequence[ModelEvent]) -> Usage | None:
        """Return what was reported, or else count what was sent and what has come."""
        if not events:
            return None
        if isinstance(last := events[-1], Finished) and last.usage:
            return last.usage
        return Usage(count_sent(), self.count_tokens("".join(map(_text_of, events))))


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
