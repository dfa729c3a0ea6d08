"""A line to a mail server: a socket with bounds, plain or under TLS.

Every wait ends: by silence, or by the time that the whole command may take, however its answer
drips. Every answer ends: by the bytes that it may have.
"""

import socket
import ssl
import time
from collections.abc import Sequence

_CONNECT = 20.0
"""Seconds for each address, and for the handshake of TLS."""
_SILENCE = 60.0
_LONGEST_LINE = 1_000_000
_AT_ONCE = 65_536


class Broken(OSError):
    """The line is of no more use."""


class Line:
    """Read and written by one thread."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._held = bytearray()
        self._ends = 0.0
        self._left = 0
        self.allow(_SILENCE, _LONGEST_LINE)

    @classmethod
    def to(cls, addresses: Sequence[str], port: int) -> "Line":
        """A line to the first of the addresses that takes it.

        Raises:
            OSError: none does.
        """
        for address in addresses[:-1]:
            try:
                return cls(socket.create_connection((address, port), _CONNECT))
            except OSError:
                continue
        return cls(socket.create_connection((addresses[-1], port), _CONNECT))

    @property
    def socket(self) -> socket.socket:
        return self._socket

    def allow(self, seconds: float, most_bytes: int) -> None:
        """What the next command and its answer may take."""
        self._ends = time.monotonic() + seconds
        self._left = most_bytes

    def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Speak TLS from here on. What came before it in the clear must not be believed later.

        Raises:
            OSError: no handshake, or a certificate that is not of `host`.
        """
        if self._held:
            raise Broken("the server spoke before TLS was agreed on")
        self._socket.settimeout(_CONNECT)
        self._socket = context.wrap_socket(self._socket, server_hostname=host)

    def readline(self) -> bytes:
        """Up to and with the end of the line."""
        while (end := self._held.find(b"\n")) < 0:
            if len(self._held) > _LONGEST_LINE:
                raise Broken("a line of its answer is endless")
            self._fill()
        return self._take(end + 1)

    def read(self, size: int) -> bytes:
        """Exactly so many bytes."""
        if size - len(self._held) > self._left:
            raise Broken(f"its answer is larger than it said: {size:,} bytes")
        while len(self._held) < size:
            self._fill()
        return self._take(size)

    def send(self, data: bytes) -> None:
        self._socket.settimeout(self._wait())
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()

    def _fill(self) -> None:
        self._socket.settimeout(self._wait())
        try:
            data = self._socket.recv(_AT_ONCE)
        except TimeoutError as error:
            self._wait()
            raise Broken(f"it has said nothing for {_SILENCE:.0f} seconds") from error
        self._left -= len(data)
        if not data:
            raise Broken("it hung up")
        if self._left < 0:
            raise Broken("its answer does not end")
        self._held += data

    def _take(self, size: int) -> bytes:
        data = bytes(self._held[:size])
        del self._held[:size]
        return data

    def _wait(self) -> float:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise Broken("its answer takes too long")
        return min(left, _SILENCE)
