"""Ask the models of a step of research: within a budget of tokens, for text or for JSON."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from backend.chat.llm.client import ChatModel, ModelRequestError, make_complete
from backend.chat.llm.messages import ModelEvent, ModelMessage, ToolSpec
from backend.chat.llm.metering import UsageMeter
from backend.chat.llm.model_settings import ModelSettings
from backend.chat.loose_json import parse_loose_json
from backend.chat.substituted_model import meter_model
from backend.research import prompts
from backend.research.dependencies import ResearchDependencies
from backend.research.knowledge.messages import MESSAGE_TOKENS
from backend.search.llm_protocol import ChatMessage, Complete, CompletionError
from backend.search.prompts import strip_reasoning
from backend.store.llm.model_usage import TokenCounts
from indexing.embedding.token_counting import CountTokens
from indexing.runtime.deadline import Deadline

BUDGET_ENDED = "The budget of tokens has ended."
CALL_SECONDS = 120.0
"""For a call that writes little; reports have longer."""
QUOTED_CHARACTERS = 2_000
"""Of an answer that could not be read, shown to the model again."""

T = TypeVar("T")
Read: TypeAlias = Callable[[object], T | None]
"""Returns what a JSON value means; None where it is not what was asked for."""


@dataclass(frozen=True, slots=True)
class BudgetedModel:
    """A model that is asked nothing more once its budget has ended."""

    model: ChatModel
    meter: UsageMeter
    most: int
    """Tokens that all calls of the meter may come to."""
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
        """Stream as the model does, while the budget lasts. Raises ModelRequestError."""
        if read_tokens(self.meter) + self._count(messages) > self.most:
            raise ModelRequestError(BUDGET_ENDED)
        yield from self.model.stream(messages, deadline, tools)

    def _count(self, messages: Sequence[ModelMessage]) -> int:
        return sum(self.count_tokens(one.text) + MESSAGE_TOKENS for one in messages)


@dataclass(frozen=True, slots=True)
class RefusingModel:
    """Answers nothing: each call fails with the reason."""

    settings: ModelSettings
    reason: str

    def stream(
        self,
        messages: Sequence[ModelMessage],
        deadline: Deadline,
        tools: Sequence[ToolSpec] = (),
    ) -> Generator[ModelEvent, None, None]:
        """Refuse every call. Raises ModelRequestError."""
        del messages, deadline, tools
        raise ModelRequestError(self.reason)
        yield


def refuse_models(dependencies: ResearchDependencies, reason: str) -> ResearchDependencies:
    """Return the same with models that answer nothing."""
    writer = RefusingModel(dependencies.writer.settings, reason)
    fast = RefusingModel(dependencies.fast.settings, reason)
    return replace(dependencies, writer=writer, fast=fast)


def read_tokens(meter: UsageMeter) -> int:
    used = sum(meter.read().values(), TokenCounts())
    return used.input_tokens + used.output_tokens


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """The calls of one step, counted together."""

    dependencies: ResearchDependencies
    most_tokens: int
    meter: UsageMeter = field(default_factory=UsageMeter)

    @property
    def tokens(self) -> int:
        """Spent so far."""
        return read_tokens(self.meter)

    @property
    def tokens_left(self) -> int:
        return max(0, self.most_tokens - self.tokens)

    @property
    def writer(self) -> ChatModel:
        return self._budget(self.dependencies.writer)

    @property
    def write(self) -> Complete:
        return make_complete(self.writer)

    @property
    def judge(self) -> Complete:
        """Asks the fast model."""
        return make_complete(self._budget(self.dependencies.fast))

    @property
    def room(self) -> int:
        """The tokens that what is shown to either model may have in one call."""
        models = (self.dependencies.writer, self.dependencies.fast)
        return min(self.tokens_left, *(one.settings.prompt_tokens for one in models)) // 2

    def _budget(self, model: ChatModel) -> ChatModel:
        count_tokens = self.dependencies.count_tokens
        metered = meter_model(model, self.meter, count_tokens)
        return BudgetedModel(metered, self.meter, self.most_tokens, count_tokens)


def ask_for_json(
    complete: Complete, messages: Sequence[ChatMessage], read: Read[T], deadline: Deadline
) -> T:
    """Ask for a JSON object; an answer that cannot be read may be corrected once.

    Raises:
        CompletionError: the model does not answer, or not as it was asked to.
    """
    answer = complete(messages, deadline.limited_to(CALL_SECONDS))
    if (value := read(parse_object(answer))) is not None:
        return value
    quoted = ChatMessage("assistant", answer[:QUOTED_CHARACTERS])
    again = [*messages, quoted, ChatMessage("user", prompts.UNREADABLE)]
    answer = complete(again, deadline.limited_to(CALL_SECONDS))
    if (value := read(parse_object(answer))) is not None:
        return value
    raise CompletionError("The language model did not answer in the form that was asked for.")


def parse_object(answer: str) -> object:
    """Return the JSON object in an answer, whatever stands around it; None if there is none."""
    text = strip_reasoning(answer)
    start, end = text.find("{"), text.rfind("}")
    return parse_loose_json(text[start : end + 1]) if 0 <= start < end else None


def read_texts(value: object, most: int, longest: int) -> list[str]:
    """Return the texts among a value that should be a list of them: on one line each, each once, the first ones."""
    listed = value if isinstance(value, list) else [value]
    lines = (" ".join(one.split())[:longest].rstrip() for one in map(_find_text, listed) if one)
    distinct = {line.casefold(): line for line in reversed(list(lines)) if line}
    return list(reversed(distinct.values()))[:most]


def _find_text(value: object) -> str:
    """Return a text, or the first one of an object around it, such as `{"question": "..."}`."""
    match value:
        case str():
            return value
        case dict():
            return next((one for one in value.values() if isinstance(one, str)), "")
        case _:
            return ""


def cut_to_tokens(text: str, most: int, count_tokens: CountTokens) -> str:
    """Return as much of the beginning of a text as comes to so many tokens, or a little less."""
    while text and (cost := count_tokens(text)) > most:
        text = text[: max(0, int(len(text) * most / cost * 0.95) - 1)]
    return text
