"""Connections to checked addresses, ended when their time is over.

The name of a host is looked up once, by us; every address it has is checked, and the socket is opened
to one of those addresses by number, so that no second look can lead elsewhere. TLS still asks for the
certificate of the name. httpcore, which httpx stands on, takes such a way of connecting from outside.
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

import httpcore
import httpx

from connectors.http_client.address_guard import Reach, Resolver, checked_addresses
from connectors.http_client.response import BadCertificate

_LONGEST_WAIT = 3600.0
"""Seconds, where nothing says less: a socket takes no infinity."""

_ENDS = ContextVar("_ENDS", default=float("inf"))
"""When the request that this thread makes has to be over, on the monotonic clock."""


@cache
def public_authorities() -> ssl.SSLContext:
    """Trust in whom browsers trust. Made once: it takes some 20 ms."""
    return httpx.create_ssl_context(trust_env=False)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Everything on the wire inside of it ends by then, however it drips."""
    token = _ENDS.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _ENDS.reset(token)


class PinnedTransport(httpx.BaseTransport):
    """httpx over httpcore, as httpx.HTTPTransport does it, with connections of our own making."""

    def __init__(self, reach: Reach, resolve: Resolver, certificates: ssl.SSLContext) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=certificates,
            max_connections=16,
            max_keepalive_connections=8,
            keepalive_expiry=15.0,
            network_backend=_Pinned(reach, resolve),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        url = request.url
        with _told_by_httpx(request):
            answer = self._pool.handle_request(
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
        assert isinstance(answer.stream, Iterable)
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream, request)
        )

    def close(self) -> None:
        self._pool.close()


@contextmanager
def _told_by_httpx(request: httpx.Request) -> Iterator[None]:
    """httpcore's errors as httpx's, with their cause."""
    try:
        yield
    except httpcore.ConnectError as error:
        raise httpx.ConnectError(str(error), request=request) from error
    except (httpcore.ConnectTimeout, httpcore.PoolTimeout) as error:
        raise httpx.ConnectError("no connection in time", request=request) from error
    except httpcore.TimeoutException as error:
        raise httpx.ReadTimeout("it takes too long", request=request) from error
    except httpcore.LocalProtocolError:
        # Its words would show the header, which may be a credential.
        raise ValueError("a header of the request holds what cannot be sent") from None
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise httpx.ReadError(str(error), request=request) from error


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Iterable[bytes], request: httpx.Request) -> None:
        self._stream = stream
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        with _told_by_httpx(self._request):
            yield from self._stream

    def close(self) -> None:
        close = getattr(self._stream, "close", None)
        if close is not None:
            close()


class _Pinned(httpcore.NetworkBackend):
    def __init__(self, reach: Reach, resolve: Resolver) -> None:
        self._reach = reach
        self._resolve = resolve
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        with within(_left(timeout, httpcore.ConnectTimeout)):
            try:
                addresses = checked_addresses(host, port, self._reach, self._resolve)
            except OSError as error:
                raise httpcore.ConnectError(f"{host} is not found: {error}") from error
            return _Ended(self._first(addresses, port, local_address, socket_options))

    def _first(
        self,
        addresses: Sequence[str],
        port: int,
        local_address: str | None,
        socket_options: Iterable[Any] | None,
    ) -> httpcore.NetworkStream:
        """A connection to the first of them that takes it; the last one's error where none does."""
        *others, last = addresses
        for address in others:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return self._sockets.connect_tcp(
                    address, port, _to_connect() / 2, local_address, socket_options
                )
        return self._sockets.connect_tcp(last, port, _to_connect(), local_address, socket_options)


class _Ended(httpcore.NetworkStream):
    """A stream whose every wait is cut to what is left of the request's time."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        try:
            left = _left(timeout, httpcore.ConnectTimeout)
            return _Ended(self._stream.start_tls(ssl_context, server_hostname, left))
        except httpcore.ConnectError as error:
            self.close()
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise BadCertificate(_distrust(server_hostname, error.__cause__)) from error
            raise
        except httpcore.ConnectTimeout:
            self.close()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _distrust(host: str | None, error: ssl.SSLCertVerificationError) -> str:
    return (
        f"{host} does not prove who it is: {error.verify_message}. Where a private authority signed"
        " its certificate, name the authority's file in the settings of the source."
    )


def _left(
    timeout: float | None, over: type[httpcore.TimeoutException] = httpcore.ReadTimeout
) -> float:
    """Seconds that a wait may take; raises `over` where there are none."""
    left = min(_ENDS.get() - time.monotonic(), _LONGEST_WAIT if timeout is None else timeout)
    if left <= 0:
        raise over("the time for the whole request is over")
    return left


def _to_connect() -> float:
    return _left(None, httpcore.ConnectTimeout)


def system_resolver(host: str, port: int) -> list[str]:
    """The operating system's answer. Raises OSError: there is none, or none in the time of `within`.

    The system cannot be told how long it may take; its answer is awaited in a thread that is left
    behind where it takes longer.
    """
    found: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()
    threading.Thread(target=_look_up, args=(host, port, found), daemon=True).start()
    try:
        answer = found.get(timeout=max(0.0, min(_ENDS.get() - time.monotonic(), _LONGEST_WAIT)))
    except queue.Empty as error:
        raise TimeoutError("its name takes too long to look up") from error
    if isinstance(answer, OSError):
        raise answer
    return answer


def _look_up(host: str, port: int, found: "queue.SimpleQueue[list[str] | OSError]") -> None:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found.put([str(row[4][0]) for row in rows])
    except (OSError, UnicodeError) as error:
        found.put(error if isinstance(error, OSError) else OSError(str(error)))
