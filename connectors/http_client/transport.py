"""Connections to checked addresses, with a deadline for the whole request.

The name of a host is looked up once, here; every address it has is checked, and the socket is opened
to one of those addresses by number, so that no second look-up can lead elsewhere. TLS still verifies
the certificate for the name. httpcore, on which httpx is built, accepts such a network backend.
"""

import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import Any
from weakref import WeakSet

import httpcore
import httpx

from connectors.http_client.address_guard import AllowedNetworks, Resolver, resolve_addresses
from connectors.http_client.response import CertificateError

_MAX_WAIT = 3600.0
"""Seconds, if nothing says less: a socket accepts no infinity."""

_DEADLINE = ContextVar("_DEADLINE", default=float("inf"))
"""When the request of this thread has to end, on the monotonic clock."""


@cache
def load_public_authorities() -> ssl.SSLContext:
    """Return a context that trusts the authorities browsers trust. Cached: it takes some 20 ms."""
    return httpx.create_ssl_context(trust_env=False)


@contextmanager
def request_timeout(seconds: float) -> Iterator[None]:
    """Limit all network operations of this thread inside the block to that many seconds in all.

    An outer block holds too: one around several attempts bounds them together.
    """
    token = _DEADLINE.set(min(_DEADLINE.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


class PinnedTransport(httpx.BaseTransport):
    """httpx over httpcore, like httpx.HTTPTransport, with connections to checked addresses only."""

    def __init__(
        self, allowed: AllowedNetworks, resolver: Resolver, ssl_context: ssl.SSLContext
    ) -> None:
        self._sockets = _OpenSockets()
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=16,
            max_keepalive_connections=8,
            keepalive_expiry=15.0,
            network_backend=_PinnedBackend(allowed, resolver, self._sockets),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        url = request.url
        with _httpx_errors(request):
            response = self._pool.handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        assert isinstance(response.stream, Iterable)
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response.stream, request)
        )

    def abort(self) -> None:
        """Break off the requests that run, and all that begin from now on; may be called from another thread."""
        self._sockets.abort()

    def close(self) -> None:
        self._pool.close()


class _OpenSockets:
    """The sockets of a transport, which another thread may shut down."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: WeakSet[socket.socket] = WeakSet()
        self._is_aborted = False

    def add(self, stream: httpcore.NetworkStream) -> None:
        with self._lock:
            self._open.add(stream.get_extra_info("socket"))

    def abort(self) -> None:
        with self._lock:
            self._is_aborted = True
            for each in self._open:
                # A socket that is closed already has nothing to be shut down.
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """Raise where they are shut down: what ends for this reason is not complete."""
        if self._is_aborted:
            raise httpcore.ReadTimeout("the request is broken off")


@contextmanager
def _httpx_errors(request: httpx.Request) -> Iterator[None]:
    """Translate httpcore's errors to httpx's, with their cause."""
    try:
        yield
    except httpcore.ConnectError as error:
        raise httpx.ConnectError(str(error), request=request) from error
    except (httpcore.ConnectTimeout, httpcore.PoolTimeout) as error:
        raise httpx.ConnectError("no connection in time", request=request) from error
    except httpcore.TimeoutException as error:
        raise httpx.ReadTimeout("it takes too long", request=request) from error
    except httpcore.LocalProtocolError:
        # Its message would show the header, which may be a credential.
        raise ValueError("a header of the request has characters that cannot be sent") from None
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise httpx.ReadError(str(error), request=request) from error


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Iterable[bytes], request: httpx.Request) -> None:
        self._stream = stream
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        with _httpx_errors(self._request):
            yield from self._stream

    def close(self) -> None:
        close = getattr(self._stream, "close", None)
        if close is not None:
            close()


class _PinnedBackend(httpcore.NetworkBackend):
    def __init__(self, allowed: AllowedNetworks, resolver: Resolver, opened: _OpenSockets) -> None:
        self._allowed = allowed
        self._resolver = resolver
        self._opened = opened
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        with request_timeout(_remaining(timeout, httpcore.ConnectTimeout)):
            try:
                addresses = resolve_addresses(host, port, self._allowed, self._resolver)
            except OSError as error:
                raise httpcore.ConnectError(f"{host} is not found: {error}") from error
            return _DeadlineStream(
                self._connect_any(addresses, port, local_address, socket_options), self._opened
            )

    def _connect_any(
        self,
        addresses: Sequence[str],
        port: int,
        local_address: str | None,
        socket_options: Iterable[Any] | None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that accepts; if none does, raise the error of the last."""
        *others, last = addresses
        for address in others:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return self._sockets.connect_tcp(
                    address, port, _remaining_to_connect() / 2, local_address, socket_options
                )
        return self._sockets.connect_tcp(
            last, port, _remaining_to_connect(), local_address, socket_options
        )


class _DeadlineStream(httpcore.NetworkStream):
    """A stream whose every wait ends with the time of the request."""

    def __init__(self, stream: httpcore.NetworkStream, opened: _OpenSockets) -> None:
        self._stream = stream
        self._opened = opened
        opened.add(stream)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._opened.check()
        received = self._stream.read(max_bytes, _remaining(timeout))
        self._opened.check()
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._opened.check()
        self._stream.write(buffer, _remaining(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        try:
            remaining = _remaining(timeout, httpcore.ConnectTimeout)
            encrypted = self._stream.start_tls(ssl_context, server_hostname, remaining)
            return _DeadlineStream(encrypted, self._opened)
        except httpcore.ConnectError as error:
            self.close()
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise _certificate_error(server_hostname, error.__cause__) from error
            raise
        except httpcore.ConnectTimeout:
            self.close()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _certificate_error(host: str | None, error: ssl.SSLCertVerificationError) -> CertificateError:
    return CertificateError(
        f"the TLS certificate of {host} is not valid: {error.verify_message}. If a private authority"
        " signed it, name the authority's file in the settings of the source."
    )


def _remaining(
    timeout: float | None, error: type[httpcore.TimeoutException] = httpcore.ReadTimeout
) -> float:
    """Return the seconds that a wait may take; raise `error` if none are left."""
    remaining = min(_DEADLINE.get() - time.monotonic(), _MAX_WAIT if timeout is None else timeout)
    if remaining <= 0:
        raise error("the time for the whole request is over")
    return remaining


def _remaining_to_connect() -> float:
    return _remaining(None, httpcore.ConnectTimeout)


def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses that the operating system finds.

    The system has no parameter for a time limit: the look-up runs in a thread, which is abandoned if
    it takes longer than `request_timeout` allows.

    Raises:
        OSError: there are none, or not in time.
    """
    results: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()
    threading.Thread(target=_look_up, args=(host, port, results), daemon=True).start()
    try:
        result = results.get(timeout=max(0.0, min(_DEADLINE.get() - time.monotonic(), _MAX_WAIT)))
    except queue.Empty as error:
        raise TimeoutError("the name look-up takes too long") from error
    if isinstance(result, OSError):
        raise result
    return result


def _look_up(host: str, port: int, results: "queue.SimpleQueue[list[str] | OSError]") -> None:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        results.put([str(row[4][0]) for row in rows])
    except (OSError, UnicodeError) as error:
        results.put(error if isinstance(error, OSError) else OSError(str(error)))
