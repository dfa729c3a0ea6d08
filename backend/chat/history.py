"""What is said to the model in a turn, always within its window."""

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

from backend.chat.llm.messages import CallMessage, ModelMessage, ToolResult, ToolSpec
from backend.chat.prompts import (
    BY_SEARCHING,
    NO_LONGER_SHOWN,
    question_prompt,
    system_prompt,
)
from backend.search.llm_protocol import ChatMessage
from backend.search.models import Budgets
from indexing.embedding.token_counting import CountTokens

MESSAGE_TOKENS = 8
"""What a message costs beside its text: role, separators, ids."""
LEAST_RESULTS = 200
"""Tokens; with less room than this for what is found, no answer can be given."""


class MessageTooLongError(Exception):
    """The message, with its files, leaves no room in the model's window."""


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """Calls of the model, and their results."""

    calls: CallMessage
    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart:
    """What a turn begins with."""

    duties: tuple[str, ...]
    """For the system prompt."""
    today: date | None
    history: tuple[ChatMessage, ...]
    message: str
    files: str
    """For the model, whole; empty where there are none."""


class Conversation:
    """A turn's messages, which grow with each exchange and are cut to the window.

    The oldest messages of the history go first, then the oldest results; the system prompt, the
    question with its files, and the latest results stay.
    """

    def __init__(self, opening: TurnStart, window: int, count_tokens: CountTokens) -> None:
        self._opening = opening
        self._window = window
        self._count = lru_cache(maxsize=256)(count_tokens)
        self._results = ""
        self._exchanges: list[ToolExchange] = []

    def add_exchange(self, exchange: ToolExchange) -> None:
        self._exchanges.append(exchange)

    def put_results(self, results: str) -> None:
        """Beside the question, for a model that has not called the search itself."""
        self._results = results

    def budgets(self, tools: Sequence[ToolSpec], pending: Sequence[ToolExchange] = ()) -> Budgets:
        """For the next search: what the window allows, and what still fits into it.

        Args:
            pending: the exchange to which the results will belong, still without them.

        Raises:
            MessageTooLongError: hardly anything would.
        """
        usual = Budgets.for_window(self._window)
        least = [*map(_emptied, self._exchanges), *pending]
        room = self._room(tools) - self._count(self._results) - sum(map(self._cost, least))
        if room < LEAST_RESULTS:
            raise MessageTooLongError
        return replace(usual, answer=min(usual.answer, room))

    def messages(self, tools: Sequence[ToolSpec]) -> list[ModelMessage]:
        """Raises MessageTooLongError."""
        room = self._room(tools) - self._count(self._results)
        if room < 0:
            raise MessageTooLongError
        exchanges = self._exchanges_within(room)
        room -= sum(self._cost(exchange) for exchange in exchanges)
        question = question_prompt(self._opening.message, self._opening.files, self._results)
        return [
            ChatMessage("system", self._system(tools)),
            *recent_messages(self._opening.history, room, self._message_cost),
            ChatMessage("user", question),
            *itertools.chain.from_iterable(map(_spoken, exchanges)),
        ]

    def _system(self, tools: Sequence[ToolSpec]) -> str:
        """A model that is offered no tool is told of none, else it may write a call as its answer."""
        searching = (BY_SEARCHING,) if tools else ()
        return system_prompt(*self._opening.duties, *searching, today=self._opening.today)

    def _room(self, tools: Sequence[ToolSpec]) -> int:
        """What the fixed parts leave of the window."""
        question = question_prompt(self._opening.message, self._opening.files, " ")
        told = [json.dumps([tool.name, tool.description, tool.parameters]) for tool in tools]
        # A text may count more within another than by itself.
        slack = self._window // 100
        return self._window - slack - self._total([self._system(tools), question, *told])

    def _exchanges_within(self, room: int) -> list[ToolExchange]:
        """All of them, the results of the oldest left out as far as needed."""
        kept = list(self._exchanges)
        excess = sum(self._cost(exchange) for exchange in kept) - room
        for at, exchange in enumerate(kept[:-1]):
            if excess <= 0:
                break
            kept[at] = _emptied(exchange)
            excess -= self._cost(exchange) - self._cost(kept[at])
        if excess > 0:
            raise MessageTooLongError
        return kept

    def _cost(self, exchange: ToolExchange) -> int:
        calls = exchange.calls
        written = [calls.text, *(f"{call.name} {call.arguments}" for call in calls.calls)]
        return self._total([*written, *(result.text for result in exchange.results)])

    def _message_cost(self, message: ChatMessage) -> int:
        return self._total([message.text])

    def _total(self, texts: Iterable[str]) -> int:
        return sum(self._count(text) + MESSAGE_TOKENS for text in texts)


def recent_messages(
    history: Sequence[ChatMessage], room: int, cost: Callable[[ChatMessage], int]
) -> list[ChatMessage]:
    """The latest messages that fit together, without gaps, the first of them a user's."""
    kept = 0
    for message in reversed(history):
        room -= cost(message)
        if room < 0:
            break
        kept += 1
    recent = history[len(history) - kept :]
    return list(itertools.dropwhile(lambda message: message.role != "user", recent))


def _spoken(exchange: ToolExchange) -> list[ModelMessage]:
    return [exchange.calls, *exchange.results]


def _emptied(exchange: ToolExchange) -> ToolExchange:
    results = tuple(replace(result, text=NO_LONGER_SHOWN) for result in exchange.results)
    return replace(exchange, results=results)
