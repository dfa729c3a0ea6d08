"""Answers that are sent as they come about, to one who waits for them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fastapi import Request

from backend.access.held_readers import resolve_in
from backend.api.answer_events import answer_events
from backend.api.authorization import Asker
from backend.api.dependencies import AppState
from backend.api.languages import find_language
from backend.api.readers_now import make_readers_now
from backend.api.server_sent_events import EventStream, SentEvents, from_thread
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import ChatEvent
from backend.chat.readable_ids import make_own_memories
from backend.chat.rights_watch import RightsWatch
from backend.chat.turn import ChatTurn
from backend.composition.answers_from_files import answer_attached
from backend.composition.chat import ChatService
from backend.files.attached_files import find_attached
from backend.store.database import Database
from backend.store.held_files import NO_HOLDERS


@dataclass(frozen=True, slots=True)
class AnswerStream:
    request: Request
    state: AppState
    chat: ChatService
    database: Database

    def open(self, turn: ChatTurn, asker: Asker) -> EventStream:
        """Return the response that runs a turn; closing the connection stops it.

        Of an assistant, it draws on the files that the asker may read.
        """
        turn = replace(turn, owner=asker.owner, language=find_language(self.request))
        holders = turn.assistant.holders
        if holders != NO_HOLDERS:
            readers = resolve_in(self.database, asker.readers, asker.owner, holders)
            turn = replace(turn, readers=readers)
        attached = find_attached(self.database, asker.owner, (), holders, turn.readers)

        def answer(record: ChatStateContainer) -> Iterator[ChatEvent]:
            models = self.chat.choose_models(turn.assistant)
            return answer_attached(self.chat, models, attached, turn, record)

        def begin() -> SentEvents:
            watch = RightsWatch(
                readers_now=make_readers_now(self.request, self.state.authenticator, self.database),
                index=self.chat.engine.index,
                own_memories=make_own_memories(self.database, asker.owner),
                deadline=turn.deadline,
            )
            return from_thread(lambda: answer_events(answer, turn, self.state.answer_html, watch))

        return EventStream(begin, self.state.pools.answers, asker.turn_key)
