"""The process that `quarry serve` starts for the turns of conversations, where several people chat at once."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection

from backend.api.answer_events import TurnEncoder
from backend.api.answer_process import (
    BeginTurn,
    Command,
    EndProcess,
    ProcessReady,
    Report,
    SlotRefused,
    SlotTaken,
    StopTurn,
    TurnStored,
    WebCacheLookup,
)
from backend.api.conversation_turns import TurnSlots
from backend.api.request_pools import RequestPools
from backend.api.server_cores import FEW_CORES, for_each_thread, list_cores
from backend.api.turn_maker import TurnMaker
from backend.api.warmup import CurrentContainer, Warmup
from backend.container import Container
from backend.conversations.new_turn import NewTurn
from backend.conversations.turn_runner import TurnRunner
from backend.settings import Settings, for_one_of_several
from backend.store.web_cache import CacheKind
from backend.web.answer_html import answer_html
from backend.web_search.session_cache import Outcome
from backend.worker.logs import configure_logging
from connectors.errors import ActionRequiredError, QuarryError, TemporarilyUnavailableError
from indexing.runtime import malloc

NICENESS = 15
"""Of all threads once the process is ready, so that searches in the process of the server take the processor first (setpriority(2))."""
STORE_SECONDS = 1.0
"""In which interrupted turns are stored before the process ends."""
READY_SECONDS = 30.0
"""How long a turn waits for the index; less than its lease."""
RETRY_AFTER = timedelta(seconds=30)


def run_answer_worker(connection: Connection) -> None:
    """Run turns in this process, until it is asked to end or the server has died."""
    malloc.limit_arenas()  # before there are threads
    _leave_one_core()
    configure_logging("answers")
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    worker = _AnswerWorker(Container(for_one_of_several(Settings())), _Reports(connection))
    worker.start()
    try:
        with suppress(SystemExit):
            for command in _receive(connection):
                worker.carry_out(command)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if not worker.stop():
            # Threads that wait for a model would hold it up.
            os._exit(1)


def _receive(connection: Connection) -> Iterator[BeginTurn | StopTurn]:
    """Yield the commands until the process is asked to end, or the server has died."""
    with suppress(EOFError, OSError):
        while True:
            command: Command = connection.recv()
            if isinstance(command, EndProcess):
                return
            yield command


def _leave_one_core() -> None:
    """Keep this process off one of many cores, on Linux: what runs is not preempted at once, whatever its priority."""
    if sys.platform == "linux" and len(cores := sorted(list_cores())) > FEW_CORES:
        os.sched_setaffinity(0, cores[1:])


def _lower_priority() -> None:
    """Let other processes take the processor first. Threads inherit that from those that start them."""

    def lower(thread: int) -> None:
        niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread))
        os.setpriority(os.PRIO_PROCESS, thread, niceness)

    for_each_thread(lower)


def _exit_on_sigterm(number: int, frame: object) -> None:
    del number, frame
    raise SystemExit


class _Reports:
    """Sends reports, from several threads. Implements `PoolObserver` and `CacheObserver`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, report: Report) -> None:
        # Where the server has died, nobody is left to be informed.
        with self._lock, suppress(OSError):
            self._connection.send(report)

    def waited(self, pool: str, seconds: float) -> None:
        self.send(SlotTaken(pool, seconds))

    def refused(self, pool: str) -> None:
        self.send(SlotRefused(pool))

    def looked_up_in_web_cache(self, kind: CacheKind, outcome: Outcome) -> None:
        self.send(WebCacheLookup(kind, outcome))


class _AnswerWorker:
    def __init__(self, container: Container, reports: _Reports) -> None:
        self._reports = reports
        self._current = CurrentContainer(container)
        self._current.observe_web(reports)
        self._warmup = Warmup(
            self._current.parts(),
            self._current.reopen_if_switched,
            self._report_ready,
        )
        pools = RequestPools.of(
            container.settings,
            reports,
            lambda: self._current.container.language_models.answers,
        )
        self._slots = TurnSlots(pools.answers)
        self._runner = TurnRunner(
            lambda: self._current.container.database, self._slots.hold, self._report_stored
        )

    def start(self) -> None:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="slots", daemon=True).start()
        self._slots.start(loop)
        self._warmup.start()

    def carry_out(self, command: BeginTurn | StopTurn) -> None:
        match command:
            case BeginTurn() if self._warmup.ready.is_set():
                self._begin(command)
            case BeginTurn():
                # Until then its parts are made by the thread that warms up, and commands go on to be read.
                waiting = threading.Thread(
                    target=self._begin_when_ready, args=(command,), daemon=True
                )
                waiting.start()
            case StopTurn(message_id):
                self._runner.stop(message_id)

    def stop(self) -> bool:
        """End all turns; whether all of them are stored."""
        self._warmup.stop()
        return self._runner.interrupt_all(STORE_SECONDS)

    def _report_ready(self) -> None:
        _lower_priority()
        self._reports.send(ProcessReady())

    def _begin_when_ready(self, command: BeginTurn) -> None:
        if self._warmup.ready.wait(READY_SECONDS):
            self._begin(command)
            return
        late = TemporarilyUnavailableError("The index could not be opened in time.", RETRY_AFTER)
        self._fail(command.turn, late)

    def _begin(self, command: BeginTurn) -> None:
        try:
            container = self._current.container
            maker = TurnMaker(container.chat, container.database, answer_html)
            order, answering = maker.make_order(command.asker, command.turn)
        except (TemporarilyUnavailableError, ActionRequiredError) as error:
            self._fail(command.turn, error)
            return
        self._runner.begin(order, answering)

    def _fail(self, turn: NewTurn, error: QuarryError) -> None:
        self._runner.fail(turn.message_id, TurnEncoder(turn.question.text, answer_html), error)

    def _report_stored(self, message_id: int) -> None:
        self._reports.send(TurnStored(message_id, self._runner.runs(message_id)))
