"""A process of its own that runs the turns of conversations, where several answers are written at once.

All threads of a process share the interpreter's lock, so that searches would wait for what answers compute. The answer process has
a lower priority than that of the server. It is started when a turn begins while another one runs, and ends when nobody has chatted
for a while. Until it is ready, which takes seconds, a few turns run in the server, and further ones wait for it.
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
from queue import SimpleQueue
from typing import TypeAlias

from backend.api.metrics_collector import Metrics
from backend.api.server_cores import ServerCores
from backend.api.turn_maker import TurnAsker
from backend.conversations.new_turn import NewTurn
from backend.store.sync.runs import Process
from backend.store.web_cache import CacheKind
from backend.sync.run_lease import identify_process
from backend.web_search.session_cache import Outcome

LOG = logging.getLogger("quarry.processes")
MOST_WHILE_STARTING = 2
"""Turns that run in the server while the answer process starts."""
IDLE_SECONDS = 600.0
"""Without a turn, after which the process is ended: it holds the index and the embedding model in memory."""
RESTART_SECONDS = 60.0
"""Until a process is started again after one that died or could not be started."""
START_SECONDS = 1.0
"""How long a turn waits until a process is started, which takes a tenth of it; not until that is ready."""
END_SECONDS = 10.0
"""After which a process that was asked to end is killed."""
SILENT_SECONDS = 20.0
"""Without a report of the process, after which those who follow its turns look whether it has died."""
_LOOK = 5.0
"""Seconds between two looks whether it is idle, or does not end."""


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
"""The commands that the process is sent."""


@dataclass(frozen=True, slots=True)
class ProcessReady:
    """It has opened the index, and begins turns at once."""


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


@dataclass(frozen=True, slots=True)
class _Started:
    """A process that was started."""

    process: BaseProcess
    holder: Process
    connection: Connection
    commands: "SimpleQueue[Command | None]"
    """Sent by a thread of its own: where the process does not read, nobody else waits. None is the last one."""

    def send_all(self) -> None:
        with suppress(OSError):
            while (command := self.commands.get()) is not None:
                self.connection.send(command)


class AnswerProcess:
    """The answer process as the server sees it: started, given turns, and ended. Safe to use from several threads.

    Args:
        start: called with an end of the pipe.
        stored: called with the id of an answer of which more can be read, or whose process has died.
        cores: confined while the process starts or runs turns, and reports.
    """

    def __init__(
        self,
        start: StartProcess,
        metrics: Metrics,
        stored: Callable[[int], object],
        cores: ServerCores,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._start = start
        self._metrics = metrics
        self._stored = stored
        self._cores = cores
        self._idle_seconds = idle_seconds
        # Held for moments alone: the event loop takes it as well.
        self._lock = threading.Lock()
        self._started: _Started | None = None
        self._thread: threading.Thread | None = None
        self._is_ready = False
        self._running = set[int]()
        self._last_used = self._last_report = time.monotonic()
        self._next_start = 0.0
        self._told_to_end: float | None = None
        """When the process was asked to end."""
        self._has_tried = threading.Event()
        """Set once it is started, or could not be."""
        self._has_tried.set()
        self._has_ended = False
        """None is started any more."""

    def choose_holder(self, running: int) -> Process | None:
        """Return the process for the next turn, or None for the server itself. It is not ended as idle before the turn begins.

        Args:
            running: turns that the server runs.
        """
        with self._lock:
            self._last_used = time.monotonic()
            if running and self._may_start():
                self._thread = threading.Thread(
                    target=self._run, name="answer process", daemon=True
                )
                self._has_tried.clear()
                self._thread.start()
        if running >= MOST_WHILE_STARTING:
            self._has_tried.wait(START_SECONDS)
        with self._lock:
            if self._started is None or self._told_to_end is not None:
                return None
            is_used = self._is_ready or running >= MOST_WHILE_STARTING
            return self._started.holder if is_used else None

    def begin(self, holder: Process, command: BeginTurn) -> None:
        """Begin a turn in the process that was chosen. Where that has died by now, the turn is found to be interrupted."""
        with self._lock:
            if self._started is not None and self._started.holder == holder:
                self._running.add(command.turn.message_id)
                self._started.commands.put(command)
                self._cores.confine()

    def announces(self, message_id: int) -> bool:
        """Return whether the process runs a turn and has reported anything of late: one that hangs does not."""
        with self._lock:
            is_heard = time.monotonic() - self._last_report < SILENT_SECONDS
            return is_heard and message_id in self._running

    def stop(self, message_id: int) -> None:
        """Stop a turn at once, if the process runs it."""
        with self._lock:
            if self._started is not None and message_id in self._running:
                self._started.commands.put(StopTurn(message_id))

    def end(self) -> None:
        """Tell the process to end, and start none any more."""
        with self._lock:
            self._has_ended = True
            self._tell_to_end()

    def join(self, seconds: float) -> None:
        """Wait for its end; kill it after so many seconds."""
        thread, started = self._thread, self._started
        if thread is None:
            return
        thread.join(seconds)
        if thread.is_alive() and started is not None:
            started.process.kill()

    def _may_start(self) -> bool:
        return self._thread is None and not self._has_ended and time.monotonic() >= self._next_start

    def _tell_to_end(self) -> None:
        if self._started is not None and self._told_to_end is None:
            self._told_to_end = time.monotonic()
            self._started.commands.put(EndProcess())

    def _run(self) -> None:
        """Start a process and follow it to its end."""
        started = None
        try:
            started = self._start_process()
            self._has_tried.set()
            if started is not None:
                with suppress(EOFError, OSError):
                    while True:
                        self._follow(started)
        finally:
            self._has_tried.set()
            self._settle(started)

    def _start_process(self) -> _Started | None:
        ours, theirs = Pipe()
        try:
            with theirs:
                process = self._start(theirs)
        except OSError as error:
            ours.close()
            LOG.warning("The process of answers cannot be started: %s", error)
            return None
        assert process.pid is not None
        LOG.info("answers: process %s", process.pid)
        started = _Started(process, identify_process(process.pid), ours, SimpleQueue())
        threading.Thread(target=started.send_all, name="answer commands", daemon=True).start()
        with self._lock:
            self._started = started
            self._cores.confine()
            self._last_used = self._last_report = time.monotonic()
            if self._has_ended:
                self._tell_to_end()
        return started

    def _follow(self, started: _Started) -> None:
        """Take a report of the process; if none comes, end the process where it is due.

        Raises:
            EOFError, OSError: the process has ended.
        """
        if not started.connection.poll(_LOOK):
            self._end_if_due(started)
            return
        report: Report = started.connection.recv()
        self._last_report = time.monotonic()
        match report:
            case ProcessReady():
                with self._lock:
                    self._is_ready = True
                    self._release_cores_if_idle()
            case TurnStored(message_id, is_running):
                if not is_running:
                    with self._lock:
                        self._running.discard(message_id)
                        self._release_cores_if_idle()
                self._stored(message_id)
            case SlotTaken(pool, waited):
                self._metrics.waited(pool, waited)
            case SlotRefused(pool):
                self._metrics.refused(pool)
            case WebCacheLookup(kind, outcome):
                self._metrics.looked_up_in_web_cache(kind, outcome)

    def _end_if_due(self, started: _Started) -> None:
        now = time.monotonic()
        with self._lock:
            is_idle = not self._running and now - self._last_used >= self._idle_seconds
            if is_idle and self._is_ready:
                self._tell_to_end()
            told = self._told_to_end
            if now - self._last_report >= SILENT_SECONDS:
                # It waits for a language model, does not get ready, or hangs.
                self._cores.release()
        if told is not None and now - told >= END_SECONDS:
            started.process.kill()

    def _release_cores_if_idle(self) -> None:
        if not self._running:
            self._cores.release()

    def _settle(self, started: _Started | None) -> None:
        """Forget the process, and have those who follow its turns look."""
        with self._lock:
            lost, self._running = self._running, set()
            self._started, self._is_ready = None, False
            self._cores.release()
            was_told, self._told_to_end = self._told_to_end is not None, None
            if not was_told:
                self._next_start = time.monotonic() + RESTART_SECONDS
            self._thread = None
        if started is not None:
            started.commands.put(None)
            started.process.join()
            started.connection.close()
            if not was_told:
                code = started.process.exitcode
                LOG.warning("The process of answers ended with code %s.", code)
        for message_id in lost:
            self._stored(message_id)
