"""How an answer came about: what was searched, and when each step was first seen. Kept with the answer, and shown where it is."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.conversations.turn_events import EncodedEvent
from backend.store.messages import Json

_RECORD = "record"
"""Its place in a stored answer; what reads the answer itself leaves it out."""


@dataclass(slots=True)
class TurnRecord:
    """What is noted while a turn runs."""

    variants: tuple[Json, ...] = ()
    steps: dict[str, float] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    def note(self, event: EncodedEvent) -> None:
        self.steps.setdefault(event.name, round(time.monotonic() - self._began, 3))
        if event.name == "queries":
            self.variants = tuple(json.loads(event.data)["variants"])

    def add_to(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {**answer, _RECORD: {"variants": list(self.variants), "steps": dict(self.steps)}}


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
