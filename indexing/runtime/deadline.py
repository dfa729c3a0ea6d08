"""Deadlines and cancellation of a request."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from indexing.runtime.timers import call_at


class DeadlineExceededError(TimeoutError):
    """The deadline has passed, or the request was cancelled."""


class CancelToken:
    """Signals to any number of threads that the caller no longer wants the result."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Run the registered callbacks in this thread. May be called any number of times."""
        with self._lock:
            self._cancelled.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def wait(self, seconds: float) -> bool:
        """Wait for at most this long; return whether it was cancelled."""
        return self._cancelled.wait(seconds)

    @contextmanager
    def on_cancel(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call `callback` if it is cancelled within the block, at once if it already is."""
        with self._lock:
            already = self._cancelled.is_set()
            if not already:
                self._callbacks.append(callback)
        if already:
            callback()
        try:
            yield
        finally:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)


@dataclass(frozen=True, slots=True)
class Deadline:
    at: float
    """Seconds of `time.monotonic`."""
    cancel_token: CancelToken | None = None
    """Cancelling it ends the deadline early."""
    check_hook: Callable[[], object] | None = None
    """Called by each check before it looks at the time: it may wait, so that more urgent work goes first."""

    @classmethod
    def after(cls, seconds: float, cancel_token: CancelToken | None = None) -> "Deadline":
        return cls(time.monotonic() + seconds, cancel_token)

    def with_check_hook(self, hook: Callable[[], object]) -> "Deadline":
        """Return this deadline, whose checks call a function first."""
        return Deadline(self.at, self.cancel_token, hook)

    def remaining(self) -> float:
        """Return the seconds until the deadline, never negative; none are left once it is cancelled."""
        if self.cancel_token is not None and self.cancel_token.is_cancelled:
            return 0.0
        return max(0.0, self.at - time.monotonic())

    def limited_to(self, seconds: float) -> "Deadline":
        """Return this deadline, or `seconds` from now if that is sooner."""
        return Deadline(
            min(self.at, time.monotonic() + seconds), self.cancel_token, self.check_hook
        )

    def restarted(self, seconds: float) -> "Deadline":
        """Return this deadline, `seconds` from now, whenever it was."""
        return Deadline(time.monotonic() + seconds, self.cancel_token, self.check_hook)

    def check(self) -> None:
        """Raise DeadlineExceededError if the deadline has passed."""
        if self.check_hook is not None:
            self.check_hook()
        if not self.remaining():
            raise DeadlineExceededError(DeadlineExceededError.__doc__)

    def sleep(self, seconds: float) -> None:
        """Sleep for this long, but not past the deadline."""
        seconds = min(seconds, self.remaining())
        if self.cancel_token is None:
            time.sleep(seconds)
        else:
            self.cancel_token.wait(seconds)

    @contextmanager
    def ended_with_block(self) -> Iterator["Deadline"]:
        """Yield a deadline for what the block starts in other threads: it ends with the block, or with this one."""
        token = CancelToken()
        with ExitStack() as stack:
            if self.cancel_token is not None:
                stack.enter_context(self.cancel_token.on_cancel(token.cancel))
            stack.callback(token.cancel)
            yield Deadline(self.at, token, self.check_hook)

    @contextmanager
    def on_expiry(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call `callback` in another thread if the deadline passes within the block; see `Timers`."""
        timer = call_at(self.at if self.remaining() else time.monotonic(), callback)
        try:
            if self.cancel_token is None:
                yield
            else:
                with self.cancel_token.on_cancel(callback):
                    yield
        finally:
            timer.cancel()
