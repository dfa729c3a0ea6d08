"""Makes the turns of conversations from what can be sent to any process of the server."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from backend.api.answer_events import AnswerHtml, TurnEncoder
from backend.api.languages import Language
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import ChatEvent
from backend.chat.readable_ids import make_own_memories
from backend.chat.turn import ChatTurn
from backend.composition.answers_from_files import answer_attached
from backend.composition.chat import ChatService
from backend.conversations.new_turn import NewTurn
from backend.conversations.turn_rights import make_owner_readers
from backend.conversations.turn_runner import Answering, TurnOrder
from backend.files.attached_files import find_attached
from backend.schemas.search import FiltersBody
from backend.schemas.turn_mode import load_mode
from backend.store.accounts.people import NOBODY
from backend.store.chat.messages import Message
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.web_cache import CachedSession
from connectors.access import Readers
from indexing.index.protocols import Filters


@dataclass(frozen=True, slots=True)
class TurnAsker:
    """Whose turn it is, without anything of the request that asked."""

    owner: ConversationOwner
    own_readers: Readers
    """What the owner of a machine holds by itself; the rights of a person are read anew."""
    turn_key: str
    """Whose turns they are in the pool."""
    language: Language


@dataclass(frozen=True, slots=True)
class TurnMaker:
    """What answers turns in this process."""

    chat: ChatService
    database: Database
    answer_html: AnswerHtml

    def make_order(self, asker: TurnAsker, turn: NewTurn) -> tuple[TurnOrder, Answering]:
        owner = asker.owner
        readers_now = make_owner_readers(
            self.database, owner, asker.own_readers, turn.settings.holders
        )
        order = TurnOrder(
            message_id=turn.message_id,
            question=turn.question,
            person_id=owner.person_id or NOBODY,
            turn_key=asker.turn_key,
            readers_now=readers_now,
            own_memories=make_own_memories(self.database, owner),
        )
        return order, self._make_answering(asker, turn)

    def _make_answering(self, asker: TurnAsker, turn: NewTurn) -> Answering:
        chat, owner, question, settings = self.chat, asker.owner, turn.question, turn.settings
        # Once, in the turn: what an admin changes counts from the next one on.
        choose_models = cache(lambda: chat.choose_models(settings))
        session = CachedSession(owner, question.conversation_id)

        def answer(
            turn: ChatTurn, record: ChatStateContainer, path: Sequence[Message]
        ) -> Iterator[ChatEvent]:
            turn = replace(
                turn,
                mode=load_mode(question.mode),
                web_session=session,
                owner=owner,
                language=asker.language,
            )
            attached = find_attached(self.database, owner, path, settings.holders, turn.readers)
            return answer_attached(chat, choose_models(), attached, turn, record)

        return Answering(
            index=chat.engine.index,
            answer=answer,
            assistant=settings,
            seconds=chat.seconds,
            encoder=TurnEncoder(question.text, self.answer_html),
            read_filters=_read_filters,
            open_fast_model=lambda person_id: choose_models().open_fast(person_id),
        )


def _read_filters(stored: Mapping[str, Any]) -> Filters:
    return FiltersBody.model_validate(stored).filters()
