"""The messages to the model in a turn, always within its context window."""

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

from backend.chat.citations.citation_utils import remove_citations
from backend.chat.llm.messages import CallMessage, ModelMessage, ToolResult, ToolSpec
from backend.chat.pictures import PICTURE_TOKENS, Picture
from backend.chat.prompts import (
    NO_LONGER_SHOWN,
    SUM_UP,
    assistant_prompt,
    question_prompt,
    system_prompt,
)
from backend.search.llm_protocol import ChatMessage
from backend.search.models import Budgets
from connectors.errors import HandledError
from indexing.embedding.token_counting import CountTokens

MESSAGE_TOKENS = 8
"""Tokens of a message in addition to its text: role, separators, ids."""
MIN_RESULT_TOKENS = 200
"""With less space than this for search results, no answer can be given."""


class MessageTooLongError(HandledError):
    """The message with its files leaves no space in the model's context window."""


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """Tool calls of the model, and their results."""

    calls: CallMessage
    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart:
    instructions: tuple[str, ...]
    """For the system prompt."""
    today: date | None
    history: tuple[ChatMessage, ...]
    message: str
    files: str
    """Formatted for the model; empty if there are none."""
    summary: str = ""
    """Of what was said before the history; the model is always given it."""
    assistant: str = ""
    """The instructions of the assistant."""
    project: str = ""
    """Those of the project."""
    pictures: tuple[Picture, ...] = ()


def without_citations(history: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the history with its answers uncited: their numbers mean other documents by now."""
    return tuple(
        replace(message, text=remove_citations(message.text))
        if message.role == "assistant"
        else message
        for message in history
    )


class Conversation:
    """The messages of a turn, which grow with each exchange and are trimmed to the context window.

    The oldest messages of the history are dropped first, then the oldest results; the system prompt,
    the summary, the question with its files, and the latest results stay.
    """

    def __init__(self, start: TurnStart, window: int, count_tokens: CountTokens) -> None:
        self._start = start
        self._window = window
        self._count = lru_cache(maxsize=256)(count_tokens)
        self._results = ""
        self._question = ""
        """With its references, where it has any."""
        self._notes: tuple[str, ...] = ()
        self._exchanges: list[ToolExchange] = []

    def fit_window(self, window: int) -> None:
        """Trim to this window from now on."""
        self._window = window

    def leave_out_pictures(self) -> None:
        """Leave out the pictures from now on, for a model that does not see."""
        self._start = replace(self._start, pictures=())

    def add_exchange(self, exchange: ToolExchange) -> None:
        self._exchanges.append(exchange)

    def add_results(self, results: str) -> None:
        """Add results to the question, for a model that has not called the search itself."""
        self._results = "\n\n".join(filter(None, [self._results, results]))

    def put_references(self, question: str) -> None:
        """Put this in place of the message with its files."""
        self._question = question

    def add_notes(self, notes: Iterable[str]) -> None:
        """Add to the system prompt what was found out for the message."""
        self._notes = (*self._notes, *notes)

    def put_exchanges(self) -> None:
        """Put the results of all calls into the question, for a model that may know no messages of tools.

        Raises:
            MessageTooLongError: those of the last call do not fit.
        """
        kept = self._fit_exchanges(self._available(()) - self._count(self._results))
        for exchange in kept:
            for result in exchange.results:
                self.add_results(result.text)
        self._exchanges = []

    def budgets(self, tools: Sequence[ToolSpec], pending: Sequence[ToolExchange] = ()) -> Budgets:
        """Return the budgets of the next search: what the context window allows and has left.

        Args:
            pending: the exchange that the results will be added to.

        Raises:
            MessageTooLongError: there is no space for results.
        """
        usual = Budgets.for_window(self._window)
        minimal = [*map(_without_results, self._exchanges), *pending]
        available = (
            self._available(tools) - self._count(self._results) - sum(map(self._cost, minimal))
        )
        if available < MIN_RESULT_TOKENS:
            raise MessageTooLongError
        return replace(usual, answer=min(usual.answer, available))

    def messages(self, tools: Sequence[ToolSpec]) -> list[ModelMessage]:
        """Return what the model is sent, trimmed to its window. Raises MessageTooLongError."""
        available = self._available(tools) - self._count(self._results)
        if available < 0:
            raise MessageTooLongError
        exchanges = self._fit_exchanges(available)
        available -= sum(self._cost(exchange) for exchange in exchanges)
        question = self._question or question_prompt(
            self._start.message, self._start.files, self._results
        )
        return [
            ChatMessage("system", self._system(tools)),
            *self._earlier(),
            *recent_messages(self._start.history, available, self._message_cost),
            ChatMessage("user", question, self._start.pictures),
            *itertools.chain.from_iterable(map(_to_messages, exchanges)),
        ]

    def _earlier(self) -> list[ChatMessage]:
        """Return the summary as an exchange: it is no instruction, and stands where what it tells of was said."""
        if not self._start.summary:
            return []
        return [
            ChatMessage("user", SUM_UP),
            ChatMessage("assistant", self._start.summary),
        ]

    def _system(self, tools: Sequence[ToolSpec]) -> str:
        """Build the system prompt; it names tools only if there are any, else a model may write a call as text."""
        rules = (
            *self._start.instructions,
            *(tool.usage for tool in tools if tool.usage),
            *self._notes,
            assistant_prompt(self._start.assistant, self._start.project),
        )
        return system_prompt(*rules, today=self._start.today)

    def room_beside(self, question: str) -> int:
        """Return the tokens that are left where this stands in place of the message with its files."""
        return self._room((), question)

    def _available(self, tools: Sequence[ToolSpec]) -> int:
        """Return the tokens that the fixed parts leave of the context window."""
        question = self._question or question_prompt(self._start.message, self._start.files, " ")
        return self._room(tools, question)

    def _room(self, tools: Sequence[ToolSpec], question: str) -> int:
        described = [json.dumps([tool.name, tool.description, tool.parameters]) for tool in tools]
        # Tokens of a text within a longer one may differ from those of the text alone.
        slack = self._window // 100
        earlier = [one.text for one in self._earlier()]
        fixed = [self._system(tools), question, *described, *earlier]
        pictures = len(self._start.pictures) * PICTURE_TOKENS
        return self._window - slack - self._total(fixed) - pictures

    def _fit_exchanges(self, available: int) -> list[ToolExchange]:
        """Return all exchanges, without the results of the oldest as far as needed."""
        kept = list(self._exchanges)
        excess = sum(self._cost(exchange) for exchange in kept) - available
        for at, exchange in enumerate(kept[:-1]):
            if excess <= 0:
                break
            kept[at] = _without_results(exchange)
            excess -= self._cost(exchange) - self._cost(kept[at])
        if excess > 0:
            raise MessageTooLongError
        return kept

    def _cost(self, exchange: ToolExchange) -> int:
        calls = exchange.calls
        # As they are sent: arguments are JSON within JSON.
        sent = [json.dumps([call.id, call.name, call.arguments]) for call in calls.calls]
        written = [calls.text, *sent]
        return self._total([*written, *(result.text for result in exchange.results)])

    def _message_cost(self, message: ChatMessage) -> int:
        return self._total([message.text])

    def _total(self, texts: Iterable[str]) -> int:
        return sum(self._count(text) + MESSAGE_TOKENS for text in texts)


def recent_messages(
    history: Sequence[ChatMessage], available: int, cost: Callable[[ChatMessage], int]
) -> list[ChatMessage]:
    """Return the latest messages that fit together, without gaps, beginning with a user's."""
    kept = 0
    for message in reversed(history):
        available -= cost(message)
        if available < 0:
            break
        kept += 1
    recent = history[len(history) - kept :]
    return list(itertools.dropwhile(lambda message: message.role != "user", recent))


def _to_messages(exchange: ToolExchange) -> list[ModelMessage]:
    return [exchange.calls, *exchange.results]


def _without_results(exchange: ToolExchange) -> ToolExchange:
    results = tuple(replace(result, text=NO_LONGER_SHOWN) for result in exchange.results)
    return replace(exchange, results=results)
