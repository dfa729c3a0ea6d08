"""The connection on which an answer is waited for, to be cut by another thread.

The cluster gives up a search whose connection ends. The driver's own time-out counts from each piece of an
answer anew, and knows nothing of an asker who goes away.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http.client import HTTPException
from typing import Any

from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, ReadTimeoutError

from indexing.runtime.cancellable_socket import CancellableSocket
from indexing.runtime.deadline import Deadline

_waiting: ContextVar[CancellableSocket | None] = ContextVar("_waiting", default=None)


@contextmanager
def cut_by(deadline: Deadline) -> Iterator[None]:
    """When the time is up, what this thread waits for inside ends as a time-out of the driver."""
    cancellable = CancellableSocket()
    token = _waiting.set(cancellable)
    try:
        with deadline.on_expiry(cancellable.cancel):
            yield
    finally:
        _waiting.reset(token)


def watched(kind: type[HTTPConnection]) -> type[HTTPConnection]:
    """The same kind of connection, that `cut_by` can cut."""

    class Watched(kind):  # type: ignore[misc,valid-type]  # mypy takes no variable for a base
        def connect(self) -> None:
            _check()
            super().connect()
            _note(self.sock)

        def request(self, *args: Any, **kwargs: Any) -> None:
            _note(self.sock)
            with _told_as_timeout():
                super().request(*args, **kwargs)

        def getresponse(self) -> Any:
            """With the whole answer read, for so the driver asks."""
            try:
                with _told_as_timeout():
                    return super().getresponse()
            finally:
                _note(None)

    # Errors of urllib3 tell the name of the class.
    Watched.__name__ = Watched.__qualname__ = kind.__name__
    return Watched


def _note(connected: socket.socket | None) -> None:
    cancellable = _waiting.get()
    if cancellable is not None:
        cancellable.attach(connected)


def _check() -> None:
    """The driver tries one node after the other, with as much time for each as there was for the first."""
    cancellable = _waiting.get()
    if cancellable is not None and cancellable.is_cancelled:
        raise ReadTimeoutError(_NO_POOL, "", "given up")


@contextmanager
def _told_as_timeout() -> Iterator[None]:
    """A line that was cut is no broken connection, for which the driver would take the node for dead."""
    try:
        yield
    except (OSError, HTTPException, HTTPError) as error:
        cancellable = _waiting.get()
        if cancellable is not None and cancellable.is_cancelled:
            raise ReadTimeoutError(_NO_POOL, "", "given up") from error
        raise


_NO_POOL: Any = None
"""Of which the time-out is; nobody reads it."""
