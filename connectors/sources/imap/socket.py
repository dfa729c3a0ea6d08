"""Connecting to a mail server, by a socket that limits the time and the size of every response.

A wait ends after a period of silence, or when the time for the whole command is used up, however slowly
the server sends. A response ends when it exceeds the number of bytes that the command may return.
"""

import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, TypeAlias

from connectors.errors import InvalidInputError, TemporarilyUnavailableError
from connectors.http_client.address_guard import AllowedNetworks, resolve_addresses
from connectors.http_client.transport import request_timeout, resolve_host
from connectors.sources.imap.errors import RETRY_SOON

Security: TypeAlias = Literal["tls", "starttls", "plain", "plain-anywhere"]

_RESOLVE_SECONDS = 20.0
_CONNECT_SECONDS = 20.0
"""For each address, and for the TLS handshake."""
_SILENCE_SECONDS = 60.0
_MAX_LINE_BYTES = 1_000_000
_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    host: str
    port: int
    security: Security
    allowed_networks: AllowedNetworks
    authority: Path | None
    """A file of certificates that are trusted besides the public ones."""


class ConnectionBrokenError(OSError):
    """The connection can no longer be used."""


class BoundedSocket:
    """Not safe for use by several threads."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._buffer = bytearray()
        self._deadline = 0.0
        self._bytes_left = 0
        self.set_limits(_SILENCE_SECONDS, _MAX_LINE_BYTES)

    @classmethod
    def connect(cls, addresses: Sequence[str], port: int) -> "BoundedSocket":
        """Connect to the first of the addresses that accepts the connection.

        Raises:
            OSError: none does.
        """
        for address in addresses[:-1]:
            try:
                return cls(socket.create_connection((address, port), _CONNECT_SECONDS))
            except OSError:
                continue
        return cls(socket.create_connection((addresses[-1], port), _CONNECT_SECONDS))

    @property
    def socket(self) -> socket.socket:
        return self._socket

    def set_limits(self, seconds: float, max_bytes: int) -> None:
        """Set the limits of the next command and its response."""
        self._deadline = time.monotonic() + seconds
        self._bytes_left = max_bytes

    def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Use TLS from here on.

        Raises:
            OSError: the handshake failed, the certificate is not valid for `host`, or the server sent
                data before it, which an attacker could have injected.
        """
        if self._buffer:
            raise ConnectionBrokenError("the server sent data before TLS was established")
        self._socket.settimeout(_CONNECT_SECONDS)
        self._socket = context.wrap_socket(self._socket, server_hostname=host)

    def readline(self) -> bytes:
        """Read up to and including the end of the line."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _MAX_LINE_BYTES:
                raise ConnectionBrokenError("a line of the response is too long")
            self._receive()
        return self._take(end + 1)

    def read(self, size: int) -> bytes:
        """Read exactly `size` bytes."""
        if size - len(self._buffer) > self._bytes_left:
            raise ConnectionBrokenError(f"the response is larger than allowed: {size:,} bytes")
        while len(self._buffer) < size:
            self._receive()
        return self._take(size)

    def send(self, data: bytes) -> None:
        self._socket.settimeout(self._next_timeout())
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> None:
        self._socket.settimeout(self._next_timeout())
        try:
            data = self._socket.recv(_READ_BYTES)
        except TimeoutError as error:
            self._next_timeout()
            raise ConnectionBrokenError(
                f"the server sent nothing for {_SILENCE_SECONDS:.0f} seconds"
            ) from error
        self._bytes_left -= len(data)
        if not data:
            raise ConnectionBrokenError("the server closed the connection")
        if self._bytes_left < 0:
            raise ConnectionBrokenError("the response is larger than allowed")
        self._buffer += data

    def _take(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _next_timeout(self) -> float:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise ConnectionBrokenError("the response takes too long")
        return min(remaining, _SILENCE_SECONDS)


def connect(server: Server) -> BoundedSocket:
    """Connect to an address of the server that the settings allow; not yet by TLS.

    Raises:
        ActionRequiredError: the address is not allowed, or the connection would not be encrypted.
        TemporarilyUnavailableError: the server cannot be reached.
    """
    try:
        with request_timeout(_RESOLVE_SECONDS):
            addresses = resolve_addresses(
                server.host, server.port, server.allowed_networks, resolve_host
            )
        _check_encryption(server, addresses)
        return BoundedSocket.connect(addresses, server.port)
    except OSError as error:
        raise TemporarilyUnavailableError(
            f"cannot connect to {server.host} on port {server.port}: {error}", RETRY_SOON
        ) from error


def _check_encryption(server: Server, addresses: Sequence[str]) -> None:
    if server.security == "plain" and not all(ip_address(one).is_loopback for one in addresses):
        raise InvalidInputError(
            f"mail and password would be sent to {server.host} without encryption: choose tls or"
            " starttls in the settings of the source, or plain-anywhere if the network is trusted"
        )


def make_tls_context(authority: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except OSError as error:
            raise InvalidInputError(
                f"{authority} cannot be read as a file of certificates ({error}): correct authority in"
                " the settings of the source"
            ) from error
    return context
