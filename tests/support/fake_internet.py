"""An internet on this machine: names with addresses, of which the public ones lead to a server here, and a server within that nobody may reach."""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias

PUBLIC = "93.184.216.34"
INTERNAL_NAMES: Mapping[str, str] = {
    "intranet.test": "10.0.0.5",
    "loop.test": "127.0.0.1",
    "loop6.test": "::1",
    "mapped.test": "::ffff:127.0.0.1",
    "metadata.test": "169.254.169.254",
    "localhost": "127.0.0.1",
}


@dataclass(frozen=True)
class Answer:
    body: bytes
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Callable[[], Iterable[bytes]] | None = None
    """What follows the body, which then has no stated length."""


Site: TypeAlias = Callable[[str], Answer | None]
"""Answers a path; None is 404."""


@dataclass
class FakeInternet:
    """What the names resolve to, and where connections were made to."""

    port: int
    """Of the server to which public addresses lead."""
    dialled: list[tuple[str, int]] = field(default_factory=list)
    looked_up: Counter[str] = field(default_factory=Counter)
    requests: list[str] = field(default_factory=list)

    def resolve(self, host: str, port: int) -> list[str]:
        del port
        self.looked_up[host] += 1
        if host == "rebind.test":
            return [PUBLIC if self.looked_up[host] == 1 else "127.0.0.1"]
        if host == "both.test":
            return [PUBLIC, "10.0.0.5"]
        if host == "unknown.test":
            raise OSError("there is no such name")
        return [INTERNAL_NAMES.get(host, PUBLIC)]

    def dial(self, address: str, port: int, seconds: float) -> socket.socket:
        self.dialled.append((address, port))
        if address != PUBLIC:
            raise OSError("nothing is there")
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)


@contextmanager
def fake_internet(site: Site) -> Iterator[FakeInternet]:
    internet = FakeInternet(port=0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            internet.requests.append(f"{self.headers['Host']}{self.path}")
            answer = site(self.path) or Answer(b"not found", status=404)
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.media_type)
            if answer.more is None:
                self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)
            # Whoever asked may go away meanwhile.
            with suppress(OSError):
                self.wfile.writelines(answer.more() if answer.more else ())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    internet.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield internet
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class InternalServer:
    """Whatever came to a port of loopback, over TCP or UDP, IPv4 or IPv6."""

    port: int
    log: list[str] = field(default_factory=list)


@contextmanager
def internal_server() -> Iterator[InternalServer]:
    tcp = socket.create_server(("127.0.0.1", 0))
    server = InternalServer(port=tcp.getsockname()[1])
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", server.port))
    tcp6 = socket.create_server(("::1", server.port), family=socket.AF_INET6)

    def accept(listener: socket.socket) -> None:
        try:
            while True:
                connected, _ = listener.accept()
                server.log.append("a connection")
                connected.close()
        except OSError:
            return

    def receive() -> None:
        try:
            while True:
                if data := udp.recv(2048):
                    server.log.append(f"a datagram: {data!r}")
                else:
                    return
        except OSError:
            return

    threads = [
        threading.Thread(target=accept, args=(tcp,), daemon=True),
        threading.Thread(target=accept, args=(tcp6,), daemon=True),
        threading.Thread(target=receive, daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield server
    finally:
        for listener in (tcp, tcp6):
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", udp.getsockname())
        for thread in threads:
            thread.join(5)
        udp.close()
