"""The events of a turn as they are stored and sent: numbered from 1, without a gap."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from backend.chat.events import ChatEvent

INTERRUPTED = "This answer was interrupted: the server ended. Ask again."
STOPPED = "The answer was stopped."
FAILED = "This answer is not complete: it failed."
NOTICES: Mapping[str, str] = MappingProxyType(
    {"stopped": STOPPED, "interrupted": INTERRUPTED, "failed": FAILED}
)
"""What is said of an answer that is not complete, by its status."""
LOST = "lost"
"""The event of a step that the answer is written without."""
CITATION = "citation"
"""The event before the first citation of a document."""
SELECTED = "selected"
"""The event of the passages that the answer is written from."""
_LAST = frozenset({"done", "error", "failed", "stopped", "interrupted"})


@dataclass(frozen=True, slots=True)
class EncodedEvent:
    """An event in the form in which clients receive it."""

    name: str
    data: str
    """JSON."""


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    number: int
    name: str
    data: Mapping[str, Any]

    @property
    def is_last(self) -> bool:
        return self.name in _LAST


class EventEncoder(Protocol):
    """Puts the events of one turn into the form in which clients receive them."""

    @property
    def broken(self) -> EncodedEvent:
        """The `error` of a turn that ended without a final event: an error in the program."""

    def encode(self, event: ChatEvent) -> EncodedEvent | None:
        """Return None for what is not sent. An `AnswerDone` becomes `done`, a `TurnFailed` becomes `error`."""

    def encode_failure(self, error: Exception) -> EncodedEvent:
        """Return the `error` of what ended the turn."""


def encode_portion(first: int, events: Sequence[EncodedEvent]) -> str:
    numbered = enumerate(events, first)
    return (
        f"[{','.join(f'[{number},{json.dumps(one.name)},{one.data}]' for number, one in numbered)}]"
    )


def decode_portions(payloads: Iterable[str], after: int = 0) -> Iterator[NumberedEvent]:
    """Yield the events whose number is greater than `after`."""
    for payload in payloads:
        for number, name, data in json.loads(payload):
            if number > after:
                yield NumberedEvent(number, name, data)


def encode_ending(name: str, detail: str) -> EncodedEvent:
    return EncodedEvent(name, json.dumps({"detail": detail}))


def join_text(events: Iterable[NumberedEvent]) -> str:
    """Return what was written of an answer."""
    return "".join(one.data["text"] for one in events if one.name == "text")
