"""A process of its own that runs the turns of conversations, where several people chat at once.

All threads of a process share the interpreter's lock, so that searches would wait for what answers compute. The other process
yields the processor to this one. It is started when a turn begins while another one runs, and ends when nobody has chatted for a
while. Until it is ready, which takes seconds, few turns run here; more wait for it.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeAlias

from backend.api.metrics_collector import Metrics
from backend.api.turn_maker import TurnAsker
from backend.conversations.new_turn import NewTurn
from backend.store.runs import Process
from backend.store.web_cache import CacheKind
from backend.sync.run_lease import find_process
from backend.web_search.session_cache import Outcome

LOG = logging.getLogger("quarry.processes")
MOST_MEANWHILE = 2
"""Turns that run in the process of the server while this one starts."""
IDLE_SECONDS = 600.0
"""Without a turn, after which the process is ended: it holds the index and the embedding model in memory."""
RESTART_SECONDS = 30.0
"""Until a process is started again after one that died."""
_LOOK = 5.0
"""Seconds between two looks whether it is idle."""


@dataclass(frozen=True, slots=True)
class BeginTurn:
    asker: TurnAsker
    turn: NewTurn


@dataclass(frozen=True, slots=True)
class StopTurn:
    message_id: int


@dataclass(frozen=True, slots=True)
class EndProcess:
    """Interrupt all turns and end."""


Command: TypeAlias = BeginTurn | StopTurn | EndProcess
"""What the process is told."""


@dataclass(frozen=True, slots=True)
class ProcessReady:
    """It need not be waited for any more."""


@dataclass(frozen=True, slots=True)
class TurnStored:
    """More of a turn can be read."""

    message_id: int
    is_running: bool


@dataclass(frozen=True, slots=True)
class SlotTaken:
    pool: str
    waited: float
    """Seconds."""


@dataclass(frozen=True, slots=True)
class SlotRefused:
    pool: str


@dataclass(frozen=True, slots=True)
class WebCacheLookup:
    kind: CacheKind
    outcome: Outcome


Report: TypeAlias = ProcessReady | TurnStored | SlotTaken | SlotRefused | WebCacheLookup
"""What the process tells."""
StartProcess: TypeAlias = Callable[[Connection], BaseProcess]
"""Starts the process with its end of the pipe: it receives commands and sends reports."""


class AnswerProcess:
    """
    Args:
        stored: called with the id of an answer of which more can be read, or whose process has died.
    """

    def __init__(
        self,
        start: StartProcess,
        metrics: Metrics,
        stored: Callable[[int], object],
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._start = start
        self._metrics = metrics
        self._stored = stored
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        """While the process lives."""
        self._holder: Process | None = None
        """Until it is to end."""
        self._is_ready = False
        self._running = set[int]()
        self._used = time.monotonic()
        self._next_start = 0.0
        self._thread: threading.Thread | None = None
        self._has_ended = False

    def reserve(self, running: int) -> Process | None:
        """Return the process that is to run the next turn, and which then stays for long enough to begin it; None for that of the server.

        Args:
            running: turns that this process runs.
        """
        with self._lock:
            self._used = time.monotonic()
            if running and self._holder is None and self._may_start():
                self._start_process()
            return self._holder if self._is_ready or running >= MOST_MEANWHILE else None

    def begin(self, command: BeginTurn) -> None:
        """Begin a turn. Where the process has died by now, the turn is found to be interrupted."""
        with self._lock:
            self._running.add(command.turn.message_id)
            if not self._send(command):
                self._running.discard(command.turn.message_id)

    def runs(self, message_id: int) -> bool:
        with self._lock:
            return message_id in self._running

    def stop(self, message_id: int) -> None:
        """Stop a turn at once, if the process runs it."""
        with self._lock:
            if message_id in self._running:
                self._send(StopTurn(message_id))

    def end(self) -> None:
        """Tell the process to end, and start none any more."""
        with self._lock:
            self._has_ended = True
            self._holder = None
            self._send(EndProcess())

    def join(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _send(self, command: Command) -> bool:
        if self._connection is None:
            return False
        try:
            self._connection.send(command)
        except OSError:
            return False
        return True

    def _may_start(self) -> bool:
        has_none = self._thread is None or not self._thread.is_alive()
        return has_none and not self._has_ended and time.monotonic() >= self._next_start

    def _start_process(self) -> None:
        ours, theirs = Pipe()
        with theirs:
            process = self._start(theirs)
        assert process.pid is not None
        LOG.info("answers: process %s", process.pid)
        self._connection, self._holder = ours, find_process(process.pid)
        self._thread = threading.Thread(
            target=self._run, args=(process, ours), name="answer process", daemon=True
        )
        self._thread.start()

    def _run(self, process: BaseProcess, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):
            while True:
                self._follow(connection)
        self._settle(process)

    def _follow(self, connection: Connection) -> None:
        """Raises EOFError, OSError: the process has ended."""
        if not connection.poll(_LOOK):
            self._end_if_idle()
            return
        report: Report = connection.recv()
        match report:
            case ProcessReady():
                with self._lock:
                    self._is_ready = True
            case TurnStored(message_id, is_running):
                if not is_running:
                    with self._lock:
                        self._running.discard(message_id)
                self._stored(message_id)
            case SlotTaken(pool, waited):
                self._metrics.waited(pool, waited)
            case SlotRefused(pool):
                self._metrics.refused(pool)
            case WebCacheLookup(kind, outcome):
                self._metrics.looked_up_in_web_cache(kind, outcome)

    def _end_if_idle(self) -> None:
        with self._lock:
            is_idle = time.monotonic() - self._used >= self._idle_seconds
            if is_idle and not self._running and self._holder is not None:
                self._holder = None
                self._send(EndProcess())

    def _settle(self, process: BaseProcess) -> None:
        with self._lock:
            self._connection = self._holder = None
            self._is_ready = False
            lost, self._running = self._running, set()
        process.join()
        if process.exitcode:
            LOG.warning("The process of answers ended with code %s.", process.exitcode)
            self._next_start = time.monotonic() + RESTART_SECONDS
        for message_id in lost:
            self._stored(message_id)
