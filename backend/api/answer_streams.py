"""Answers that are sent as they come about, to one who waits for them."""

from dataclasses import dataclass

from fastapi import Request

from backend.api.answer_events import answer_events
from backend.api.authorization import Asker
from backend.api.dependencies import AppState
from backend.api.readers_now import make_readers_now
from backend.api.server_sent_events import EventStream, SentEvents, from_thread
from backend.chat.llm_loop import ChatTurn
from backend.chat.rights_watch import RightsWatch
from backend.composition.chat import ChatService
from backend.store.database import Database


@dataclass(frozen=True, slots=True)
class AnswerStream:
    request: Request
    state: AppState
    chat: ChatService
    database: Database

    def open(self, turn: ChatTurn, asker: Asker) -> EventStream:
        """Return the response that runs a turn; closing the connection stops it."""

        def begin() -> SentEvents:
            watch = RightsWatch(
                readers_now=make_readers_now(self.request, self.state.authenticator, self.database),
                index=self.chat.engine.index,
                deadline=turn.deadline,
            )
            return from_thread(
                lambda: answer_events(self.chat, turn, self.state.answer_html, watch)
            )

        return EventStream(begin, self.state.pools.answers, asker.turn_key)
