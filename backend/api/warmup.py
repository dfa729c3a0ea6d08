"""Makes the parts of Quarry ready before anything is asked of them.

One thread makes them, one after the other: they are made when they are first used, and two threads
that did so at once would make some of them twice. It tries again until all are there, and makes them
anew where the index was switched to another index version meanwhile.
"""

import gc
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from backend.container import Container
from backend.schemas.system import PartStatus, ReadinessResponse
from connectors.access import Readers
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.index.protocols import Filters
from indexing.runtime.deadline import DeadlineExceededError

PAUSE = 5.0
"""Seconds before a part that failed is tried again."""

State: TypeAlias = Literal["waiting", "ready", "failed"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    make: Callable[[], object]


class Served:
    """The Quarry of a server: a new one, once its index has been switched to another index version."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self._opened: EmbedderIdentity | None = None

    def parts(self) -> tuple[Part, ...]:
        """In the order in which each needs those before it."""
        return (
            Part("home", lambda: self.container.home),
            Part("database", lambda: (self.container.database, self.container.ledger)),
            Part(
                "embedding model",
                lambda: (
                    self.container.embedding.embedder,
                    self.container.embedding.language_support,
                ),
            ),
            Part("index", lambda: (self.container.engine.index, self.container.engine.writer)),
            Part(
                "language model",
                lambda: (self.container.chat.model, self.container.chat.count_tokens),
            ),
            Part("search", lambda: _first_search(self.container)),
        )

    def renewed(self) -> bool:
        """Whether another index version has taken the place of the one that was opened; all parts are then
        to be made anew."""
        try:
            active = self.container.engine.versions.active()
            opened = self._opened or self.container.engine.version.embedder
        except (ActionRequiredError, TemporarilyUnavailableError):
            return False
        if active is None or active.embedder == opened:
            return False
        self._opened, self.container = active.embedder, self.container.reopen()
        return True


class Readiness:
    """Whether all parts are made.

    Args:
        renewed: asked again and again; whether all of them are to be made anew.
    """

    def __init__(self, parts: Sequence[Part], renewed: Callable[[], bool] = lambda: False) -> None:
        self._parts = parts
        self._renewed = renewed
        self._states: dict[str, tuple[State, str]] = {part.name: ("waiting", "") for part in parts}
        self._all = threading.Event()
        self._stopping = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._keep_up, name="warm-up", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def wait(self, seconds: float) -> bool:
        """Whether everything was ready within so many seconds."""
        return self._all.wait(seconds)

    def is_made(self, name: str) -> bool:
        return self._states[name][0] == "ready"

    def told(self) -> ReadinessResponse:
        parts = (
            PartStatus(name=name, state=state, detail=detail)
            for name, (state, detail) in self._states.items()
        )
        return ReadinessResponse(ready=self._all.is_set(), parts=tuple(parts))

    def _keep_up(self) -> None:
        while self._all_made():
            _settle()
            self._all.set()
            while not self._renewed():
                if self._stopping.wait(PAUSE):
                    return
            self._all.clear()

    def _all_made(self) -> bool:
        """False where it was stopped before."""
        waiting = list(self._parts)
        while waiting:
            if self._made(waiting[0]):
                waiting.pop(0)
            elif self._stopping.wait(PAUSE):
                return False
            elif self._renewed():
                waiting = list(self._parts)
        return True

    def _made(self, part: Part) -> bool:
        told: tuple[State, str] = ("failed", "A mistake in the program; the log says more.")
        try:
            part.make()
            told = ("ready", "")
        except (ActionRequiredError, TemporarilyUnavailableError, DeadlineExceededError) as error:
            told = ("failed", str(error))
        finally:
            self._tell(part, told)
        return told[0] == "ready"

    def _tell(self, part: Part, told: tuple[State, str]) -> None:
        state, detail = told
        if state == "failed" and self._states[part.name] != told:
            _log.warning("Not ready, %s: %s", part.name, detail)
        self._states[part.name] = told


def _settle() -> None:
    """What was made stays: to look for garbage in it would stop every search for a tenth of a second, now and then."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _first_search(container: Container) -> None:
    """Read the index into memory, and load what only a search needs."""
    search = container.chat.search
    request = search.request("first search", Readers.of(), Filters(), search.deadline())
    search.find_sections(request, 1)
