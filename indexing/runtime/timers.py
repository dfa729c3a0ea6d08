"""Calls at a given time, all made by one thread: a thread for each would cost a search a millisecond."""

import heapq
import os
import threading
import time
from collections.abc import Callable

Callback = Callable[[], object]


class Timer:
    """A call that is due at a time, unless it is cancelled before."""

    def __init__(self, at: float, callback: Callback) -> None:
        """Call `callback` at `at`, in seconds of `time.monotonic`."""
        self.at = at
        self.callback: Callback | None = callback

    def __lt__(self, other: "Timer") -> bool:
        return self.at < other.at

    def cancel(self) -> None:
        self.callback = None


class Timers:
    """Pending timers and their thread; safe for any number of threads. Callbacks must be quick.

    One that raises ends the thread, which reports the error. Another one takes over: deadlines of others wait for it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: list[Timer] = []
        self._thread: threading.Thread | None = None

    def call_at(self, at: float, callback: Callback) -> Timer:
        """Schedule a call in the timer thread, due at once if `at` is past."""
        with self._changed:
            timer = Timer(at, callback)
            heapq.heappush(self._pending, timer)
            if self._thread is None:
                self._thread = self._start_thread()
            elif self._pending[0] is timer:
                self._changed.notify()
        return timer

    def _start_thread(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="timers", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        try:
            while True:
                timer = self._wait_for_next()
                callback = timer.callback
                if callback is not None:
                    callback()
        finally:
            with self._changed:
                self._thread = self._start_thread()

    def _wait_for_next(self) -> Timer:
        with self._changed:
            while not self._pending or self._pending[0].at > time.monotonic():
                self._changed.wait(self._seconds_until_next())
            return heapq.heappop(self._pending)

    def _seconds_until_next(self) -> float | None:
        return self._pending[0].at - time.monotonic() if self._pending else None


class _ProcessTimers:
    """The timers of this process, recreated after a fork, which takes no threads along."""

    def __init__(self) -> None:
        self.timers = Timers()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self.timers = Timers()


_process = _ProcessTimers()


def call_at(at: float, callback: Callback) -> Timer:
    """Schedule a call in this process; see `Timers.call_at`."""
    return _process.timers.call_at(at, callback)
