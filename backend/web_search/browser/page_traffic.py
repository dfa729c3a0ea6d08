"""What one page sends and receives: bounded, and ended with it."""

import hmac
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from backend.web_search.browser.proxy_requests import RefusedRequestError
from backend.web_search.domains import DomainRules
from connectors.closing import Closing


@dataclass(frozen=True, slots=True)
class TrafficLimits:
    """What one page may use.

    Attributes:
        bytes: Sent and received together.
        connections: At the same time.
        head_seconds: For a request to arrive.
        idle_seconds: Without a byte in either direction.
        connect_seconds: For the look-up of a name, and for a connection.
    """

    bytes: int = 50_000_000
    connections: int = 48
    head_seconds: float = 10.0
    idle_seconds: float = 20.0
    connect_seconds: float = 10.0


class TrafficEndedError(Exception):
    """The page has used what it may, or is closed."""


class PageTraffic(Closing):
    """The connections of one page. Its name and its password admit nobody any more once it is closed."""

    def __init__(self, limits: TrafficLimits, domains: DomainRules) -> None:
        self.name = secrets.token_hex(8)
        self.password = secrets.token_urlsafe(32)
        self.limits = limits
        self.domains = domains
        self._lock = threading.Lock()
        self._bytes_left = limits.bytes
        self._sockets: set[socket.socket] = set()
        self._connections = 0
        self._closed = False
        self._refusals: dict[str, str] = {}

    def admits(self, password: str) -> bool:
        return hmac.compare_digest(password.encode(), self.password.encode())

    @contextmanager
    def connection(self, client: socket.socket) -> Iterator[None]:
        """Count a connection of the browser within the block.

        Raises:
            RefusedRequestError: there are too many, or the page is closed.
        """
        with self._lock:
            if self._closed or self._connections >= self.limits.connections:
                raise RefusedRequestError(503, "the page has too many connections")
            self._connections += 1
        try:
            with self.ended_with_page(client):
                yield
        finally:
            with self._lock:
                self._connections -= 1

    @contextmanager
    def ended_with_page(self, connected: socket.socket) -> Iterator[None]:
        """End a connection when the page is closed within the block."""
        with self._lock:
            if self._closed:
                raise TrafficEndedError
            self._sockets.add(connected)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(connected)

    def count(self, size: int) -> None:
        """Raise TrafficEndedError if these bytes are more than the page may pass."""
        with self._lock:
            self._bytes_left -= size
            if self._closed or self._bytes_left < 0:
                raise TrafficEndedError

    def note_refusal(self, target: str, reason: str) -> None:
        with self._lock:
            self._refusals[target] = reason

    def find_refusal(self, target: str) -> str | None:
        """Return why a host and port were not connected to; None if they were, or nobody asked for them."""
        with self._lock:
            return self._refusals.get(target)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for connected in self._sockets:
                with suppress(OSError):
                    connected.shutdown(socket.SHUT_RDWR)
