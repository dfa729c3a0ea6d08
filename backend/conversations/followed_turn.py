"""Follow an answer while it is written, by whichever process, from any of its events on.

What a follower receives is gated as the stored answer is, by what its asker may read at that moment.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from backend.chat.readable_ids import OwnMemories
from backend.chat.rights_watch import EVERY, AskerGoneError, ReadersNow
from backend.conversations.answer_gate import WITHHELD, AnswerGate
from backend.conversations.answer_redaction import redact_event
from backend.conversations.interrupted_turns import end_interrupted
from backend.conversations.turn_events import NumberedEvent, decode_portions
from backend.conversations.turn_notifications import TurnNotifications, Wake
from backend.conversations.visible_filters import keep_visible
from backend.store.chat import turns
from backend.store.chat.messages import make_missing_message_error
from backend.store.chat.turns import FollowedTurn
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from connectors.errors import NotAllowedError
from indexing.index.protocols import Index
from indexing.runtime.deadline import CancelToken, Deadline

POLL = 0.25
"""Seconds between two looks at a turn that another process runs, while none of that process's notifications come."""
_FOUND = {"first_results", "results"}
"""Events of documents that were found, of which the answer may use some."""
_NARROWED = "narrowed"
"""Names sources, people and types that the asker could see."""


class WithheldError(NotAllowedError):
    """The asker may not read what the answer rests on."""


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """Where an answer stands."""

    author: ConversationOwner
    conversation_id: str


@dataclass(frozen=True, slots=True)
class FollowedAnswer:
    message_id: int
    find_place: Callable[[], AnswerPlace]
    """Called with each look; raises NotFoundError where the follower may not see it any more."""
    is_own: bool
    """Whether the follower is its author."""


@dataclass(frozen=True, slots=True)
class FollowPosition:
    """How far a follower is."""

    after: int
    """The number of the last event that it has."""
    checked: float | None = None
    """When its rights were last read; None where they were not yet."""
    documents: frozenset[str] = frozenset()
    """Those that the answer rested on then."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is new since a position."""

    events: tuple[NumberedEvent, ...]
    position: FollowPosition
    """Where the follower is then."""
    is_over: bool
    """Nothing follows any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFollower:
    """Looks at a turn again and again, each time for a moment: between two looks a follower takes no thread."""

    database: Database
    answer: FollowedAnswer
    index: Index
    readers_now: ReadersNow
    own_memories: OwnMemories
    """Of the follower."""
    seconds: float
    """How long a look at the rights may take."""
    news: TurnNotifications
    is_announced: Callable[[], bool]
    """Whether the turn is announced in this process, so that the one that runs it has not died."""
    cancel_token: CancelToken
    """Cancelled when the follower is gone."""

    def listen(self, wake: Wake) -> AbstractContextManager[None]:
        """Call `wake` with all news of the turn during the block."""
        return self.news.listen(self.answer.message_id, wake)

    def has_more(self, after: int) -> bool:
        """Return whether events follow this number, or may follow it.

        Raises:
            NotFoundError: there is no such answer.
        """
        end_interrupted(self.database)
        found = self._look(after)
        return found.status == "running" or bool(found.payloads)

    @property
    def pause(self) -> float:
        """Seconds until the next look, where no news comes before."""
        return EVERY if self.is_announced() or self.news.hear_others() else POLL

    def look(self, position: FollowPosition) -> Seen:
        """Return the events behind a position.

        Raises:
            NotFoundError: the conversation was deleted, or is not in the project of the follower any more.
            WithheldError, AskerGoneError: nothing more may be shown.
        """
        now = time.monotonic()
        is_due = position.checked is None or now - position.checked >= EVERY
        if is_due and position.checked is not None and not self.is_announced():
            end_interrupted(self.database)
        found = self._look(position.after)
        events = list(decode_portions(found.payloads, position.after))
        after = events[-1].number if events else position.after
        rests_on = frozenset(found.document_ids)
        if is_due or rests_on != position.documents or any(map(_names_documents, events)):
            events = self._check(found, events)
            position = FollowPosition(after, now, rests_on)
        shown = events if self.answer.is_own else filter(None, map(redact_event, events))
        return Seen(tuple(shown), replace(position, after=after), found.status != "running")

    def _look(self, after: int) -> FollowedTurn:
        answer = self.answer
        place = answer.find_place()
        found = turns.follow(
            self.database, place.author, place.conversation_id, answer.message_id, after
        )
        if found is None:
            raise make_missing_message_error()
        return found

    def _check(self, turn: FollowedTurn, events: Sequence[NumberedEvent]) -> list[NumberedEvent]:
        """Return the events without results that the asker may not read now."""
        readers = self.readers_now()
        if readers is None:
            raise AskerGoneError
        deadline = Deadline.after(self.seconds, self.cancel_token)
        gate = AnswerGate(
            index=self.index, readers=readers, own_memories=self.own_memories, deadline=deadline
        )
        results = {one for event in events for one in _list_found(event)}
        readable = gate.find_readable([*turn.document_ids, *results])
        if not readable.issuperset(turn.document_ids):
            raise WithheldError(WITHHELD)
        shown = [_without_unreadable(event, readable) for event in events]
        return [self._without_hidden_filters(event, readers, deadline) for event in shown]

    def _without_hidden_filters(
        self, event: NumberedEvent, readers: Readers, deadline: Deadline
    ) -> NumberedEvent:
        if event.name != _NARROWED or not event.data.get("inferred"):
            return event
        kept = keep_visible(event.data["inferred"], self.index, readers, deadline)
        return replace(event, data={**event.data, "inferred": kept})


def _names_documents(event: NumberedEvent) -> bool:
    return event.name in {*_FOUND, _NARROWED, "selected", "passages", "citation", "done"}


def _list_found(event: NumberedEvent) -> Iterator[str]:
    if event.name in _FOUND:
        yield from (result["document_id"] for result in event.data["results"])


def _without_unreadable(event: NumberedEvent, readable: frozenset[str]) -> NumberedEvent:
    if event.name not in _FOUND:
        return event
    kept = [result for result in event.data["results"] if result["document_id"] in readable]
    return replace(event, data={**event.data, "results": kept})
