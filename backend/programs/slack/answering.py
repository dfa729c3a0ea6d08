"""Answers a question of Slack as a turn of a conversation of its asker, which the pages show as well."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeAlias

from backend.access.roles import Role
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import ChatEvent, TextPiece
from backend.chat.readable_ids import make_own_memories
from backend.chat.rights_watch import ReadersNow
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import AssistantSettings, read_default_settings
from backend.composition.answers_from_files import answer_attached
from backend.container import Container
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.assistant_service import AssistantService, AssistantUser
from backend.conversations.new_turn import LocalTurns, NewTurn
from backend.conversations.project_service import ProjectService
from backend.conversations.service import BegunTurn, ConversationService
from backend.conversations.turn_notifications import TurnNotifications
from backend.conversations.turn_rights import make_owner_readers
from backend.conversations.turn_runner import Answering, TurnOrder, TurnRunner
from backend.files.attached_files import find_attached
from backend.files.file_keeper import FileKeeper
from backend.programs.slack.audience import ALONE, Audience, JoinedReaders
from backend.programs.slack.turn_encoder import SlackTurnEncoder
from backend.search.events import SectionsSelected
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.chat import messages
from backend.store.chat.messages import Message
from backend.store.chat.new_messages import NewQuestion
from backend.store.chat.shared_files import FileHolders
from backend.store.chat.slack_questions import StoredAnswer
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.runtime.deadline import CancelToken, Deadline

ShowStep: TypeAlias = Callable[[str], object]
"""Called with what is being done, in a few words, by the thread that waits for the answer."""
READING = "Reading what was found…"
WRITING = "Writing the answer…"
_LOOK_SECONDS = 1.0
"""After which a turn is looked at, where no news of it comes."""
_STORE_SECONDS = 60.0
"""Beyond the time of an answer, in which its end has to be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The person who asks, before whom, and what the model is given of the conversation before."""

    person: Person
    audience: Audience
    earlier: tuple[Message, ...] = ()

    @property
    def owner(self) -> ConversationOwner:
        return ConversationOwner(self.person.id)

    @property
    def is_alone(self) -> bool:
        return self.audience == ALONE

    @property
    def memory_owner(self) -> ConversationOwner | None:
        """Whose memories, and whose findings of research, are drawn on and shown: nobody's where others read along."""
        return self.owner if self.is_alone else None


class AnsweringService:
    """Runs the turns of the bot."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._database = container.database
        self._news = TurnNotifications()
        self._runner = TurnRunner(lambda: self._database, _hold_no_slot, self._news.announce)
        self._files = FileKeeper(lambda: container.sources.file_index)
        self._steps: dict[int | None, str] = {}
        """What is being done for the questions that are being answered, by their ids."""

    def begin(self, asking: Asking, question: str, before: StoredAnswer | None) -> StoredAnswer:
        """Begin the answer to a question, behind an answer or in a conversation of its own.

        Raises:
            NotFoundError: the conversation was deleted.
            ConflictError: too many answers of it are being written.
        """
        asked, conversations = NewQuestion(text=question, filters={}), self._open(asking)
        if before is None:
            return _read_begun(conversations.begin(asked))
        return _read_begun(conversations.ask(before.conversation_id, before.message_id, asked))

    def answer_again(self, asking: Asking, former: StoredAnswer) -> StoredAnswer:
        """Begin another answer to the question of an answer. Raises as `begin`."""
        begun = self._open(asking).regenerate(former.conversation_id, former.message_id)
        return _read_begun(begun)

    def wait(self, asking: Asking, answer: StoredAnswer, show: ShowStep) -> Message:
        """Return an answer once it has ended.

        Raises:
            NotFoundError: it was deleted.
            DeadlineExceededError: it was not stored in time.
        """
        changed, shown = threading.Event(), ""
        deadline = Deadline.after(self._container.chat.seconds + _STORE_SECONDS)
        with self._news.listen(answer.message_id, changed.set):
            while True:
                changed.clear()
                message = self.get(asking, answer)
                if message.status != "running":
                    self._steps.pop(message.parent_id, None)
                    return message
                deadline.check()
                step = self._steps.get(message.parent_id, "")
                if step != shown:
                    shown = step
                    show(step)
                changed.wait(_LOOK_SECONDS)

    def get(self, asking: Asking, answer: StoredAnswer) -> Message:
        """Return a stored answer. Raises NotFoundError."""
        return messages.get(self._database, asking.owner, answer.conversation_id, answer.message_id)

    def get_question(self, asking: Asking, answer: StoredAnswer) -> str:
        """Return what an answer answers. Raises NotFoundError: somebody else asked, or it was deleted."""
        question_id = self.get(asking, answer).parent_id
        if question_id is None:
            raise messages.make_missing_message_error()
        asked = StoredAnswer(answer.conversation_id, question_id)
        return self.get(asking, asked).text

    def may_show(self, asking: Asking, message: Message) -> bool:
        """Return whether the person who asks and everybody who reads along may now read all that an answer rests on."""
        readers = self._make_readers_now(asking)(FileHolders())()
        if readers is None:
            return False
        return self._make_gate(asking.memory_owner, readers).allows(message.document_ids)

    def make_own_gate(self, owner: ConversationOwner) -> AnswerGate:
        """Return the gate of a person who looks alone."""
        readers = make_owner_readers(self._database, owner, Readers.of(), FileHolders())()
        return self._make_gate(owner, readers or Readers.of())

    def follow_index(self) -> None:
        """Open the index anew, if it was switched to the version of another embedding model."""
        engine = self._container.engine
        active = engine.versions.active()
        if active is not None and active.embedder != engine.version.embedder:
            self._container = self._container.reopen()

    def interrupt_all(self, seconds: float) -> bool:
        """End all turns; whether all of them are stored after so many seconds."""
        return self._runner.interrupt_all(seconds)

    def _open(self, asking: Asking) -> ConversationService:
        readers_now = self._make_readers_now(asking)
        readers = readers_now(FileHolders())() or Readers.of()
        return ConversationService(
            database=self._database,
            owner=asking.owner,
            gate=self._make_gate(asking.memory_owner, readers),
            turns=LocalTurns(self._runner, partial(self._make_order, asking, readers_now)),
            assistants=self._open_assistants(asking, readers),
            projects=ProjectService(database=self._database, owner=asking.owner),
            files=self._files,
        )

    def _make_order(
        self, asking: Asking, readers_now: Callable[[FileHolders], ReadersNow], turn: NewTurn
    ) -> tuple[TurnOrder, Answering]:
        order = TurnOrder(
            message_id=turn.message_id,
            question=turn.question,
            person_id=asking.person.id,
            turn_key=f"person:{asking.person.id}",
            readers_now=readers_now(turn.settings.holders),
            own_memories=make_own_memories(self._database, asking.owner),
            earlier=asking.earlier,
        )
        return order, self._make_answering(asking, turn.question, turn.settings)

    def _make_readers_now(self, asking: Asking) -> Callable[[FileHolders], ReadersNow]:
        def make(holders: FileHolders) -> ReadersNow:
            own = make_owner_readers(self._database, asking.owner, Readers.of(), holders)
            return (
                own
                if asking.is_alone
                else JoinedReaders(own, self._database, asking.audience, holders)
            )

        return make

    def _make_gate(self, memory_owner: ConversationOwner | None, readers: Readers) -> AnswerGate:
        return AnswerGate(
            index=self._container.chat.engine.index,
            readers=readers,
            own_memories=make_own_memories(self._database, memory_owner),
            deadline=Deadline.after(self._container.chat.settings.search_seconds),
        )

    def _open_assistants(self, asking: Asking, readers: Readers) -> AssistantService:
        chat = self._container.chat

        def find_sources() -> frozenset[str]:
            deadline = Deadline.after(chat.settings.search_seconds)
            return frozenset(chat.engine.index.facets(Filters(), readers, deadline).sources)

        user = AssistantUser(
            owner=asking.owner,
            readers=readers,
            is_admin=asking.person.role == Role.ADMIN,
            actor=Actor(f"user:{asking.person.email}", "slack"),
        )
        return AssistantService(database=self._database, user=user, find_sources=find_sources)

    def _make_answering(
        self, asking: Asking, question: Message, settings: AssistantSettings
    ) -> Answering:
        chat = self._container.chat
        if not asking.is_alone:
            # What its owner set on the pages, an assistant or a project with its instructions, may be theirs alone.
            settings = read_default_settings(self._database)
        choose_models = cache(lambda: chat.choose_models(settings))

        def answer(
            turn: ChatTurn, record: ChatStateContainer, path: Sequence[Message]
        ) -> Iterator[ChatEvent]:
            turn = replace(turn, owner=asking.memory_owner)
            # Files that came with earlier questions are the asker's alone.
            told = path if asking.is_alone else path[-1:]
            attached = find_attached(
                self._database, asking.owner, told, settings.holders, turn.readers
            )
            events = answer_attached(chat, choose_models(), attached, turn, record)
            return self._note_steps(question, events)

        return Answering(
            index=chat.engine.index,
            answer=answer,
            assistant=settings,
            seconds=chat.seconds,
            encoder=SlackTurnEncoder(question.text),
            read_filters=lambda _: Filters(),
            open_fast_model=lambda person_id: choose_models().open_fast(person_id),
        )

    def _note_steps(self, question: Message, events: Iterator[ChatEvent]) -> Iterator[ChatEvent]:
        try:
            for event in events:
                match event:
                    case SectionsSelected():
                        self._steps[question.id] = READING
                    case TextPiece():
                        self._steps[question.id] = WRITING
                    case _:
                        pass
                yield event
        finally:
            if isinstance(events, Generator):
                events.close()


def _hold_no_slot(turn_key: str, cancel_token: CancelToken) -> AbstractContextManager[None]:
    """Hold nothing: the pool of the bot has bounded the turns already."""
    del turn_key, cancel_token
    return nullcontext()


def _read_begun(begun: BegunTurn) -> StoredAnswer:
    return StoredAnswer(begun.conversation.id, begun.answer.message.id)
