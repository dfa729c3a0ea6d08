"""Cancels a request to the cluster by closing its connection from another thread.

The cluster stops a search whose connection is closed. The driver's own timeout starts again with each part
of a response, and does not know of a client that disconnects.
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
def cancel_on(deadline: Deadline) -> Iterator[None]:
    """End a request of this thread within the block as a timeout of the driver once the time is up."""
    waiting = CancellableSocket()
    token = _waiting.set(waiting)
    try:
        with deadline.on_expiry(waiting.cancel):
            yield
    finally:
        _waiting.reset(token)


def cancellable(kind: type[HTTPConnection]) -> type[HTTPConnection]:
    """Return a subclass of the connection class that `cancel_on` can cancel."""

    class Cancellable(kind):  # type: ignore[misc,valid-type]  # mypy takes no variable for a base
        def connect(self) -> None:
            _check_cancelled()
            super().connect()
            _attach(self.sock)

        def request(self, *args: Any, **kwargs: Any) -> None:
            _attach(self.sock)
            with _raise_timeout():
                super().request(*args, **kwargs)

        def getresponse(self) -> Any:
            """Return the response, read completely, as the driver requests it."""
            try:
                with _raise_timeout():
                    return super().getresponse()
            finally:
                _attach(None)

    # Error messages of urllib3 contain the name of the class.
    Cancellable.__name__ = Cancellable.__qualname__ = kind.__name__
    return Cancellable


def _attach(connected: socket.socket | None) -> None:
    waiting = _waiting.get()
    if waiting is not None:
        waiting.attach(connected)


def _check_cancelled() -> None:
    """Stop before the driver tries the next node, with as much time as for the first."""
    if _is_cancelled():
        raise ReadTimeoutError(_NO_POOL, "", "cancelled")


@contextmanager
def _raise_timeout() -> Iterator[None]:
    """Raise a timeout for a cancelled request: after a broken connection the driver marks the node as dead."""
    try:
        yield
    except (OSError, HTTPException, HTTPError) as error:
        if _is_cancelled():
            raise ReadTimeoutError(_NO_POOL, "", "cancelled") from error
        raise


def _is_cancelled() -> bool:
    waiting = _waiting.get()
    return waiting is not None and waiting.is_cancelled


_NO_POOL: Any = None
"""The pool that the error's constructor requires; it is not read."""
