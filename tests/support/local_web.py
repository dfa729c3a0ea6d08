"""A web on this machine: pages with what must come out of each, and a server within that none may reach.

    with local_web() as web:
        reader = PageReader(PageFetcher(web.allowed, web.resolve))
        reader.read(web.url("/en/pool"), Deadline.after(5.0))
        assert not web.internal_requests

`web.resolve` knows three names: `news.test` with all pages, which `web.allowed` lets pass; `internal.test`, a
server inside the network, which it does not; and `rebind.test`, whose address is `FIRST_REBINDING_ADDRESS`, where nobody
listens, when it is looked up first, and that of the internal server from then on.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import ClassVar
from urllib.parse import urlsplit

from connectors.http_client.address_guard import AllowedNetworks
from tests.support.web_pages import articles, files, walls
from tests.support.web_pages.page import LocalPage

HOST, INTERNAL_HOST = "news.test", "internal.test"
FIRST_REBINDING_ADDRESS = "::1"
_LOOPBACK = "127.0.0.1"

PAGES: Sequence[LocalPage] = tuple(chain(articles.pages(), walls.pages(), files.pages()))
_SERVED: Mapping[str, LocalPage] = {page.path: page for page in (*files.hops(), *PAGES)}


@dataclass(frozen=True)
class LocalWeb:
    """Both servers while they run, and what they were asked for."""

    port: int
    internal_port: int
    requests: list[str] = field(default_factory=list)
    internal_requests: list[str] = field(default_factory=list)
    lookups: list[str] = field(default_factory=list)

    allowed: ClassVar[AllowedNetworks] = AllowedNetworks(hosts=frozenset({HOST}))

    @property
    def origin(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def internal(self) -> str:
        return f"http://{INTERNAL_HOST}:{self.internal_port}"

    def url(self, path: str) -> str:
        return self.origin + path

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a name; it implements `Resolver`."""
        del port
        self.lookups.append(host)
        match host:
            case "news.test" | "internal.test" | "localhost":
                return [_LOOPBACK]
            case "rebind.test":
                first = self.lookups.count(host) == 1
                return [FIRST_REBINDING_ADDRESS if first else _LOOPBACK]
            case _:
                raise OSError(f"{host} has no address")

    def fill_in(self, text: str) -> str:
        """Replace the names of the servers in a header or a page."""
        return (
            text.replace("{internal}", self.internal)
            .replace("{internal_port}", str(self.internal_port))
            .replace("{web_host}", f"http://{HOST}")
            .replace("{web}", self.origin)
        )


@contextmanager
def local_web() -> Iterator[LocalWeb]:
    """Serve all `PAGES` and the internal server."""
    with _serving(_WebHandler) as outer, _serving(_InternalHandler) as inner:
        web = LocalWeb(outer.server_port, inner.server_port)
        outer.web = inner.web = web
        yield web


class _Server(ThreadingHTTPServer):
    web: LocalWeb
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[_Server]:
    with _Server((_LOOPBACK, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _InternalHandler(BaseHTTPRequestHandler):
    """What must never be asked."""

    server: _Server

    def do_GET(self) -> None:
        self.server.web.internal_requests.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<p>The secret of the network</p>")

    def log_message(self, *_: object) -> None:
        pass


class _WebHandler(_InternalHandler):
    def do_GET(self) -> None:
        self.server.web.requests.append(self.path)
        page = _SERVED.get(self.path) or _SERVED.get(urlsplit(self.path).path)
        if page is None:
            self.send_error(404)
            return
        with suppress(ConnectionError):
            self._send(page)

    def _send(self, page: LocalPage) -> None:
        cookie = page.headers.get("needs-cookie")
        if cookie is not None and cookie not in self.headers.get("cookie", ""):
            self._send_head(302, {"set-cookie": cookie, "location": page.path}, None)
            return
        self._send_head(page.status, page.headers, page.media_type)
        if isinstance(page.body, bytes):
            self.wfile.write(self._fill_in(page.body))
            return
        for piece in page.body():
            self.wfile.write(piece)

    def _send_head(self, status: int, headers: Mapping[str, str], media_type: str | None) -> None:
        self.send_response(status)
        if media_type is not None:
            self.send_header("content-type", media_type)
        for name, value in headers.items():
            self.send_header(name, self.server.web.fill_in(value))
        self.end_headers()

    def _fill_in(self, body: bytes) -> bytes:
        return body.replace(b"{internal}", self.server.web.internal.encode())
