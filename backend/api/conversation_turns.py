"""The turns of conversations that a server process runs or has run, and what it wakes their followers with."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

from backend.api.answer_process import AnswerProcess, BeginTurn, StartProcess
from backend.api.metrics_collector import Metrics
from backend.api.problem_details import STOPPING, Problem
from backend.api.request_pools import FairPool, RequestPools
from backend.api.server_cores import ServerCores
from backend.api.turn_maker import TurnAsker, TurnMaker
from backend.conversations.new_turn import LocalTurns, NewTurn, TurnProcess, Turns
from backend.conversations.turn_notifications import TurnNotifications
from backend.conversations.turn_runner import TurnRefusedError, TurnRunner
from backend.schemas.system import ProblemDetails
from backend.store.chat.turn_listener import TurnListener
from backend.store.database import Database
from backend.store.documents import batches
from backend.store.sync.runs import Process
from indexing.runtime.deadline import CancelToken
from indexing.runtime.priority_gate import WaitingLine

FOLLOWER_THREADS = 4
BETWEEN_LOOKS = 0.05
"""Seconds after which one of the followers that wait looks, however much is searched."""
P = ParamSpec("P")
T = TypeVar("T")
_ASK_AGAIN = "Ask again."


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


class TurnSlots:
    """Slots of the pool of answers, which belongs to an event loop, for the threads of turns."""

    def __init__(self, pool: FairPool) -> None:
        self._pool = pool
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    @contextmanager
    def hold(self, asker: str, cancel_token: CancelToken) -> Iterator[None]:
        """Hold a slot of the pool for the turn of an asker.

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
            taken.set_exception(_refuse(refusal.problem))
        finally:
            if not taken.done():
                taken.set_exception(_refuse(STOPPING))


def _refuse(problem: ProblemDetails) -> TurnRefusedError:
    return TurnRefusedError(problem.detail, problem.advice or _ASK_AGAIN)


class ConversationTurns:
    """
    Args:
        start_process: starts a process that runs turns where several run at once; None: all of them run here.
    """

    def __init__(
        self,
        database: Callable[[], Database],
        pools: RequestPools,
        metrics: Metrics,
        start_process: StartProcess | None = None,
    ) -> None:
        self._listener = TurnListener(database, self._hear, self._look_all)
        self.news = TurnNotifications(self._listener.ensure_listening)
        self.followers = _FollowerThreads(pools.followers_waiting_line)
        """In which those who follow answers look at them; between two looks they wait without a thread."""
        self._slots = TurnSlots(pools.answers)
        self._runner = TurnRunner(
            database, self._slots.hold, self.news.announce, pools.answers_waiting_line.wait
        )
        self._process = (
            AnswerProcess(start_process, metrics, self.news.announce, ServerCores())
            if start_process
            else None
        )

    def start(self) -> None:
        """Start to give slots. Called on the event loop of the server."""
        self._slots.start(asyncio.get_running_loop())

    def of_asker(self, asker: TurnAsker, maker: TurnMaker) -> Turns:
        """Return the turns of an asker, whose next one runs where it is served best."""
        local = LocalTurns(self._runner, partial(maker.make_order, asker))
        return AskerTurns(asker, local, maker.database, self._process) if self._process else local

    def runs(self, message_id: int) -> bool:
        """Return whether this process runs a turn."""
        return self._runner.runs(message_id)

    def announces(self, message_id: int) -> bool:
        """Return whether news of a turn come to this process: it runs here, or in the answer process."""
        return self.runs(message_id) or (
            self._process is not None and self._process.announces(message_id)
        )

    def stop(self, seconds: float) -> None:
        """End all turns, with what was written of them; wait until that is stored, but no longer than this."""
        end = time.monotonic() + seconds
        if self._process is not None:
            self._process.end()
        self._runner.interrupt_all(seconds)
        self.followers.shutdown(cancel_futures=True)
        if self._process is not None:
            self._process.join(max(0.0, end - time.monotonic()))
        self._listener.close(max(0.0, end - time.monotonic()))

    def _hear(self, followed_id: int | str) -> None:
        """Pass on what another process tells; of what this one announces, its followers know already."""
        if isinstance(followed_id, str) or not self.announces(followed_id):
            self.news.announce(followed_id)

    def _look_all(self) -> None:
        self.news.announce_all()


@dataclass(frozen=True, slots=True)
class AskerTurns:
    """The turns of one asker where there may be an answer process. Implements `Turns`."""

    asker: TurnAsker
    local: LocalTurns
    database: Database
    process: AnswerProcess

    def choose_process(self) -> TurnProcess:
        # A process of lower priority would hardly go on beside what is to be indexed, which takes all cores.
        if batches.list_ready_sources(self.database):
            return self.local
        holder = self.process.choose_holder(self.local.runner.count_running())
        return _RemoteTurns(holder, self.asker, self.process) if holder else self.local

    def stop(self, message_id: int) -> None:
        self.local.stop(message_id)
        self.process.stop(message_id)


@dataclass(frozen=True, slots=True)
class _RemoteTurns:
    """Turns of one asker that the answer process runs. Implements `TurnProcess`."""

    holder: Process
    asker: TurnAsker
    process: AnswerProcess

    def begin(self, turn: NewTurn) -> None:
        self.process.begin(self.holder, BeginTurn(self.asker, turn))
