"""The conversations of one person: list, open, ask, stop. The API and the pages call it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from backend.chat.turn_settings import AssistantSettings
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.answer_redaction import redact
from backend.conversations.assistant_service import AssistantService
from backend.conversations.conversation_search import ConversationSearch, read_words
from backend.conversations.interrupted_turns import end_interrupted
from backend.conversations.new_turn import NewTurn, TurnProcess, Turns
from backend.conversations.project_service import ProjectService
from backend.conversations.titles import make_title
from backend.files.file_keeper import FileKeeper
from backend.store.chat import conversations, messages, new_messages, summaries, turns
from backend.store.chat.assistants import DEFAULT_ID
from backend.store.chat.conversations import Conversation, ListPosition, ListState
from backend.store.chat.messages import Message, MessagePlace
from backend.store.chat.new_messages import Begun, ConversationSetting, NewQuestion, Writer
from backend.store.database import Database
from backend.store.files import user_files
from backend.store.files.user_files import UserFile
from backend.store.owner import ConversationOwner
from connectors.errors import InvalidInputError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError

MOST_READ = 200
"""Messages of somebody else's conversation that are shown: the last ones."""


@dataclass(frozen=True, slots=True)
class ShownMessage:
    message: Message
    question: str
    """What it answers; the question itself for a question."""
    siblings: tuple[int, ...]
    """The messages in its place, itself included, in the order in which they were made."""
    withheld: bool
    """The asker may not read what the answer rests on: nothing of it may be shown."""
    summary: str | None
    """What a language model is given in place of the messages down to this one."""
    files: tuple[UserFile, ...]
    """That came with a question."""
    deleted_files: int = 0
    """That came with it too, and were deleted since."""


@dataclass(frozen=True, slots=True)
class OpenedConversation:
    conversation: Conversation
    messages: tuple[ShownMessage, ...]
    """The last ones of a path from a first question, in their order."""
    earlier: int | None
    """The first of these, if others stand before it."""


@dataclass(frozen=True, slots=True)
class ConversationPage:
    conversations: Sequence[Conversation]
    next: ListPosition | None
    has_archived_matches: bool = False
    """Whether a query that searched the active ones finds archived ones as well; said on the first page."""


@dataclass(frozen=True, slots=True)
class BegunTurn:
    conversation: Conversation
    question: ShownMessage
    answer: ShownMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationService:
    database: Database
    owner: ConversationOwner
    gate: AnswerGate
    """By what the asker may read now."""
    turns: Turns
    """Of the owner."""
    assistants: AssistantService
    """Those that the owner may use."""
    projects: ProjectService
    """Those that the owner is in."""
    files: FileKeeper

    def list_page(
        self,
        state: ListState,
        query: str,
        before: ListPosition | None,
        limit: int,
    ) -> ConversationPage:
        """Return those that the words of a query find (see `ConversationSearch`), the last used one first."""
        end_interrupted(self.database)
        search = ConversationSearch(database=self.database, owner=self.owner, gate=self.gate)
        words = read_words(query)
        found = search.list_page(state, words, before, limit + 1)
        page = found[:limit]
        is_whole = len(found) <= limit
        is_asked_alone = is_whole and state == "active" and before is None
        return ConversationPage(
            page,
            None if is_whole else page[-1].position,
            has_archived_matches=is_asked_alone and _finds_archived(search, words),
        )

    def get(self, conversation_id: str) -> Conversation:
        return conversations.get(self.database, self.owner, conversation_id)

    def open(
        self, conversation_id: str, leaf: int | None, before: int | None, limit: int
    ) -> OpenedConversation:
        """Return the path through a message on to the newest one below it.

        Args:
            before: only what stands before this message of the path.

        Raises:
            NotFoundError
        """
        end_interrupted(self.database)
        conversation = self.get(conversation_id)
        last = self._find_last(conversation, leaf, before)
        path = messages.list_path(self.database, last, limit + 1) if last is not None else []
        shown = self._show(path)[-limit:]
        return OpenedConversation(
            conversation, shown, shown[0].message.id if len(path) > limit else None
        )

    def list_newer(self, conversation_id: str, message_id: int) -> list[MessagePlace]:
        """Return where the messages stand that were made after one, on whichever path.

        Raises:
            NotFoundError
        """
        return messages.list_newer(self.database, self.get(conversation_id).id, message_id)

    def read_of(self, author: ConversationOwner, conversation_id: str) -> OpenedConversation:
        """Return what somebody else sees of a conversation of its author: by the gate, what they may read themselves.

        The files that came with its questions are not named: they are their owner's alone.

        Raises:
            NotFoundError
        """
        opened = replace(self, owner=author).open(conversation_id, None, None, MOST_READ)
        shown = (
            replace(one, files=(), deleted_files=0, message=redact(one.message))
            for one in opened.messages
        )
        return replace(opened, messages=tuple(shown))

    def _find_last(
        self, conversation: Conversation, leaf: int | None, before: int | None
    ) -> int | None:
        if before is not None:
            return self._get_message(conversation.id, before).parent_id
        if leaf is None:
            return conversation.leaf_id
        return self._find_newest_below(conversation.id, leaf)

    def _get_message(self, conversation_id: str, message_id: int) -> Message:
        return messages.get(self.database, self.owner, conversation_id, message_id)

    def _find_newest_below(self, conversation_id: str, message_id: int) -> int:
        found = self._get_message(conversation_id, message_id)
        return messages.find_newest_below(self.database, found)

    def _show(self, path: Sequence[Message]) -> tuple[ShownMessage, ...]:
        withheld = self.gate.find_withheld(path)
        summary_texts = self._find_summaries(path)
        siblings = messages.find_siblings(self.database, path)
        ids = [one.id for one in path]
        files = user_files.list_of_messages(self.database, ids)
        deleted_files = user_files.count_deleted(self.database, ids)
        questions = {one.id: one.text for one in path if one.role == "user"}
        return tuple(
            ShownMessage(
                message=one,
                question=questions.get(one.parent_id or 0, one.text),
                siblings=siblings[one.id],
                withheld=one.id in withheld,
                summary=summary_texts.get(one.id),
                files=files.get(one.id, ()),
                deleted_files=deleted_files.get(one.id, 0),
            )
            for one in path
        )

    def _find_summaries(self, path: Sequence[Message]) -> dict[int, str]:
        """Return the summaries that the asker may read now, by the messages with which they end."""
        answers = [one.id for one in path if one.role == "assistant"]
        found = summaries.list_of(self.database, answers)
        readable = self.gate.find_readable(doc for one in found for doc in one.document_ids)
        return {one.message_id: one.text for one in found if readable.issuperset(one.document_ids)}

    def begin(
        self, question: NewQuestion, assistant_id: str = DEFAULT_ID, project_id: str | None = None
    ) -> BegunTurn:
        """Begin a conversation with a question, and answer it.

        Raises:
            NotFoundError: there is no such assistant or project.
        """
        settings = self.assistants.find_settings(assistant_id)
        if project_id is not None:
            settings = settings.in_project(project_id, self.projects.get(project_id).instructions)
        setting = ConversationSetting(
            assistant_id=_to_stored_id(assistant_id), project_id=project_id
        )
        title, process = make_title(question.text), self.turns.choose_process()
        begun = new_messages.begin_conversation(
            self.database, self.owner, title, question, _make_writer(process), setting
        )
        return self._run(begun, settings, process)

    def ask(self, conversation_id: str, parent_id: int | None, question: NewQuestion) -> BegunTurn:
        """Ask behind an answer, or the first question anew, and answer it.

        Raises:
            NotFoundError, InvalidInputError, ConflictError
        """
        end_interrupted(self.database)
        settings = self._find_settings(conversation_id)
        process = self.turns.choose_process()
        writer = _make_writer(process)
        begun = new_messages.ask(
            self.database, self.owner, conversation_id, parent_id, question, writer
        )
        return self._run(begun, settings, process)

    def regenerate(self, conversation_id: str, message_id: int) -> BegunTurn:
        """Answer a question once more; one of its answers names it as well.

        Raises:
            NotFoundError, ConflictError
        """
        end_interrupted(self.database)
        settings = self._find_settings(conversation_id)
        process = self.turns.choose_process()
        begun = new_messages.regenerate(
            self.database, self.owner, conversation_id, message_id, _make_writer(process)
        )
        return self._run(begun, settings, process)

    def _find_settings(self, conversation_id: str) -> AssistantSettings:
        """Return with what settings a conversation is answered. Raises AssistantGoneError, NotFoundError."""
        conversation = self.get(conversation_id)
        settings = self.assistants.find_settings_of_conversation(conversation.assistant_id)
        of_project = self.projects.find_instructions(conversation.project_id)
        return settings.in_project(conversation.project_id, of_project)

    def _run(self, begun: Begun, settings: AssistantSettings, process: TurnProcess) -> BegunTurn:
        process.begin(NewTurn(begun.answer.id, begun.question, settings))
        question, answer = self._show((begun.question, begun.answer))
        return BegunTurn(self.get(begun.question.conversation_id), question, answer)

    def stop(self, conversation_id: str, message_id: int) -> ShownMessage:
        """Stop the turn that writes an answer, whichever process runs it. What has ended stays as it is.

        Raises:
            NotFoundError, InvalidInputError
        """
        found = self._get_message(conversation_id, message_id)
        if found.role != "assistant":
            raise InvalidInputError("This message is a question. Give the id of an answer.")
        self._stop_turn(message_id)
        *_, shown = self._show(messages.list_path(self.database, message_id, 2))
        return shown

    def stop_all(self, conversation_id: str) -> None:
        """Stop all turns of a conversation, also those that write answers beside the path that is shown. Raises NotFoundError."""
        self.get(conversation_id)
        for message_id in turns.list_running(self.database, conversation_id):
            self._stop_turn(message_id)

    def _stop_turn(self, message_id: int) -> None:
        turns.ask_to_stop(self.database, message_id, datetime.now(UTC))
        self.turns.stop(message_id)

    @contextmanager
    def in_one_transaction(self) -> Iterator[Self]:
        """Yield the service so that all that the block changes is one transaction. It waits for nothing but the database."""
        with self.database.writing() as connection:
            yield replace(self, database=Database(self.database.engine, connection))

    def check_assistant(self, assistant_id: str) -> None:
        """Check an assistant before it is used. Raises NotFoundError: there is no such assistant for the owner."""
        self.assistants.get(assistant_id)

    def set_title(self, conversation_id: str, title: str) -> None:
        conversations.set_title(self.database, self.owner, conversation_id, title)

    def archive(self, conversation_id: str) -> None:
        now = datetime.now(UTC)
        conversations.set_archived(self.database, self.owner, conversation_id, now)

    def restore(self, conversation_id: str) -> None:
        """Take a conversation out of the archive."""
        conversations.set_archived(self.database, self.owner, conversation_id, None)

    def set_assistant(self, conversation_id: str, assistant_id: str) -> None:
        """Let another assistant, which was checked, answer from the next question on.

        Raises:
            NotFoundError: there is no such conversation.
        """
        conversations.set_assistant(
            self.database, self.owner, conversation_id, _to_stored_id(assistant_id)
        )

    def show_leaf(self, conversation_id: str, message_id: int) -> None:
        """Show the path through this message from now on, to the newest one below it."""
        leaf = self._find_newest_below(conversation_id, message_id)
        conversations.set_leaf(self.database, self.owner, conversation_id, leaf)

    def delete(self, conversation_id: str) -> None:
        """Delete a conversation with its files that nothing else uses."""
        conversations.remove(self.database, self.owner, conversation_id)
        self.files.wake()


def _finds_archived(search: ConversationSearch, words: Sequence[str]) -> bool:
    """Return whether these words find something in the archive; no words look for nothing."""
    # What was found in the list is shown, also where there is no time left for the archive.
    with suppress(TemporarilyUnavailableError, DeadlineExceededError):
        return bool(words) and bool(search.list_page("archived", words, None, 1))
    return False


def _make_writer(process: TurnProcess) -> Writer:
    return Writer(process.holder, datetime.now(UTC))


def _to_stored_id(assistant_id: str) -> str | None:
    return None if assistant_id == DEFAULT_ID else assistant_id
