"""Makes the parts of Quarry ready before anything is asked of them.

One thread makes them, one after the other: they are made when they are first used, and two threads
that did so at once would make some of them twice. It tries again until all are there.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from backend.assembly import Quarry
from backend.search.results import find
from backend.wire import PartWire, ReadyWire
from connectors.document import Readers
from connectors.errors import AskTheOwner, RetryLater
from indexing.deadline import DeadlineExceeded
from indexing.index import Filters

PAUSE = 5.0
"""Seconds before a part that failed is tried again."""

State: TypeAlias = Literal["waiting", "ready", "failed"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    make: Callable[[], object]


def parts_of(quarry: Quarry) -> tuple[Part, ...]:
    """In the order in which each needs those before it."""
    return (
        Part("home", lambda: quarry.home),
        Part("database", lambda: (quarry.database, quarry.contents, quarry.ledger)),
        Part("embedding model", lambda: (quarry.embedder, quarry.understanding)),
        Part("index", lambda: (quarry.index, quarry.keeper)),
        Part("language model", lambda: (quarry.language_model, quarry.count_tokens)),
        Part("search", lambda: _first_search(quarry)),
    )


class Readiness:
    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._states: dict[str, tuple[State, str]] = {part.name: ("waiting", "") for part in parts}
        self._all = threading.Event()
        self._stopping = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._make_all, name="warm-up", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def wait(self, seconds: float) -> bool:
        """Whether everything was ready within so many seconds."""
        return self._all.wait(seconds)

    def told(self) -> ReadyWire:
        parts = (
            PartWire(name=name, state=state, detail=detail)
            for name, (state, detail) in self._states.items()
        )
        return ReadyWire(ready=self._all.is_set(), parts=tuple(parts))

    def _make_all(self) -> None:
        for part in self._parts:
            while not self._made(part):
                if self._stopping.wait(PAUSE):
                    return
        self._all.set()

    def _made(self, part: Part) -> bool:
        told: tuple[State, str] = ("failed", "A mistake in the program; the log says more.")
        try:
            part.make()
            told = ("ready", "")
        except (AskTheOwner, RetryLater, DeadlineExceeded) as error:
            told = ("failed", str(error))
        finally:
            self._tell(part, told)
        return told[0] == "ready"

    def _tell(self, part: Part, told: tuple[State, str]) -> None:
        state, detail = told
        if state == "failed" and self._states[part.name] != told:
            _log.warning("Not ready, %s: %s", part.name, detail)
        self._states[part.name] = told


def _first_search(quarry: Quarry) -> None:
    """It reads the index into memory, and loads what only a search needs."""
    find(quarry.search_tool(), quarry.request("first search", Readers.of(), Filters()), 1)
