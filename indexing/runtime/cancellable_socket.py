"""A socket that one thread reads while another may cancel it."""

import socket
import threading
from contextlib import suppress


class CancellableSocket:
    """The socket that a thread waits on, if any. Once cancelled, every socket attached later is shut down too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_cancelled = False

    def attach(self, connected: socket.socket | None) -> None:
        """Name the socket that is waited on from now on; `None` when its connection went back to the pool."""
        with self._lock:
            self._socket = connected
            is_cancelled = self.is_cancelled
        if is_cancelled:
            self.cancel()

    def cancel(self) -> None:
        """Wake the waiting thread with a connection error."""
        # Under the lock, so that a connection which went back to the pool meanwhile is not shut down.
        with self._lock:
            self.is_cancelled = True
            if self._socket is not None:
                with suppress(OSError):
                    # The method of the plain socket, not of TLS: it wakes a reader in another thread.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
