"""An HTTP proxy on loopback that injects network faults: late, slow, or interrupted at any byte.

Each request is read completely, passed on, and its response read completely, before a fault is injected into either. So a
test knows what the server had done when the connection failed.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

HOST = "127.0.0.1"
HEAD_ENDS = b"\r\n\r\n"
PIECE = 65_536


@dataclass(frozen=True)
class Late:
    """The response is this many seconds late."""

    seconds: float


@dataclass(frozen=True)
class Trickling:
    """The response comes byte by byte, with this many seconds between them."""

    pause: float


@dataclass(frozen=True)
class ResponseCut:
    """The server has processed the request; the connection ends after so many bytes of the response."""

    after: int = 0


@dataclass(frozen=True)
class RequestCut:
    """The connection ends after so many bytes of the request have reached the server."""

    after: int


@dataclass(frozen=True)
class Meanwhile:
    """`call` is made after so many bytes of the request have reached the server, before the rest."""

    call: Callable[[], object]
    after: int


@dataclass(frozen=True)
class Afterwards:
    """`call` is made after the server has processed the request, before its response is passed on."""

    call: Callable[[], object]


Fault: TypeAlias = Late | Trickling | ResponseCut | RequestCut | Meanwhile | Afterwards


@dataclass(frozen=True)
class Seen:
    """A request that was received."""

    line: str
    """Method and path, without parameters."""
    at: float
    """Seconds of `time.monotonic`."""


@dataclass
class _Plan:
    fault: Fault
    path: str
    spared: int
    times: int


class FaultProxy:
    """Passes on requests to one server; see `injecting`."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._listener = socket.create_server((HOST, 0))
        self._lock = threading.Lock()
        self._plans: list[_Plan] = []
        self._open: set[socket.socket] = set()
        self._closed = threading.Event()
        self.seen: list[Seen] = []
        self.url = f"http://{HOST}:{self._listener.getsockname()[1]}"

    @contextmanager
    def injecting(
        self, fault: Fault, path: str = "", spared: int = 0, times: int = 1_000_000
    ) -> Iterator[None]:
        """Inject the fault into requests whose path ends so: into `times` of them, after the first `spared`."""
        plan = _Plan(fault, path, spared, times)
        with self._lock:
            self._plans.append(plan)
        try:
            yield
        finally:
            with self._lock:
                self._plans.remove(plan)

    def asked(self, path: str) -> list[Seen]:
        """Return the requests so far whose path ends so."""
        return [each for each in list(self.seen) if each.line.endswith(path)]

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        # Closing alone would leave the thread waiting in `accept`.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            held = list(self._open)
        for each in held:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _relay(self, client: socket.socket) -> None:
        """Relay one connection until one side closes it."""
        with suppress(OSError, _ConnectionClosed), self._registered(client):
            port = self._target.port or 80
            with socket.create_connection((HOST, port)) as server, self._registered(server):
                while request := _read(client):
                    self._exchange(client, server, request)

    @contextmanager
    def _registered(self, connection: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _exchange(self, client: socket.socket, server: socket.socket, request: bytes) -> None:
        line = _request_line(request)
        fault = self._fault_for(line)
        self.seen.append(Seen(line, time.monotonic()))
        match fault:
            case RequestCut(after):
                server.sendall(request[:after])
                raise _ConnectionClosed
            case Meanwhile(call, after):
                server.sendall(request[:after])
                call()
                server.sendall(request[after:])
            case _:
                server.sendall(request)
        answer = _read(server, is_head=line.startswith("HEAD"))
        if not answer:
            raise _ConnectionClosed
        self._send_response(client, answer, fault)

    def _send_response(self, client: socket.socket, answer: bytes, fault: Fault | None) -> None:
        match fault:
            case Late(seconds):
                self._wait(seconds)
                client.sendall(answer)
            case Trickling(pause):
                for each in answer:
                    client.sendall(bytes([each]))
                    self._wait(pause)
            case ResponseCut(after):
                client.sendall(answer[:after])
                raise _ConnectionClosed
            case Afterwards(call):
                call()
                client.sendall(answer)
            case _:
                client.sendall(answer)

    def _wait(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise _ConnectionClosed

    def _fault_for(self, line: str) -> Fault | None:
        """Return the fault to inject into this request."""
        with self._lock:
            for plan in self._plans:
                if line.endswith(plan.path):
                    plan.spared -= 1
                    if plan.spared < 0 and plan.times > 0:
                        plan.times -= 1
                        return plan.fault
        return None


class _ConnectionClosed(Exception):
    """The connection must be closed."""


def _request_line(request: bytes) -> str:
    method, target, _ = request.partition(b"\r\n")[0].decode().split(" ")
    return f"{method} {target.partition('?')[0]}"


def _read(connection: socket.socket, *, is_head: bool = False) -> bytes:
    """Read a complete message; empty if the other side has closed the connection."""
    message = b""
    while HEAD_ENDS not in message:
        if not (piece := connection.recv(PIECE)):
            return b""
        message += piece
    head, _, body = message.partition(HEAD_ENDS)
    missing = 0 if is_head else _length(head) - len(body)
    pieces = [message]
    while missing > 0:
        if not (piece := connection.recv(PIECE)):
            return b""
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return int(value)
    return 0


@contextmanager
def fault_proxy(target: str) -> Iterator[FaultProxy]:
    """Run a proxy for the server at this address during the block."""
    proxy = FaultProxy(target)
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()
