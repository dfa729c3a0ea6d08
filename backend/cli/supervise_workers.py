"""`quarry worker` and `quarry beat`: the work of the size for several machines, in processes of its own."""

import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from backend.settings import Settings
from backend.sync.wakeup_messages import QUEUES, Queue
from backend.worker.broker import Broker
from backend.worker.celery_worker import GRACE_SECONDS, run_beat, run_worker
from backend.worker.process import CONCURRENCY, LOG, WorkerConfig, configure_logging
from connectors.errors import TemporarilyUnavailableError

_LOOK = 0.5
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_SOUND = 60.0
"""Seconds after which a process that lived so long is started again at once."""
# Never by fork: a process that has loaded a model must not.
_SPAWNING = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """What `quarry worker` is to do."""

    queues: tuple[Queue, ...] = QUEUES
    concurrency: int | None = None
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """Of the first queue; each that follows has the next."""

    def worker_configs(self) -> list[WorkerConfig]:
        """One a queue: reading waits for indexing, and must leave it a process of its own."""
        return [
            WorkerConfig(
                queue=queue,
                concurrency=self.concurrency or CONCURRENCY[queue],
                metrics=(self.metrics_host, self.metrics_port + number)
                if self.metrics_port is not None
                else None,
            )
            for number, queue in enumerate(self.queues)
        ]


def supervise_workers(settings: Settings, plan: WorkerPlan) -> None:
    """Until Ctrl-C or SIGTERM. Raises ActionRequiredError: no broker is set."""
    broker = Broker(settings)
    configure_logging()
    try:
        broker.check()
    except TemporarilyUnavailableError as error:
        LOG.warning("%s", error)  # it is waited for
    with until_signalled() as stopping:
        supervise([SupervisedProcess(config) for config in plan.worker_configs()], stopping)


def supervise_beat(settings: Settings, every: float) -> None:
    """Until Ctrl-C or SIGTERM. Raises ActionRequiredError: no broker is set."""
    configure_logging()
    with until_signalled() as stopping:
        run_beat(settings, stopping, every)


class SupervisedProcess:
    """A process that is started again when it dies, later each time unless it had lived for a while."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.process: BaseProcess | None = None
        self._began = 0.0
        self._due = 0.0
        self._pause = _FIRST_PAUSE

    def keep_up(self) -> None:
        if self.process is not None and not self.process.is_alive():
            self._bury(self.process)
        if self.process is None and time.monotonic() >= self._due:
            self._start()

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def join(self, seconds: float) -> None:
        """Wait for its end, and no longer than so many seconds."""
        if self.process is None:
            return
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def _start(self) -> None:
        self.process = _SPAWNING.Process(
            target=run_worker, args=(self.config,), name=self.config.queue
        )
        self.process.start()
        self._began = time.monotonic()
        LOG.info("%s: process %s", self.config.queue, self.process.pid)

    def _bury(self, process: BaseProcess) -> None:
        lived = time.monotonic() - self._began
        self._pause = _FIRST_PAUSE if lived > _SOUND else min(2 * self._pause, _LONGEST_PAUSE)
        self._due = time.monotonic() + self._pause
        LOG.warning(
            "%s ended with code %s; it is started again in %.0f s.",
            self.config.queue,
            process.exitcode,
            self._pause,
        )
        process.close()
        self.process = None


def supervise(kept: Sequence[SupervisedProcess], stopping: threading.Event) -> None:
    """Keep all of them going, and end them together."""
    while not stopping.is_set():
        for each in kept:
            each.keep_up()
        going = [each.process.sentinel for each in kept if each.process]
        wait(going, _LOOK)
    for each in kept:
        each.end()
    end = time.monotonic() + GRACE_SECONDS + 2
    for each in kept:
        each.join(max(0.0, end - time.monotonic()))


@contextmanager
def until_signalled() -> Iterator[threading.Event]:
    """What Ctrl-C and SIGTERM set, within the block."""
    stopping, numbers = threading.Event(), (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stopping.set()) for number in numbers]
    try:
        yield stopping
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
