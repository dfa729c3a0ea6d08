"""Calls at a given time, by one thread for all: a thread for each would cost a search a millisecond."""

import heapq
import os
import threading
import time
from collections.abc import Callable

Call = Callable[[], object]


class Alarm:
    """Rings once, unless it is cancelled before."""

    def __init__(self, at: float, call: Call) -> None:
        """`at`: seconds of `time.monotonic`."""
        self.at = at
        self.call: Call | None = call

    def __lt__(self, other: "Alarm") -> bool:
        return self.at < other.at

    def cancel(self) -> None:
        self.call = None


class Alarms:
    """Safe for any number of threads. What is called is to be done at once, and must not raise."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[Alarm] = []
        self._thread: threading.Thread | None = None

    def set(self, at: float, call: Call) -> Alarm:
        """`call` in another thread when the time is `at`, at once if that is past."""
        with self._changed:
            alarm = Alarm(at, call)
            heapq.heappush(self._waiting, alarm)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="alarms", daemon=True)
                self._thread.start()
            elif self._waiting[0] is alarm:
                self._changed.notify()
        return alarm

    def _run(self) -> None:
        while True:
            alarm = self._next()
            call = alarm.call
            if call is not None:
                call()

    def _next(self) -> Alarm:
        with self._changed:
            while not self._waiting or self._waiting[0].at > time.monotonic():
                self._changed.wait(self._pause())
            return heapq.heappop(self._waiting)

    def _pause(self) -> float | None:
        return self._waiting[0].at - time.monotonic() if self._waiting else None


class _OfProcess:
    """The alarms of this process: a fork takes no thread along."""

    def __init__(self) -> None:
        self.alarms = Alarms()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self.alarms = Alarms()


_of_process = _OfProcess()


def alarm(at: float, call: Call) -> Alarm:
    """See `Alarms.set`."""
    return _of_process.alarms.set(at, call)
