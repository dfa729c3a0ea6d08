"""Processes that are kept running: started again when they die, and ended together."""

import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from backend.cli.command_line import say_stopping
from backend.worker.process import MISCONFIGURED
from connectors.errors import NotConfiguredError

_LOOK = 0.5
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_HEALTHY_SECONDS = 60.0
"""A process that lived for so many seconds is restarted after the first pause."""
# Not fork: a process that has loaded a model must not be forked.
SPAWNING = multiprocessing.get_context("spawn")

LOG = logging.getLogger("quarry.processes")


class SupervisedProcess:
    """A process that is restarted when it dies, after a longer pause each time it dies early.

    Args:
        name: for the log, such as `index worker`.
        target: a function of a module, called in the process with `arguments`, which can be pickled.
    """

    def __init__(
        self, name: str, target: Callable[..., object], arguments: tuple[Any, ...] = ()
    ) -> None:
        self.name = name
        self.process: BaseProcess | None = None
        self._target = target
        self._arguments = arguments
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
            LOG.warning("%s has not ended in time and is killed.", self.name)
            self.process.kill()
            self.process.join()

    def _start(self) -> None:
        self.process = SPAWNING.Process(target=self._target, args=self._arguments, name=self.name)
        with without_interrupts():
            self.process.start()
        self._began = time.monotonic()
        LOG.info("%s: process %s", self.name, self.process.pid)

    def _clean_up(self, process: BaseProcess) -> None:
        if process.exitcode == MISCONFIGURED:
            raise NotConfiguredError(f"The {self.name} cannot run. Its log says why.")
        lived = time.monotonic() - self._began
        self._pause = (
            _FIRST_PAUSE if lived > _HEALTHY_SECONDS else min(2 * self._pause, _LONGEST_PAUSE)
        )
        self._due = time.monotonic() + self._pause
        LOG.warning(
            "%s ended with code %s; restarting in %.0f s.",
            self.name,
            process.exitcode,
            self._pause,
        )
        process.close()
        self.process = None


def supervise(
    processes: Sequence[SupervisedProcess], stopping: threading.Event, grace: float
) -> None:
    """Keep all processes running until `stopping` is set, and end them together by SIGTERM.

    Args:
        grace: seconds after which those that have not ended are killed.

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
        end = time.monotonic() + grace
        for each in processes:
            each.join(max(0.0, end - time.monotonic()))


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Start processes that a terminal's Ctrl-C does not reach: it is sent to all of them, and theirs is to wait
    for the supervisor's SIGTERM. They inherit the mask of signals."""
    # Its first start would change the mask.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
