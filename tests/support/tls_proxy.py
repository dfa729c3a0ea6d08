"""A TLS proxy before a plain HTTP server: it knows certificates and sign-in, which the server behind it does not."""

import http.client
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import trustme

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


Gate = Callable[[Request], int]
"""The status that a request is refused with; 0 lets it pass."""


def open_gate(_: Request) -> int:
    return 0


@dataclass(frozen=True)
class Proxy:
    url: str
    seen: list[Request]


@contextmanager
def tls_proxy(
    target: str,
    authority: trustme.CA,
    *,
    name: str = HOST,
    clients: trustme.CA | None = None,
    gate: Gate = open_gate,
) -> Iterator[Proxy]:
    """Before `target`, with a certificate for `name`; `clients` have to show one of that authority."""
    server = _Server(target, gate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    if clients is not None:
        clients.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    # The handshake is made by the thread of the connection, so that one that fails stops no other.
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Proxy(f"https://{HOST}:{server.server_port}", server.seen)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, target: str, gate: Gate) -> None:
        super().__init__((HOST, 0), _Handler)
        self.target = target
        self.gate = gate
        self.seen: list[Request] = []

    def handle_error(self, *_: object) -> None:
        """Only the client reports a connection that fails."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body)
        self.server.seen.append(request)
        if status := self.server.gate(request):
            self._answer(status, "text/plain", b"")
        else:
            self._answer(*_forwarded(self.server.target, request))

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _pass

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        pass


def _forwarded(target: str, request: Request) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(urlsplit(target).netloc, timeout=30)
    kept = {
        name: value
        for name, value in request.headers.items()
        if name in ("content-type", "content-encoding")
    }
    try:
        connection.request(request.method, request.path, request.body, kept)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", "text/plain"), answer.read()
    finally:
        connection.close()
