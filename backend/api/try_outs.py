"""Questions that are answered with settings which are not saved. Nothing of them is kept."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated

from fastapi import Depends, Request

from backend.api.answer_streams import AnswerStream
from backend.api.authorization import Asker, AskerDependency
from backend.api.dependencies import (
    AppStateDependency,
    ChatDependency,
    DatabaseDependency,
    ReadersDependency,
)
from backend.api.request_context import RequestContext, RequestContextDependency
from backend.api.server_sent_events import EventStream
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import AssistantSettings
from backend.search.llm_protocol import ChatMessage
from backend.store.accounts.people import NOBODY
from connectors.access import Readers
from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class TryOut:
    """What one asker tries."""

    asker: Asker
    readers: Readers
    stream: AnswerStream
    context: RequestContext

    def open(
        self, question: str, history: tuple[ChatMessage, ...], settings: AssistantSettings
    ) -> EventStream:
        """Return the response that answers a question as `settings` say, in the usual mode."""
        self.context.query = question
        turn = ChatTurn(
            message=question,
            readers=self.readers,
            deadline=Deadline.after(self.stream.chat.seconds, self.context.cancel_token),
            person_id=self.asker.person.id if self.asker.person else NOBODY,
            history=history,
            today=date.today(),
            assistant=settings,
        )
        return self.stream.open(turn, self.asker)


async def get_try_out(
    request: Request,
    asker: AskerDependency,
    readers: ReadersDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> TryOut:
    return TryOut(asker, readers, AnswerStream(request, state, chat, database), context)


TryOutDependency = Annotated[TryOut, Depends(get_try_out)]
