"""The events of an answer of a conversation, as its followers receive them."""

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from backend.api.answer_events import FAILURES, describe_failure
from backend.api.server_sent_events import Event, SentEvent
from backend.conversations.followed_turn import TurnFollower, WithheldError
from backend.conversations.turn_events import NumberedEvent


@dataclass(frozen=True, slots=True)
class _StoredEvent:
    event: NumberedEvent

    @property
    def is_last(self) -> bool:
        return self.event.is_last

    def encoded(self, number: int) -> bytes:
        del number
        return _format(self.event.name, self.event.data, f"id: {self.event.number}\n")


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Ends a stream without a number: it is no event of the turn, and tells nothing of it."""

    event: Event
    is_last = True

    def encoded(self, number: int) -> bytes:
        del number
        return _format(self.event.name, self.event.data.model_dump(mode="json"), "")


def follow_answer(follower: TurnFollower, after: int) -> Generator[SentEvent, None, None]:
    """Yield the events behind a number; what is withheld ends with an `error` without a number."""
    try:
        for event in follower.follow(after):
            yield _StoredEvent(event)
    except (WithheldError, *FAILURES) as error:
        yield _Refusal(Event("error", describe_failure(error)))


def _format(name: str, data: Mapping[str, Any], number: str) -> bytes:
    # JSON has no line breaks outside of strings, and those within are escaped.
    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {encoded}\n{number}\n".encode()
