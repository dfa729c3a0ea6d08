"""Runs turns: each in a thread of its own, whether anybody follows it or not."""

import logging
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeAlias

from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import AnswerDone, ChatEvent, ReasoningStep, TextPiece, TurnFailed
from backend.chat.readable_ids import OwnMemories
from backend.chat.rights_watch import (
    AskerGoneError,
    DocumentWithdrawnError,
    ReadersNow,
    RightsWatch,
    list_documents,
)
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import PLAIN, AssistantSettings
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.fast_model import OpenFastModel
from backend.conversations.history import (
    MOST_HISTORY,
    HistoryMaker,
    TurnHistory,
    make_history,
)
from backend.conversations.running_turn import RunningTurn
from backend.conversations.titles import write_title
from backend.conversations.turn_events import EventEncoder
from backend.conversations.turn_heartbeat import TurnHeartbeat
from backend.conversations.turn_pace import (
    BETWEEN_TURNS,
    TurnPace,
    YieldToSearches,
    yield_to_nobody,
)
from backend.search.events import StepFailed
from backend.store.chat import conversations, messages
from backend.store.chat.messages import Message
from backend.store.database import Database
from connectors.errors import ActionRequiredError, QuarryError, TemporarilyUnavailableError
from indexing.index.protocols import Filters, Index
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError

LOG = logging.getLogger("quarry.turns")
HISTORY = "history"
"""The step that is lost where older messages could not be summarized."""
TITLE_SECONDS = 20.0
"""A title may take, after the answer."""
_RETRY_AFTER = timedelta(seconds=5)

Answer: TypeAlias = Callable[[ChatTurn, ChatStateContainer, Sequence[Message]], Iterator[ChatEvent]]
"""Answers the last message of a path."""
TakeSlot: TypeAlias = Callable[[str, CancelToken], AbstractContextManager[None]]
"""Waits for a slot of the pool of answers, in which somebody's turns take theirs, and holds it."""


class TurnRefusedError(TemporarilyUnavailableError):
    """There was no slot for the turn."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(detail, _RETRY_AFTER, advice)


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
    open_fast_model: OpenFastModel


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
    own_memories: OwnMemories
    earlier: tuple[Message, ...] = ()
    """Of other conversations: what stands before the question where it is asked, as far as the gate lets it be shown."""


class TurnRunner:
    """The turns that this process runs, each in a thread.

    Args:
        database: called each time.
        stored: called with the id of an answer of which more can be read.
        yield_to_searches: called by the threads of turns again and again.
    """

    def __init__(
        self,
        database: Callable[[], Database],
        take_slot: TakeSlot,
        stored: Callable[[int], object],
        yield_to_searches: YieldToSearches = yield_to_nobody,
    ) -> None:
        self._database = database
        self._take_slot = take_slot
        self._yield_to_searches = yield_to_searches
        self._heartbeat = TurnHeartbeat(database, stored)
        self._histories = HistoryMaker(database)

    def begin(self, order: TurnOrder, answering: Answering) -> None:
        """Begin a turn, and return at once."""
        turn = RunningTurn(order.message_id, answering.encoder)
        self._heartbeat.add(turn)
        threading.Thread(
            target=self._run, args=(order, answering, turn), name="turn", daemon=True
        ).start()

    def runs(self, message_id: int) -> bool:
        """Return whether this process runs the turn of an answer."""
        return self._heartbeat.holds(message_id)

    def count_running(self) -> int:
        """Return how many turns this process runs."""
        return self._heartbeat.count()

    def fail(self, message_id: int, encoder: EventEncoder, error: QuarryError) -> None:
        """End a turn that cannot begin."""
        turn = RunningTurn(message_id, encoder)
        self._heartbeat.add(turn)
        turn.fail(encoder.encode_failure(error))
        self._heartbeat.wake()

    def stop(self, message_id: int) -> None:
        """Stop a turn at once, if this process runs it."""
        self._heartbeat.stop(message_id)

    def interrupt_all(self, seconds: float) -> bool:
        """End all turns of this process; whether all of them are stored after so many seconds."""
        return self._heartbeat.interrupt_all(seconds)

    def _run(self, order: TurnOrder, answering: Answering, turn: RunningTurn) -> None:
        encoder = answering.encoder
        try:
            with self._take_slot(order.turn_key, turn.cancel_token):
                self._yield_to_searches(BETWEEN_TURNS)
                self._answer(order, answering, turn)
            self._heartbeat.wake()
            if turn.is_finished:
                self._name(order, answering)
        except (
            AskerGoneError,
            DocumentWithdrawnError,
            TemporarilyUnavailableError,
            ActionRequiredError,
            DeadlineExceededError,
        ) as error:
            turn.fail(encoder.encode_failure(error))
        except Exception:
            # An error in the program. The thread ends here; whoever follows the turn must not wait for more.
            LOG.exception("The answer %s failed.", order.message_id)
            turn.break_down()
        finally:
            if turn.break_down():
                LOG.error("The answer %s ended without a final event.", order.message_id)
            self._heartbeat.wake()

    def _answer(self, order: TurnOrder, answering: Answering, turn: RunningTurn) -> None:
        pace = TurnPace(self._yield_to_searches)
        deadline = Deadline.after(answering.seconds, turn.cancel_token)
        deadline = deadline.with_check_hook(pace.yield_within_step)
        readers = order.readers_now()
        if readers is None:
            raise AskerGoneError
        gate = AnswerGate(
            index=answering.index,
            readers=readers,
            own_memories=order.own_memories,
            deadline=deadline,
        )
        path = messages.list_path(self._database(), order.question.id, MOST_HISTORY + 1)
        history = self._make_history(path, order, answering, gate)
        if history.loss:
            self._add(turn, StepFailed(HISTORY, history.loss), answering.encoder)
        chat_turn, watch = _make_turn(order, answering, gate, history)
        turn.rest_on(watch.documents)
        events = answering.answer(chat_turn, ChatStateContainer(), path)
        try:
            self._add_all(turn, watch.follow(events), answering.encoder, pace)
        finally:
            if isinstance(events, Generator):
                events.close()

    def _add_all(
        self,
        turn: RunningTurn,
        events: Iterator[ChatEvent],
        encoder: EventEncoder,
        pace: TurnPace,
    ) -> None:
        for event in events:
            self._add(turn, event, encoder)
            self._heartbeat.wake()
            if turn.is_ended:
                return
            if isinstance(event, TextPiece | ReasoningStep):
                pace.pause()
            else:
                pace.yield_to_searches()

    def _make_history(
        self, path: Sequence[Message], order: TurnOrder, answering: Answering, gate: AnswerGate
    ) -> TurnHistory:
        if order.earlier:
            joined = sorted((*order.earlier, *path[:-1]), key=lambda one: one.id)
            return make_history(joined, gate)
        if len(path) == 1:
            return TurnHistory((), frozenset())
        with answering.open_fast_model(order.person_id) as model:
            return self._histories.make(path[:-1], gate, model)

    def _name(self, order: TurnOrder, answering: Answering) -> None:
        """Name a conversation after its first question, in the words of a model. Where that fails, its title stays."""
        conversation_id = order.question.conversation_id
        if order.question.parent_id is not None or not conversations.is_named_by_words(
            self._database(), conversation_id
        ):
            return
        with answering.open_fast_model(order.person_id) as model:
            if model is None:
                return
            deadline = Deadline.after(TITLE_SECONDS)
            question = messages.read_question_text(order.question)
            title = write_title(question, model.complete, deadline)
        if title is not None:
            conversations.set_model_title(self._database(), conversation_id, title)

    def _add(self, turn: RunningTurn, event: ChatEvent, encoder: EventEncoder) -> None:
        if isinstance(event, TextPiece | ReasoningStep):
            turn.write(event)
            return
        turn.rest_on(list_documents(event))
        encoded = encoder.encode(event)
        if encoded is None:
            return
        match event:
            case AnswerDone(text=text):
                turn.finish(encoded, text)
            case TurnFailed():
                turn.fail(encoded)
            case _:
                turn.add(encoded)


def _make_turn(
    order: TurnOrder, answering: Answering, gate: AnswerGate, history: TurnHistory
) -> tuple[ChatTurn, RightsWatch]:
    chat_turn = ChatTurn(
        message=order.question.text,
        readers=gate.readers,
        deadline=gate.deadline,
        person_id=order.person_id,
        history=history.messages,
        summary=history.summary,
        filters=answering.read_filters(order.question.filters or {}),
        today=date.today(),
        assistant=answering.assistant,
    )
    watch = RightsWatch(
        readers_now=order.readers_now,
        index=gate.index,
        own_memories=gate.own_memories,
        deadline=gate.deadline,
        documents=history.document_ids,
    )
    return chat_turn, watch
