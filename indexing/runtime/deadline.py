"""By when an answer is wanted, and whether it still is."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from indexing.runtime.timers import alarm


class DeadlineExceeded(TimeoutError):
    """The time for this was up."""


class Stop:
    """Whoever asked wants no answer any more. Set by one thread, heeded by any."""

    def __init__(self) -> None:
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._calls: list[Callable[[], object]] = []

    @property
    def is_set(self) -> bool:
        return self._set.is_set()

    def set(self) -> None:
        """Safe to repeat. What waits on it is called in this thread."""
        with self._lock:
            self._set.set()
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    def wait(self, seconds: float) -> bool:
        """Whether it was set within so many seconds."""
        return self._set.wait(seconds)

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """`call` as soon as it is set, at once if it is already; no more after the block."""
        with self._lock:
            late = self._set.is_set()
            if not late:
                self._calls.append(call)
        if late:
            call()
        try:
            yield
        finally:
            with self._lock:
                if call in self._calls:
                    self._calls.remove(call)


@dataclass(frozen=True, slots=True)
class Deadline:
    at: float
    """Seconds of `time.monotonic`."""
    stop: Stop | None = None
    """When it is set, the time is up."""

    @classmethod
    def after(cls, seconds: float, stop: Stop | None = None) -> "Deadline":
        return cls(time.monotonic() + seconds, stop)

    def left(self) -> float:
        """Seconds that are left, never below zero."""
        if self.stop is not None and self.stop.is_set:
            return 0.0
        return max(0.0, self.at - time.monotonic())

    def earlier(self, seconds: float) -> "Deadline":
        """This one, or `seconds` from now, whichever comes first."""
        return Deadline(min(self.at, time.monotonic() + seconds), self.stop)

    def check(self) -> None:
        """Raises DeadlineExceeded when the time is up."""
        if not self.left():
            raise DeadlineExceeded(DeadlineExceeded.__doc__)

    def sleep(self, seconds: float) -> None:
        """Do nothing for so long, or until the time is up."""
        seconds = min(seconds, self.left())
        if self.stop is None:
            time.sleep(seconds)
        else:
            self.stop.wait(seconds)

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """`call` when the time is up, in another thread, unless the block ends before; see `Alarms`."""
        ringing = alarm(time.monotonic() + self.left(), call)
        try:
            if self.stop is None:
                yield
            else:
                with self.stop.calling(call):
                    yield
        finally:
            ringing.cancel()
