"""A local HTTP service made of one function from request to reply.

    def answer(request: ReceivedRequest) -> Reply:
        if request.headers.get("authorization") != "Bearer right":
            return reply_json({"message": "no"}, status=401)
        return reply_json({"path": request.path, "page": request.param("page", "1")})

    with serve(answer) as service:
        WebClient(allowed_networks=LOOPBACK).get(f"{service.url}/pages", params={"page": 2})
        assert [request.path for request in service.log] == ["/pages"]

The function is called in the thread of the connection, so several calls may run at once. A service with
state is a callable object, with a lock if it needs one.
"""

import itertools
import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

LOOPBACK_ADDRESS = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    method: str
    path: str
    """Percent-encoded, without the query."""
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = b""
    at: float = 0.0
    """`time.monotonic()` when it arrived."""

    def param(self, name: str, otherwise: str = "") -> str:
        """Return the last value of a query parameter."""
        return self.query.get(name, [otherwise])[-1]

    def json(self) -> Any:
        """Parse the body as JSON; raise ValueError if it is not."""
        return json.loads(self.body)

    def form(self) -> dict[str, list[str]]:
        """Parse the body as a form that a browser sends."""
        return parse_qs(self.body.decode("ascii"), keep_blank_values=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply to send. Content-Length, Date and Connection are added."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Iterable[bytes] = b""
    """An iterable is sent piece by piece without Content-Length: the end of the connection ends the body.
    One that sleeps between its pieces is a server that sends slowly."""


class Hangup(Exception):
    """Raised by the handler to close the connection without a reply."""


RequestHandler = Callable[[ReceivedRequest], Reply]


@dataclass(frozen=True, slots=True)
class ScriptedHandler:
    """Sends these replies in order, and then the last one forever."""

    replies: Sequence[Reply | Hangup]
    _index: Iterator[int] = field(default_factory=itertools.count, repr=False)

    def __call__(self, request: ReceivedRequest) -> Reply:
        del request
        reply = self.replies[min(next(self._index), len(self.replies) - 1)]
        if isinstance(reply, Hangup):
            raise reply
        return reply


def echo(request: ReceivedRequest) -> Reply:
    """Reply with the request."""
    return reply_json(
        {
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "headers": dict(request.headers),
            "body": request.body.decode(),
        }
    )


def redirect(location: str, status: int = 302) -> Reply:
    return Reply(status=status, headers={"Location": location})


def reply_json(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    return Reply(
        status=status,
        headers={"Content-Type": "application/json; charset=utf-8"} | dict(headers or {}),
        body=json.dumps(value, ensure_ascii=False).encode("utf-8"),
    )


def reply_text(
    text: str,
    *,
    media_type: str = "text/plain",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    return Reply(
        status=status,
        headers={"Content-Type": f"{media_type}; charset=utf-8"} | dict(headers or {}),
        body=text.encode("utf-8"),
    )


@dataclass(frozen=True, slots=True)
class RunningService:
    url: str
    """Scheme, host and port, without a final slash."""
    port: int
    log: list[ReceivedRequest]
    """Every request so far in order; a test may clear it."""
    connections: list[tuple[str, int]]
    """The client address of every connection so far, with or without a request."""


@contextmanager
def serve(
    answer: RequestHandler, *, tls: ssl.SSLContext | None = None, host: str = LOOPBACK_ADDRESS
) -> Iterator[RunningService]:
    """Run the service on a free port of `host`; at the end its port, threads and connections are closed.

    Args:
        tls: a context of a server (`trustme.CA().issue_cert(…).configure_cert(context)`), for https.
        host: an IPv6 address is written without brackets.

    An exception of the handler other than Hangup is raised again at the end.
    """
    server = _Server((host, 0), answer, tls)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield RunningService(server.url, server.server_port, server.log, server.connections)
    finally:
        server.shutdown()
        server.hang_up()
        server.server_close()
        thread.join(10)
    if server.errors:
        raise server.errors[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise a small reply waits 40 ms for the acknowledgement of the previous one.
    disable_nagle_algorithm = True
    timeout = 30

    def handle_one_request(self) -> None:
        with suppress(OSError):
            super().handle_one_request()
            return
        self.close_connection = True

    def _serve(self) -> None:
        server = cast(_Server, self.server)
        request = self._asked()
        server.log.append(request)
        try:
            reply = server.answer(request)
        except Hangup:
            self.close_connection = True
        else:
            self._send(reply)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = _serve

    def _asked(self) -> ReceivedRequest:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        return ReceivedRequest(
            method=self.command,
            path=parts.path,
            query=parse_qs(parts.query, keep_blank_values=True),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self._read_body(length),
            at=time.monotonic(),
        )

    def _read_body(self, length: int) -> bytes:
        """Raises ConnectionError: the client went away before all of it was there."""
        body = self.rfile.read(length) if length else b""
        if len(body) < length:
            raise ConnectionError("the body of the request was cut off")
        return body

    def _send(self, reply: Reply) -> None:
        match reply.body:
            case bytes() as body:
                self._send_head(reply, length=len(body))
                if self.command != "HEAD":
                    self.wfile.write(body)
            case pieces:
                self.close_connection = True
                self._send_head(reply, length=None)
                for piece in pieces:
                    self.wfile.write(piece)

    def _send_head(self, reply: Reply, length: int | None) -> None:
        self.send_response_only(reply.status)
        for name, value in ({"Date": self.date_time_string()} | dict(reply.headers)).items():
            self.send_header(name, value)
        if length is None:
            self.send_header("Connection", "close")
        elif "Content-Length" not in reply.headers and reply.status not in {204, 304}:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the base class
        del format, args


class _Server(ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = False
    block_on_close = True

    def __init__(
        self, address: tuple[str, int], answer: RequestHandler, tls: ssl.SSLContext | None
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.answer = answer
        self.log: list[ReceivedRequest] = []
        self.connections: list[tuple[str, int]] = []
        self.errors: list[BaseException] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        self.url = f"{'https' if tls else 'http'}://{host}:{self.server_port}"
        if tls is not None:
            # The handshake is done in the thread of the connection, so that a failure affects no other.
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def server_bind(self) -> None:
        """Bind like the base class, without a look-up of the host name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
            self.connections.append(client_address[:2])
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Close the connections that clients keep open, so that no thread waits for them."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Collect exceptions of the handler; a client that disconnects is not an error."""
        del request, client_address
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            self.errors.append(error)
