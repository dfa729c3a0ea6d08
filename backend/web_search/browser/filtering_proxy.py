"""The proxy through which a browser reaches the web, and nothing else.

It looks each name up once, has every address checked, and connects to a checked address by number: what a name
resolves to a moment later changes nothing. The browser looks up no name itself. Who does not know the password of a
page that is being read, such as another process of this machine, is refused.
"""

import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

from backend.web_search.browser.page_traffic import (
    PageTraffic,
    TrafficEndedError,
    TrafficLimits,
)
from backend.web_search.browser.proxy_requests import (
    END_OF_HEAD,
    MAX_HEAD_BYTES,
    Exchange,
    RefusedRequestError,
    RequestHead,
    Tunnel,
    name_target,
    parse_head,
    read_credentials,
    read_target,
)
from backend.web_search.domains import DomainRules
from connectors.closing import Closing
from connectors.http_client.address_guard import (
    PUBLIC_ONLY,
    AddressNotAllowedError,
    Resolver,
    resolve_addresses,
)
from connectors.http_client.transport import request_timeout, resolve_host

LOG = logging.getLogger("quarry.browser")

Dialer: TypeAlias = Callable[[str, int, float], socket.socket]
"""Connects to an address, given by number, and a port, within so many seconds. Raises OSError."""

DEFAULT_LIMITS = TrafficLimits()
_MAX_CONNECTIONS = 512
"""Of all pages and of strangers."""
_MAX_ADDRESSES = 3
"""Addresses of one name that are tried."""
_CHUNK = 65_536
_REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


def dial_address(address: str, port: int, seconds: float) -> socket.socket:
    return socket.create_connection((address, port), timeout=seconds)


class FilteringProxy(Closing):
    """An HTTP proxy on a free port of loopback, running until it is closed."""

    def __init__(
        self,
        resolver: Resolver = resolve_host,
        dial: Dialer = dial_address,
        limits: TrafficLimits = DEFAULT_LIMITS,
    ) -> None:
        self._resolver = resolver
        self._dial = dial
        self._limits = limits
        self._pages: dict[str, PageTraffic] = {}
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="browser-proxy", daemon=True).start()

    @contextmanager
    def open_page(self, domains: DomainRules) -> Iterator[PageTraffic]:
        """Admit the browser for one page, with a name and a password that end with the block.

        Args:
            domains: of which the page may be.
        """
        with PageTraffic(self._limits, domains) as traffic:
            self._pages[traffic.name] = traffic
            try:
                yield traffic
            finally:
                del self._pages[traffic.name]

    def close(self) -> None:
        with suppress(OSError):
            # Closing alone would not wake the thread that accepts.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for traffic in list(self._pages.values()):
            traffic.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._slots.acquire(blocking=False):
                    threading.Thread(target=self._serve, args=(client,), daemon=True).start()
                else:
                    client.close()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError, TrafficEndedError):
                self._answer(client)
        finally:
            self._slots.release()

    def _answer(self, client: socket.socket) -> None:
        """Carry out the one request of a connection, or say why not."""
        try:
            data, rest = _receive_head(client, self._limits.head_seconds)
            head = parse_head(data)
            traffic = self._find_page(head)
            with traffic.connection(client):
                self._carry_out(client, head, rest, traffic)
        except RefusedRequestError as refusal:
            _refuse(client, refusal)

    def _find_page(self, head: RequestHead) -> PageTraffic:
        name, password = read_credentials(head) or ("", "")
        traffic = self._pages.get(name)
        if traffic is None or not traffic.admits(password):
            raise RefusedRequestError(407, "the request names no page that is being read")
        return traffic

    def _carry_out(
        self, client: socket.socket, head: RequestHead, rest: bytes, traffic: PageTraffic
    ) -> None:
        try:
            request = read_target(head)
            _check_domain(request, traffic)
            upstream = self._connect(request)
        except RefusedRequestError as refusal:
            _note(traffic, refusal)
            raise
        with upstream, traffic.ended_with_page(upstream):
            match request:
                case Tunnel():
                    _pass_tunnel(client, upstream, rest, traffic)
                case Exchange():
                    _pass_exchange(client, upstream, request, rest, traffic)

    def _connect(self, request: Tunnel | Exchange) -> socket.socket:
        """Connect to a checked address of the host: the look-up here is the only one."""
        host, port, seconds = request.host, request.port, self._limits.connect_seconds
        target = name_target(host, port)
        try:
            with request_timeout(seconds):
                addresses = resolve_addresses(host, port, PUBLIC_ONLY, self._resolver)
        except AddressNotAllowedError as error:
            raise RefusedRequestError(403, "it is not in the public internet", target) from error
        except OSError as error:
            raise RefusedRequestError(502, "its name is not found", target) from error
        for address in addresses[:_MAX_ADDRESSES]:
            with suppress(OSError):
                return self._dial(address, port, seconds)
        raise RefusedRequestError(502, "it does not accept connections", target)


def _check_domain(request: Tunnel | Exchange, traffic: PageTraffic) -> None:
    """Refuse what is blocked before its name is looked up, wherever a redirect or a script leads."""
    if not traffic.domains.may_load_from(request.host):
        target = name_target(request.host, request.port)
        raise RefusedRequestError(403, "its domain may not be read here", target)


def _receive_head(client: socket.socket, seconds: float) -> tuple[bytes, bytes]:
    """Return the head of a request, and what came with it; all of it must arrive in this time."""
    data, until = b"", time.monotonic() + seconds
    while END_OF_HEAD not in data:
        if len(data) > MAX_HEAD_BYTES:
            raise RefusedRequestError(431, "the head of the request is too long")
        client.settimeout(max(0.001, until - time.monotonic()))
        try:
            received = client.recv(_CHUNK)
        except TimeoutError:
            raise RefusedRequestError(408, "the request does not arrive") from None
        if not received:
            raise TrafficEndedError
        data += received
    head, _, rest = data.partition(END_OF_HEAD)
    return head, rest


def _refuse(client: socket.socket, refusal: RefusedRequestError) -> None:
    text = f"Quarry does not pass this on: {refusal}.".encode()
    lines = [
        f"HTTP/1.1 {refusal.status} {_REASONS[refusal.status]}",
        *(['Proxy-Authenticate: Basic realm="Quarry"'] if refusal.status == 407 else []),
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(text)}",
        "Connection: close",
    ]
    client.settimeout(1.0)
    client.sendall("\r\n".join([*lines, "", ""]).encode("ascii") + text)


def _note(traffic: PageTraffic, refusal: RefusedRequestError) -> None:
    if refusal.target is not None:
        traffic.note_refusal(refusal.target, str(refusal))
    LOG.info("A page asked for %s and was refused: %s", refusal.target or "something", refusal)


def _pass_tunnel(
    client: socket.socket, upstream: socket.socket, rest: bytes, traffic: PageTraffic
) -> None:
    if rest:
        raise RefusedRequestError(400, "bytes came before the tunnel was there")
    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    others = {client: upstream, upstream: client}
    for ready in _iterate_ready(client, upstream, traffic):
        data = ready.recv(_CHUNK)
        if not data:
            return
        traffic.count(len(data))
        others[ready].sendall(data)


def _pass_exchange(
    client: socket.socket,
    upstream: socket.socket,
    request: Exchange,
    rest: bytes,
    traffic: PageTraffic,
) -> None:
    if len(rest) > request.body_bytes:
        raise RefusedRequestError(400, "more follows than the body of the request")
    upstream.settimeout(traffic.limits.idle_seconds)
    client.settimeout(traffic.limits.idle_seconds)
    traffic.count(len(request.head) + request.body_bytes)
    upstream.sendall(request.head + rest)
    _pass_body(client, upstream, request.body_bytes - len(rest))
    for ready in _iterate_ready(client, upstream, traffic):
        # Whatever else the browser sends would be another request, which has to be asked for by a connection of its own.
        data = b"" if ready is client else upstream.recv(_CHUNK)
        if not data:
            return
        traffic.count(len(data))
        client.sendall(data)


def _pass_body(client: socket.socket, upstream: socket.socket, size: int) -> None:
    while size:
        data = client.recv(min(size, _CHUNK))
        if not data:
            raise TrafficEndedError
        upstream.sendall(data)
        size -= len(data)


def _iterate_ready(
    client: socket.socket, upstream: socket.socket, traffic: PageTraffic
) -> Iterator[socket.socket]:
    """Yield the sides that have something to read, or have ended, until neither does for too long."""
    idle = traffic.limits.idle_seconds
    client.settimeout(idle)
    upstream.settimeout(idle)
    sides = {client.fileno(): client, upstream.fileno(): upstream}
    with selectors.DefaultSelector() as selector:
        for side in sides.values():
            selector.register(side, selectors.EVENT_READ)
        while ready := selector.select(idle):
            for key, _ in ready:
                yield sides[key.fd]
