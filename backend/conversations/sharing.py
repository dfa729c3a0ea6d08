"""What is shared of a conversation, and what each reader of it may see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.conversations.answer_gate import AnswerGate
from backend.conversations.answer_redaction import redact
from backend.conversations.titles import make_title
from backend.store import audit
from backend.store.audit import Actor
from backend.store.chat import conversation_copies, conversation_shares, messages
from backend.store.chat.conversation_shares import Share, SharedConversation
from backend.store.chat.conversations import Conversation
from backend.store.chat.conversations import get as get_conversation
from backend.store.chat.messages import Message
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.batched import batched
from connectors.errors import ConflictError

MOST_SHOWN = 2_000
"""Messages of a shared conversation that are shown: the last of a longer path. One's own is read whole, so many messages at a time."""


@dataclass(frozen=True, slots=True)
class ReadMessage:
    message: Message
    question: str
    """What it answers; the question itself for a question."""
    withheld: bool
    """The reader may not read what the answer rests on: nothing of it may be shown."""


@dataclass(frozen=True, slots=True)
class ReadConversation:
    """A path through a conversation, as one reader may see it."""

    title: str
    messages: tuple[ReadMessage, ...]
    has_earlier: bool = False
    """Whether messages stand before these: no more are read of a long path."""


@dataclass(frozen=True, slots=True)
class OpenedShare:
    shared: SharedConversation
    read: ReadConversation


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingService:
    database: Database
    owner: ConversationOwner
    """Who shares or reads."""
    gate: AnswerGate
    """By what that person may read now."""
    actor: Actor = audit.OWNER

    def share(self, conversation_id: str, message_id: int) -> Share:
        """Share the path to an answer, and record it. Raises NotFoundError, InvalidInputError, ConflictError."""
        with self.database.transaction() as database:
            before = conversation_shares.find(database, self.owner, conversation_id)
            now = datetime.now(UTC)
            made = conversation_shares.share(database, self.owner, conversation_id, message_id, now)
            details = {"before": _describe(before), "after": _describe(made)}
            self._record(database, "share_conversation", conversation_id, details)
        return made

    def find_share(self, conversation_id: str) -> Share | None:
        """Return how a conversation is shared, None where it is not. Raises NotFoundError."""
        return conversation_shares.find(self.database, self.owner, conversation_id)

    def take_back(self, conversation_id: str) -> None:
        """Withdraw the link to a conversation, if there is one. Raises NotFoundError."""
        with self.database.transaction() as database:
            before = conversation_shares.find(database, self.owner, conversation_id)
            if before is not None:
                conversation_shares.remove(database, self.owner, conversation_id)
                details = {"before": _describe(before)}
                self._record(database, "withdraw_conversation_link", conversation_id, details)

    def open_shared(self, share_id: str) -> OpenedShare:
        """Return what a link leads to, as this reader may see it.

        Raises:
            NotFoundError
        """
        shared = conversation_shares.get_shared(self.database, share_id, self.owner)
        path = messages.list_path(self.database, shared.message_id, MOST_SHOWN)
        if not path:
            raise conversation_shares.make_missing_share_error()
        # The words of another first question may be the title: that one is not shared.
        title = shared.title if shared.title_by == "person" else _make_title_of(path)
        return OpenedShare(shared, self._read(title, list(map(redact, path))))

    def copy_shared(self, share_id: str) -> Conversation:
        """Make a conversation of this reader of what they may read: each question with its answer.

        Raises:
            NotFoundError
            ConflictError: they may read none of the answers.
        """
        path = self.open_shared(share_id).read.messages
        withheld = {one.message.parent_id for one in path if one.withheld}
        kept = [one.message for one in path if not one.withheld and one.message.id not in withheld]
        if not kept:
            raise ConflictError("You may read none of its answers, so nothing can be copied.")
        title = _make_title_of(kept)
        copied = conversation_copies.copy(self.database, self.owner, title, kept, datetime.now(UTC))
        return get_conversation(self.database, self.owner, copied)

    def read_own(self, conversation_id: str, leaf: int | None) -> ReadConversation:
        """Return the path to a message of one's own conversation; without one, the path that is shown.

        Raises:
            NotFoundError
        """
        conversation = get_conversation(self.database, self.owner, conversation_id)
        last = conversation.leaf_id
        if leaf is not None:
            last = messages.get(self.database, self.owner, conversation_id, leaf).id
        # No title rests on a document: see `titles.write_title`.
        return self._read(conversation.title, self._list_whole_path(last))

    def _list_whole_path(self, last: int | None) -> list[Message]:
        path: list[Message] = []
        while last is not None:
            portion = messages.list_path(self.database, last, MOST_SHOWN)
            path[:0] = portion
            last = portion[0].parent_id if portion else None
        return path

    def _record(
        self, database: Database, action: str, conversation_id: str, details: Mapping[str, object]
    ) -> None:
        audit.record(database, action, f"conversation:{conversation_id}", details, self.actor)

    def _read(self, title: str, path: Sequence[Message]) -> ReadConversation:
        portions = map(self.gate.find_withheld, batched(path, MOST_SHOWN))
        withheld = frozenset[int]().union(*portions)
        questions = {one.id: one.text for one in path if one.role == "user"}
        read = tuple(
            ReadMessage(one, questions.get(one.parent_id or 0, one.text), one.id in withheld)
            for one in path
        )
        return ReadConversation(title, read, bool(path) and path[0].parent_id is not None)


def _describe(share: Share | None) -> dict[str, object]:
    """Return what the audit says of a link: up to which answer it leads, not the link itself, nor any text."""
    return {} if share is None else {"message": share.message_id}


def _make_title_of(path: Sequence[Message]) -> str:
    """Make a title of the first question alone: an answer may be for fewer people."""
    return make_title(next((one.text for one in path if one.role == "user"), ""))
