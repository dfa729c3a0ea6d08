"""Answers that are sent as they come about, to one who waits for them."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeAlias

from fastapi import Request

from backend.access.shared_file_readers import resolve_in
from backend.api.answer_events import answer_events
from backend.api.authorization import Asker
from backend.api.dependencies import AppState
from backend.api.languages import find_language
from backend.api.readers_now import make_readers_now
from backend.api.server_sent_events import (
    BROKEN,
    EventStream,
    SentEvent,
    SentEvents,
    from_thread,
)
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import ChatEvent
from backend.chat.readable_ids import make_own_memories
from backend.chat.rights_watch import RightsWatch
from backend.chat.turn import ChatTurn
from backend.composition.answers_from_files import answer_attached
from backend.composition.chat import ChatService
from backend.composition.language_models import TurnModels
from backend.conversations.turn_pace import TurnPace
from backend.files.attached_files import find_attached
from backend.store.chat.shared_files import NO_HOLDERS
from backend.store.database import Database

RunTurn: TypeAlias = Callable[[ChatStateContainer], Generator[ChatEvent, None, None]]
"""Answers a turn within the rights that its asker has at each moment, and records what it does; raises
`answer_events.FAILURES`."""
ChooseModels: TypeAlias = Callable[[], TurnModels]
EncodeTurn: TypeAlias = Callable[[RunTurn], Generator[SentEvent, None, None]]
"""Runs a turn, and yields what is sent of it; the last is the last one of the stream."""


@dataclass(frozen=True, slots=True)
class AnswerStream:
    request: Request
    state: AppState
    chat: ChatService
    database: Database

    def open(self, turn: ChatTurn, asker: Asker) -> EventStream:
        """Return the response that runs a turn; closing the connection stops it."""

        def encode(run: RunTurn) -> Generator[SentEvent, None, None]:
            return answer_events(run(ChatStateContainer()), turn.message, self.state.answer_html)

        begin = self.prepare(turn, lambda: self.chat.choose_models(turn.assistant), asker, encode)
        return EventStream(begin, self.state.pools.answers, asker.turn_key)

    def prepare(
        self,
        turn: ChatTurn,
        choose_models: ChooseModels,
        asker: Asker,
        encode: EncodeTurn,
        broken: SentEvent = BROKEN,
    ) -> Callable[[], SentEvents]:
        """Return what begins a turn, to be called on the event loop.

        Of an assistant, it draws on the files that the asker may read.

        Args:
            choose_models: for its assistant; called once the turn begins.
            broken: the last event where the program fails.
        """
        turn = replace(turn, owner=asker.owner, language=find_language(self.request))
        holders = turn.assistant.holders
        if holders != NO_HOLDERS:
            readers = resolve_in(self.database, asker.readers, asker.owner, holders)
            turn = replace(turn, readers=readers)
        attached = find_attached(self.database, asker.owner, (), holders, turn.readers)

        def begin() -> SentEvents:
            watch = self._make_watch(turn, asker)
            pace = TurnPace(self.state.pools.answers_waiting_line.wait)
            paced = replace(turn, deadline=turn.deadline.with_check_hook(pace.yield_within_step))

            def run(record: ChatStateContainer) -> Generator[ChatEvent, None, None]:
                models = choose_models()
                answered = answer_attached(self.chat, models, attached, paced, record)
                with closing(follow_watched(watch, answered)) as events:
                    for event in events:
                        yield event
                        pace.yield_to_searches()

            return from_thread(lambda: encode(run), broken)

        return begin

    def _make_watch(self, turn: ChatTurn, asker: Asker) -> RightsWatch:
        return RightsWatch(
            readers_now=make_readers_now(self.request, self.state.authenticator, self.database),
            index=self.chat.engine.index,
            own_memories=make_own_memories(self.database, asker.owner),
            deadline=turn.deadline,
        )


def follow_watched(
    watch: RightsWatch, events: Iterator[ChatEvent]
) -> Generator[ChatEvent, None, None]:
    """Yield the events of an answer while its asker may read what it rests on; closing this ends it."""
    try:
        yield from watch.follow(events)
    finally:
        if isinstance(events, Generator):
            events.close()
