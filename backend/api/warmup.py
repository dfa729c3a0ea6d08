"""Make the parts of the server before the first request needs them.

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

from backend.composition.chat import ChatService
from backend.composition.index import EmbeddingModel, IndexEngine
from backend.container import Container
from backend.schemas.system import PartStatus, ReadinessResponse
from backend.search.query_syntax import parse_query
from backend.search.search_service import SearchService
from backend.web_search.session_cache import CacheObserver
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


class CurrentContainer:
    """The current container of a server; replaced once the index is switched to another version."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self._opened: EmbedderIdentity | None = None
        self._web_observers: list[CacheObserver] = []

    def observe_web(self, observer: CacheObserver) -> None:
        """Tell of look-ups in the caches of web sessions, in this container and those that follow it."""
        self._web_observers.append(observer)
        self.container.web.sessions.add_observer(observer)

    def parts(self) -> tuple[Part, ...]:
        """Return the parts, each after those that it needs; of the container at the time when a part is made."""
        return (
            Part("home", lambda: self.container.home),
            Part("database", lambda: (self.container.database, self.container.sources.ledger)),
            # The name of the model may be read from the index: where that does not answer, the model is not
            # to blame.
            Part("index engine", lambda: _ask_engine(self.container.engine)),
            Part("embedding model", lambda: _load_model(self.container.embedding)),
            Part("index", lambda: (self.container.engine.index, self.container.engine.writer)),
            Part(
                "language model",
                lambda: _load_language_model(self.container.chat),
            ),
            Part("search", lambda: _first_search(self.container.chat.search)),
        )

    def reopen_if_switched(self) -> bool:
        """Reopen the home if the index was switched to another version; return whether all parts must be made again."""
        try:
            active = self.container.engine.versions.active()
            opened = self._opened or self.container.engine.version.embedder
        except (ActionRequiredError, TemporarilyUnavailableError):
            return False
        if active is None or active.embedder == opened:
            return False
        self._opened = active.embedder
        self.reopen()
        return True

    def reopen(self) -> None:
        """Replace the container by one of the same home, of which nothing is opened yet."""
        self.container = self.container.reopen()
        for observer in self._web_observers:
            self.container.web.sessions.add_observer(observer)


class Warmup:
    """Makes all parts in the background, and reports their states.

    Args:
        reopen_if_switched: called regularly; whether all parts must be made again.
        when_ready: called each time that all are made.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        reopen_if_switched: Callable[[], bool] = lambda: False,
        when_ready: Callable[[], object] = lambda: None,
    ) -> None:
        self._parts = parts
        self._when_ready = when_ready
        self._reopen_if_switched = reopen_if_switched
        self._states: dict[str, tuple[State, str]] = {part.name: ("waiting", "") for part in parts}
        self.ready = threading.Event()
        """Set while all parts are made."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    @property
    def is_settled(self) -> bool:
        """Whether all parts are made, or one has failed, which may last."""
        return self.ready.is_set() or any(state == "failed" for state, _ in self._states.values())

    def is_made(self, name: str) -> bool:
        return self._states[name][0] == "ready"

    def status(self) -> ReadinessResponse:
        parts = (
            PartStatus(name=name, state=state, detail=detail)
            for name, (state, detail) in self._states.items()
        )
        return ReadinessResponse(ready=self.ready.is_set(), parts=tuple(parts))

    def _run(self) -> None:
        while self._make_all():
            freeze_garbage()
            self.ready.set()
            self._when_ready()
            while not self._reopen_if_switched():
                if self._stopping.wait(PAUSE):
                    return
            self.ready.clear()

    def _make_all(self) -> bool:
        """Make all parts; return False if it was stopped."""
        waiting = list(self._parts)
        while waiting:
            if self._make(waiting[0]):
                waiting.pop(0)
            elif self._stopping.wait(PAUSE):
                return False
            elif self._reopen_if_switched():
                waiting = list(self._parts)
        return True

    def _make(self, part: Part) -> bool:
        state: tuple[State, str] = ("failed", "An internal error; the log says more.")
        try:
            part.make()
            state = ("ready", "")
        except (ActionRequiredError, TemporarilyUnavailableError, DeadlineExceededError) as error:
            state = ("failed", str(error))
        finally:
            self._set_state(part, state)
        return state[0] == "ready"

    def _set_state(self, part: Part, new: tuple[State, str]) -> None:
        state, detail = new
        if state == "failed" and self._states[part.name] != new:
            _log.warning("Not ready, %s: %s", part.name, detail)
        self._states[part.name] = new


def freeze_garbage() -> None:
    """Exclude what was made, which stays, from garbage collection: each would stop every search for 100 ms."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _ask_engine(engine: IndexEngine) -> None:
    engine.versions.active()


def _load_model(embedding: EmbeddingModel) -> None:
    _ = embedding.embedder, embedding.language_support


def _load_language_model(chat: ChatService) -> None:
    _ = chat.model is not None and chat.count_model_tokens, chat.count_tokens


def _first_search(search: SearchService) -> None:
    """Read the index into memory, and load what only a search needs."""
    query, deadline = parse_query("first search"), search.deadline()
    request = search.request(query, Readers.of(), Filters(), deadline)
    search.find_sections(request, 1)
