"""`quarry worker` and `quarry beat`: one process for each queue, restarted when it dies."""

import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from backend.cli.command_line import say_stopping
from backend.settings import Settings
from backend.sync.wakeup_messages import QUEUES, Queue
from backend.worker.broker import Broker
from backend.worker.celery_worker import GRACE_SECONDS, MISCONFIGURED, run_beat, run_worker
from backend.worker.process import CONCURRENCY, LOG, WorkerConfig, start_logging
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError

_LOOK = 0.5
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_HEALTHY_SECONDS = 60.0
"""A process that lived for so many seconds is restarted after the first pause."""
# Not fork: a process that has loaded a model must not be forked.
_SPAWNING = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """The processes that `quarry worker` runs."""

    queues: tuple[Queue, ...] = QUEUES
    concurrency: int | None = None
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """The port of the first queue; the others use the next ports."""

    def worker_configs(self) -> list[WorkerConfig]:
        """Return one for each queue: fetching must not take the interpreter lock from indexing."""
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
    """Run until Ctrl-C or SIGTERM.

    Raises:
        NotConfiguredError: no broker is set, or a worker cannot run with its settings.
    """
    broker = Broker(settings)
    start_logging()
    try:
        broker.check()
    except TemporarilyUnavailableError as error:
        LOG.warning("%s", error)  # the workers wait for it
    with until_signalled() as stopping:
        supervise([SupervisedProcess(config) for config in plan.worker_configs()], stopping)


def supervise_beat(settings: Settings, every: float) -> None:
    """Run until Ctrl-C or SIGTERM. Raises NotConfiguredError: no broker is set."""
    start_logging()
    with until_signalled() as stopping:
        run_beat(settings, stopping, every)


class SupervisedProcess:
    """A process that is restarted when it dies, after a longer pause each time it dies early."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.process: BaseProcess | None = None
        self._began = 0.0
        self._due = 0.0
        self._pause = _FIRST_PAUSE

    def keep_up(self) -> None:
        if self.process is not None and not self.process.is_alive():
            self._clean_up(self.process)
        if self.process is None and time.monotonic() >= self._due:
            self._start()

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def join(self, seconds: float) -> None:
        """Wait for its end; kill it after so many seconds."""
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

    def _clean_up(self, process: BaseProcess) -> None:
        if process.exitcode == MISCONFIGURED:
            raise NotConfiguredError(
                f"The {self.config.queue} worker cannot run. Its log says why."
            )
        lived = time.monotonic() - self._began
        self._pause = (
            _FIRST_PAUSE if lived > _HEALTHY_SECONDS else min(2 * self._pause, _LONGEST_PAUSE)
        )
        self._due = time.monotonic() + self._pause
        LOG.warning(
            "%s ended with code %s; restarting in %.0f s.",
            self.config.queue,
            process.exitcode,
            self._pause,
        )
        process.close()
        self.process = None


def supervise(processes: Sequence[SupervisedProcess], stopping: threading.Event) -> None:
    """Keep all processes running until `stopping` is set, and end them together.

    Raises:
        NotConfiguredError: one of them cannot run with its settings.
    """
    try:
        while not stopping.is_set():
            for each in processes:
                each.keep_up()
            wait([each.process.sentinel for each in processes if each.process], _LOOK)
    finally:
        for each in processes:
            each.end()
        end = time.monotonic() + GRACE_SECONDS + 1
        for each in processes:
            each.join(max(0.0, end - time.monotonic()))


@contextmanager
def until_signalled() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set, which is said at once."""
    stopping, numbers = threading.Event(), (signal.SIGINT, signal.SIGTERM)

    def stop(number: int, frame: object) -> None:
        del number, frame
        say_stopping()
        stopping.set()

    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield stopping
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
