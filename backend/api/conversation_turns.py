"""The turns of conversations that a server process runs, and what it wakes their followers with."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import ParamSpec, TypeVar

from backend.api.problem_details import Problem
from backend.api.request_pools import RequestPools
from backend.conversations.turn_news import TurnNews
from backend.conversations.turn_runner import TurnRefusedError, TurnRunner
from backend.store.database import Database
from indexing.runtime.deadline import CancelToken
from indexing.runtime.priority_gate import WaitingLine

FOLLOWER_THREADS = 4
BETWEEN_LOOKS = 0.05
"""Seconds after which one of the followers that wait looks, however much is searched."""
P = ParamSpec("P")
T = TypeVar("T")
_STOPPING = TurnRefusedError("The server is stopping.", "Ask again when it is back.")


class _FollowerThreads(ThreadPoolExecutor):
    """Threads in which followers look, each once the searches that are under way have ended."""

    def __init__(self, line: WaitingLine) -> None:
        super().__init__(FOLLOWER_THREADS, "followers")
        self._line = line

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        def look() -> T:
            self._line.wait(BETWEEN_LOOKS)
            return fn(*args, **kwargs)

        return super().submit(look)


class ConversationTurns:
    """Their threads take slots of the pool of answers, which belongs to the event loop."""

    def __init__(self, database: Callable[[], Database], pools: RequestPools) -> None:
        self.news = TurnNews()
        self.runner = TurnRunner(
            database, self._hold_slot, self.news.announce, pools.answers_waiting_line.wait
        )
        self.followers = _FollowerThreads(pools.followers_waiting_line)
        """In which those who follow answers look at them; between two looks they wait without a thread."""
        self._pool = pools.answers
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Called on the event loop of the server."""
        self._loop = asyncio.get_running_loop()

    def stop(self, seconds: float) -> None:
        """End all turns, with what was written of them; wait until that is stored, but no longer than this."""
        self.runner.interrupt_all(seconds)
        self.followers.shutdown(cancel_futures=True)

    @contextmanager
    def _hold_slot(self, asker: str, cancel_token: CancelToken) -> Iterator[None]:
        """
        Raises:
            TurnRefusedError: too many wait, this one waited for too long, or the turn is cancelled.
        """
        if self._loop is None:
            raise ValueError("a turn began before the server did")
        taken = Future[asyncio.Event]()
        asyncio.run_coroutine_threadsafe(self._hold(asker, cancel_token, taken), self._loop)
        release = taken.result()
        try:
            yield
        finally:
            with suppress(RuntimeError):  # the loop is closed: the server has ended
                self._loop.call_soon_threadsafe(release.set)

    async def _hold(
        self, asker: str, cancel_token: CancelToken, taken: "Future[asyncio.Event]"
    ) -> None:
        """Hold a slot until what `taken` becomes is set."""
        release = asyncio.Event()
        try:
            async with self._pool.slot(asker, cancel_token):
                taken.set_result(release)
                await release.wait()
        except Problem as refusal:
            problem = refusal.problem
            taken.set_exception(TurnRefusedError(problem.detail, problem.advice))
        finally:
            if not taken.done():
                taken.set_exception(_STOPPING)
