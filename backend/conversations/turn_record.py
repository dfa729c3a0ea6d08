"""How an answer came about: what was searched, and when each step was first seen. Kept with the answer, and shown where it is."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.conversations.turn_events import EncodedEvent
from backend.store.chat.messages import Json

_RECORD = "record"
"""Its place in a stored answer; what reads the answer itself leaves it out."""


class TurnRecord:
    """What is noted while a turn runs."""

    def __init__(self) -> None:
        self._variants: Sequence[Json] = ()
        self._steps: dict[str, float] = {}
        self._began = time.monotonic()

    def note(self, event: EncodedEvent) -> None:
        self._steps.setdefault(event.name, round(time.monotonic() - self._began, 3))
        if event.name == "queries":
            self._variants = json.loads(event.data)["variants"]

    def add_to(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {**answer, _RECORD: {"variants": list(self._variants), "steps": dict(self._steps)}}


@dataclass(frozen=True, slots=True)
class SearchedVariant:
    name: str
    """`original`, `semantic`, `llm` or `keyword`."""
    text: str


def read_variants(answer: Json) -> tuple[SearchedVariant, ...]:
    """Return what was searched for a stored answer; nothing where that was not kept."""
    found = answer.get(_RECORD, {}).get("variants", ())
    return tuple(SearchedVariant(one["name"], one["text"]) for one in found)


def read_steps(answer: Json) -> Mapping[str, float]:
    """Return when each step was first seen, in seconds from the beginning of the turn."""
    steps: Mapping[str, float] = answer.get(_RECORD, {}).get("steps", {})
    return steps
