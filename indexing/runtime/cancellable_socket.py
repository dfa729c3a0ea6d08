"""The connection on which a thread waits for an answer, to be cut by another."""

import socket
import threading
from contextlib import suppress


class Line:
    """What one thread waits on, if anything. Once cut, it cuts whatever is connected later as well."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_cut = False

    def note(self, connected: socket.socket | None) -> None:
        """This is waited on from now on; nothing where the connection was given back."""
        with self._lock:
            self._socket = connected
            is_cut = self.is_cut
        if is_cut:
            self.cut()

    def cut(self) -> None:
        """The thread that waits is woken, with an error of its connection."""
        # Under the lock, so that a connection which was given back meanwhile is let alone.
        with self._lock:
            self.is_cut = True
            if self._socket is not None:
                with suppress(OSError):
                    # Of the socket below TLS: a reader that waits in another thread is woken.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
