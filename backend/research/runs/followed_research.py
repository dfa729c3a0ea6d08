"""Follow a research run while any process works on it, from any of its events on.

What a follower receives is gated as the stored run is, by what its asker may read at that moment.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from backend.chat.readable_ids import OwnMemories
from backend.chat.rights_watch import EVERY, AskerGoneError, ReadersNow
from backend.conversations.answer_gate import WITHHELD, AnswerGate
from backend.conversations.followed_turn import FollowPosition, Seen
from backend.conversations.turn_events import EncodedEvent, NumberedEvent
from backend.conversations.turn_notifications import TurnNotifications, Wake
from backend.research.runs.run_events import StoredEvent, decode_portions
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.research import research_runs
from backend.store.research.research_runs import ENDED, FollowedResearch
from indexing.index.protocols import Index
from indexing.runtime.deadline import CancelToken, Deadline

WITHHELD_EVENT = EncodedEvent("withheld", json.dumps({"detail": WITHHELD}))
"""In the place of events that rest on documents that the asker may not read."""
POLL = 0.5
"""Seconds between two looks at a run, while no notifications of other processes come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchFollower:
    """Looks at a run again and again, each time for a moment: between two looks a follower takes no thread."""

    database: Database
    run_id: str
    owner: ConversationOwner
    """The person who follows: the owner of the run, or anybody in its project."""
    index: Index
    readers_now: ReadersNow
    own_memories: OwnMemories
    """Of the follower."""
    seconds: float
    """How long a look at the rights may take."""
    news: TurnNotifications
    cancel_token: CancelToken
    """Cancelled when the follower is gone."""

    def listen(self, wake: Wake) -> AbstractContextManager[None]:
        return self.news.listen(self.run_id, wake)

    @property
    def pause(self) -> float:
        return EVERY if self.news.hear_others() else POLL

    def has_more(self, after: int) -> bool:
        """Return whether events follow this number, or may follow it. Raises NotFoundError."""
        found = research_runs.follow(self.database, self.owner, self.run_id, after)
        return found.state not in ENDED or bool(found.payloads)

    def look(self, position: FollowPosition) -> Seen:
        """Return the events behind a position.

        Raises:
            NotFoundError: the run was deleted, or is not in the project of the follower any more.
            AskerGoneError: nothing more may be shown.
        """
        found = research_runs.follow(self.database, self.owner, self.run_id, position.after)
        stored = list(decode_portions(found.payloads, position.after))
        now = time.monotonic()
        is_over = found.state in ENDED
        if not stored and position.checked is not None and now - position.checked < EVERY:
            return Seen((), position, is_over)
        readable = self._find_readable(found, stored)
        after = stored[-1].number if stored else position.after
        shown = tuple(_show(found, stored, readable))
        return Seen(shown, FollowPosition(after, now), is_over)

    def _find_readable(
        self, found: FollowedResearch, events: Sequence[StoredEvent]
    ) -> frozenset[str]:
        readers = self.readers_now()
        if readers is None:
            raise AskerGoneError
        named = {found.document_ids[place] for event in events for place in event.places}
        gate = AnswerGate(
            index=self.index,
            readers=readers,
            own_memories=self.own_memories,
            deadline=Deadline.after(self.seconds, self.cancel_token),
        )
        return gate.find_readable(named.union(found.history_document_ids) if events else ())


def _show(
    found: FollowedResearch, events: Sequence[StoredEvent], readable: frozenset[str]
) -> Iterator[NumberedEvent]:
    """Yield the events; in place of those in a row that may not be shown, one that says so, with the number of the first."""
    history = readable.issuperset(found.history_document_ids)
    is_hidden = False
    for event in events:
        rests_on = (found.document_ids[place] for place in event.places)
        if _says_nothing(event) or (history and readable.issuperset(rests_on)):
            is_hidden = False
            yield NumberedEvent(event.number, event.name, event.data)
        elif not is_hidden:
            is_hidden = True
            yield NumberedEvent(event.number, WITHHELD_EVENT.name, json.loads(WITHHELD_EVENT.data))


def _says_nothing(event: StoredEvent) -> bool:
    """Return whether an event tells of the state of the run alone."""
    return event.name in {"state", "resumed", "done", "stopped", "failed"}
