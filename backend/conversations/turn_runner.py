"""Runs turns: each in a thread of its own, whether anybody follows it or not."""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

from backend.chat.assistant_settings import PLAIN, AssistantSettings
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import AnswerDone, ChatEvent, TextPiece, TurnFailed
from backend.chat.llm_loop import ChatTurn
from backend.chat.rights_watch import (
    AskerGoneError,
    DocumentWithdrawnError,
    ReadersNow,
    RightsWatch,
    list_documents,
)
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.history import make_history
from backend.conversations.running_turn import RunningTurn
from backend.conversations.turn_events import EventEncoder
from backend.conversations.turn_keeper import TurnKeeper
from backend.store import messages
from backend.store.database import Database
from backend.store.messages import Message
from connectors.errors import ActionRequiredError, QuarryError, TemporarilyUnavailableError
from indexing.index.protocols import Filters, Index
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError

MOST_HISTORY = 100
"""Messages before the question; of these the model is given as many as fit."""

Answer: TypeAlias = Callable[[ChatTurn, ChatStateContainer], Iterator[ChatEvent]]
TakeSlot: TypeAlias = Callable[[str, CancelToken], AbstractContextManager[None]]
"""Waits for a slot of the pool of answers, in which somebody's turns take theirs, and holds it."""


class TurnRefusedError(QuarryError):
    """There was no slot for the turn."""

    def __init__(self, detail: str, advice: str | None) -> None:
        super().__init__(detail)
        self.advice = advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """What answers, and what its events become."""

    index: Index
    answer: Answer
    assistant: AssistantSettings = PLAIN
    seconds: float
    """How long an answer may take."""
    encoder: EventEncoder
    read_filters: Callable[[Mapping[str, Any]], Filters]
    """Reads the filters that are stored with a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOrder:
    """An answer that is to be written."""

    message_id: int
    question: Message
    person_id: int
    """Whose tokens the language model uses."""
    turn_key: str
    """Whose turns they are in the pool."""
    readers_now: ReadersNow


class TurnRunner:
    """
    Args:
        database: called each time.
        stored: called with the id of an answer of which more can be read.
    """

    def __init__(
        self,
        database: Callable[[], Database],
        take_slot: TakeSlot,
        stored: Callable[[int], object],
    ) -> None:
        self._database = database
        self._take_slot = take_slot
        self._keeper = TurnKeeper(database, stored)

    def begin(self, order: TurnOrder, answering: Answering) -> None:
        """Begin a turn, and return at once."""
        turn = RunningTurn(order.message_id)
        self._keeper.add(turn)
        threading.Thread(
            target=self._run, args=(order, answering, turn), name="turn", daemon=True
        ).start()

    def runs(self, message_id: int) -> bool:
        """Whether this process runs the turn of an answer."""
        return self._keeper.holds(message_id)

    def stop(self, message_id: int) -> None:
        """Stop a turn at once, if this process runs it."""
        self._keeper.stop(message_id)

    def interrupt_all(self, seconds: float) -> bool:
        """End all turns of this process; whether all of them are stored after so many seconds."""
        return self._keeper.interrupt_all(seconds)

    def _run(self, order: TurnOrder, answering: Answering, turn: RunningTurn) -> None:
        encoder = answering.encoder
        try:
            with self._take_slot(order.turn_key, turn.cancel_token):
                self._answer(order, answering, turn)
        except (
            TurnRefusedError,
            AskerGoneError,
            DocumentWithdrawnError,
            TemporarilyUnavailableError,
            ActionRequiredError,
            DeadlineExceededError,
        ) as error:
            turn.fail(encoder.encode_failure(error))
        finally:
            # Does nothing where the turn has ended.
            turn.fail(encoder.broken)
            self._keeper.wake()

    def _answer(self, order: TurnOrder, answering: Answering, turn: RunningTurn) -> None:
        deadline = Deadline.after(answering.seconds, turn.cancel_token)
        chat_turn, watch = self._prepare(order, answering, deadline)
        turn.rest_on(watch.documents)
        events = answering.answer(chat_turn, ChatStateContainer())
        try:
            self._add_all(turn, watch.follow(events), answering.encoder)
        finally:
            if isinstance(events, Generator):
                events.close()

    def _add_all(
        self, turn: RunningTurn, events: Iterator[ChatEvent], encoder: EventEncoder
    ) -> None:
        for event in events:
            self._add(turn, event, encoder)
            self._keeper.wake()
            if turn.is_ended:
                return

    def _prepare(
        self, order: TurnOrder, answering: Answering, deadline: Deadline
    ) -> tuple[ChatTurn, RightsWatch]:
        """Read the history, and what the asker may read now."""
        readers, index = order.readers_now(), answering.index
        if readers is None:
            raise AskerGoneError
        path = messages.list_path(self._database(), order.question.id, MOST_HISTORY + 1)
        history = make_history(
            path[:-1], AnswerGate(index=index, readers=readers, deadline=deadline)
        )
        chat_turn = ChatTurn(
            message=order.question.text,
            readers=readers,
            deadline=deadline,
            person_id=order.person_id,
            history=history.messages,
            filters=answering.read_filters(order.question.filters or {}),
            today=date.today(),
            assistant=answering.assistant,
        )
        watch = RightsWatch(
            readers_now=order.readers_now,
            index=index,
            deadline=deadline,
            documents=history.document_ids,
        )
        return chat_turn, watch

    def _add(self, turn: RunningTurn, event: ChatEvent, encoder: EventEncoder) -> None:
        turn.rest_on(list_documents(event))
        encoded = encoder.encode(event)
        if encoded is None:
            return
        match event:
            case AnswerDone(text=text):
                turn.finish(encoded, text)
            case TurnFailed():
                turn.fail(encoded)
            case TextPiece(text=text):
                turn.add(encoded, text)
            case _:
                turn.add(encoded)
