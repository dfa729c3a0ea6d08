"""Pools: how many requests are worked on at the same time, and whose turn is next.

Searches and answers have pools of their own, so that a search never waits for answers. Within a pool, an asker with many
requests waits behind its own, not others behind all of them.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, auto
from math import ceil
from typing import Literal, Protocol, TypeAlias

from backend.api.problem_details import Problem, problem
from backend.settings import Settings
from indexing.runtime.deadline import CancelToken
from indexing.runtime.priority_gate import PriorityGate, WaitingLine

PATIENCE = 60.0
"""Seconds that a request waits for its turn before it is refused."""
MOST_SYNC_STREAMS = 100
"""Of clients that follow a sync; they wait without a thread."""
MOST_FOLLOWERS = 500
"""Of answers of conversations; they wait without a thread."""
_ANSWERS_WITH_MODEL, _ANSWERS_BY_PROCESSOR = 32, 2
_LONGEST_RETRY = 60
_WEIGHT = 0.2
"""Of the last request in the mean time that a slot is held."""

PoolName: TypeAlias = Literal["searches", "answers", "followed answers", "sync streams"]


class PoolObserver(Protocol):
    def waited(self, pool: str, seconds: float) -> None:
        """Note that a request has its slot, after so many seconds."""

    def refused(self, pool: str) -> None:
        """Note that a request is refused, because too many wait or because it waited for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    at_once: int | Callable[[], int]
    """Asked whenever a slot is taken or left, where it may change; it must not wait."""
    waiting: int
    """Maximum number of waiting requests."""
    patience: float = PATIENCE

    def read_at_once(self) -> int:
        return self.at_once if isinstance(self.at_once, int) else self.at_once()


class _Turn(Enum):
    COMES = auto()
    REFUSED = auto()
    ABANDONED = auto()
    """The client has disconnected, or the server stops."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    asker: str
    turn: "asyncio.Future[_Turn]"


class FairPool:
    """Slots, and a bounded queue in front of them. Used by the event loop alone.

    A free slot goes to the waiting asker who holds the fewest. No asker holds all slots, so that another one does not wait for
    requests that take long. Where the queue is full, the asker with the most requests in it gives up its last place.
    """

    def __init__(
        self,
        name: PoolName,
        limits: PoolLimits,
        observer: PoolObserver,
        priority_gate: PriorityGate | None = None,
    ) -> None:
        self._name = name
        self._priority_gate = priority_gate or PriorityGate()
        self._limits = limits
        self._observer = observer
        self._held = Counter[str]()
        self._queues: dict[str, deque[_Waiting]] = {}
        """By asker, in the order in which they take turns."""
        self._seconds = 1.0
        """That a slot is held, in the mean."""

    @asynccontextmanager
    async def slot(self, asker: str, cancel_token: CancelToken) -> AsyncIterator[None]:
        """Wait for a slot, and hold it.

        Raises:
            Problem: 503, too many wait, this one waited for too long, or the request is cancelled.
        """
        asked = time.monotonic()
        if self._can_take(asker):
            self._held[asker] += 1
        else:
            await self._wait(asker, cancel_token)
        began = time.monotonic()
        self._observer.waited(self._name, began - asked)
        try:
            with self._priority_gate.hold():
                yield
        finally:
            self._seconds += _WEIGHT * (time.monotonic() - began - self._seconds)
            self._leave(asker)

    async def _wait(self, asker: str, cancel_token: CancelToken) -> None:
        loop = asyncio.get_running_loop()
        if not self._make_room(asker):
            raise self._refusal()
        one = _Waiting(asker, loop.create_future())
        self._queues.setdefault(asker, deque()).append(one)
        timer = loop.call_later(self._limits.patience, self._settle, one, _Turn.REFUSED)

        def abandon() -> None:
            loop.call_soon_threadsafe(self._settle, one, _Turn.ABANDONED)

        try:
            with cancel_token.on_cancel(abandon):
                await self._follow(one)
        finally:
            timer.cancel()

    async def _follow(self, one: _Waiting) -> None:
        try:
            turn = await asyncio.shield(one.turn)
        except asyncio.CancelledError:
            self._settle(one, _Turn.ABANDONED)
            if one.turn.result() is _Turn.COMES:
                self._leave(one.asker)
            raise
        match turn:
            case _Turn.COMES:
                return
            case _Turn.REFUSED:
                raise self._refusal()
            case _Turn.ABANDONED:
                raise Problem(
                    problem(503, "The request was cancelled while it waited.", "Ask again.")
                )

    def _can_take(self, asker: str) -> bool:
        at_once = self._limits.read_at_once()
        return self._held.total() < at_once and self._held[asker] < max(1, at_once - 1)

    def _leave(self, asker: str) -> None:
        self._held[asker] -= 1
        if not self._held[asker]:
            del self._held[asker]
        while (following := self._next_asker()) is not None:
            self._held[following] += 1
            self._queues[following] = queue = self._queues.pop(following)
            self._settle(queue[0], _Turn.COMES)

    def _next_asker(self) -> str | None:
        able = filter(self._can_take, self._queues)
        return min(able, key=self._held.__getitem__, default=None)

    def _settle(self, one: _Waiting, turn: _Turn) -> None:
        """Take a request out of the queue, unless it is out already."""
        if one.turn.done():
            return
        queue = self._queues[one.asker]
        queue.remove(one)
        if not queue:
            del self._queues[one.asker]
        one.turn.set_result(turn)

    def _make_room(self, asker: str) -> bool:
        """Return whether one more of the asker's may wait; the last one of a greedier asker is refused for it."""
        if self._count_waiting() < self._limits.waiting:
            return True
        own = len(self._queues.get(asker, ()))
        longest = max(self._queues.values(), key=len, default=deque[_Waiting]())
        if len(longest) <= own + 1:
            return False
        self._settle(longest[-1], _Turn.REFUSED)
        return True

    def _count_waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    def _refusal(self) -> Problem:
        self._observer.refused(self._name)
        until_free = self._seconds * (self._count_waiting() + 1) / self._limits.read_at_once()
        seconds = min(_LONGEST_RETRY, max(1, ceil(until_free)))
        detail = f"Quarry is busy: too many {self._name} are under way."
        advice = f"Try again in {seconds} s."
        return Problem(problem(503, detail, advice), {"Retry-After": str(seconds)})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPools:
    """Those of one server process."""

    searches: FairPool
    """Also all other requests, while their functions run."""
    answers: FairPool
    """Also what takes as long as they do."""
    followed_answers: FairPool
    sync_streams: FairPool
    search_priority: PriorityGate
    """Held by searches."""
    answers_waiting_line: WaitingLine
    """In which the threads of answers wait while searches are under way."""
    followers_waiting_line: WaitingLine
    """The same of those who follow answers."""

    @classmethod
    def of(
        cls, settings: Settings, observer: PoolObserver, has_model: Callable[[], bool]
    ) -> "RequestPools":
        """Make the pools that the settings describe.

        Args:
            has_model: whether a language model answers, as far as is known at once.
        """
        waiting = settings.requests_waiting
        searches = PoolLimits(at_once=settings.searches_at_once, waiting=waiting)
        answers = PoolLimits(at_once=_answers_at_once(settings, has_model), waiting=waiting)
        followers = PoolLimits(at_once=MOST_FOLLOWERS, waiting=0)
        streams = PoolLimits(at_once=MOST_SYNC_STREAMS, waiting=0)
        priority_gate = PriorityGate()
        return cls(
            searches=FairPool("searches", searches, observer, priority_gate),
            answers=FairPool("answers", answers, observer),
            followed_answers=FairPool("followed answers", followers, observer),
            sync_streams=FairPool("sync streams", streams, observer),
            search_priority=priority_gate,
            answers_waiting_line=WaitingLine(priority_gate),
            followers_waiting_line=WaitingLine(priority_gate),
        )


def _answers_at_once(settings: Settings, has_model: Callable[[], bool]) -> int | Callable[[], int]:
    """Return how many answers are made at once.

    Without a language model an answer keeps a processor busy; with one it mostly waits for the model.
    """
    if settings.answers_at_once:
        return settings.answers_at_once
    return lambda: _ANSWERS_WITH_MODEL if has_model() else _ANSWERS_BY_PROCESSOR
