"""A client that does not finish its request loses the connection; one that does keeps it."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from backend.cli.listening import Listening
from backend.cli.server import Owner, Server, TimedRequestProtocol, make_app
from backend.container import Container
from backend.settings import Settings
from connectors.access import Readers

WHOLE = b"GET / HTTP/1.1\r\nHost: quarry\r\n\r\n"
HEADERS_OF_TEN = b"POST / HTTP/1.1\r\nHost: quarry\r\nContent-Length: 10\r\n\r\n"
disconnected = threading.Event()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body."""
    try:
        body = await Request(scope, receive).body()
    except ClientDisconnect:
        disconnected.set()
        return
    await Response(body)(scope, receive, send)


class ImpatientProtocol(TimedRequestProtocol):
    request_seconds = 0.2


@contextmanager
def serving(protocol: type[TimedRequestProtocol]) -> Iterator[int]:
    config = uvicorn.Config(echo, port=0, http=protocol, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield bound.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(ImpatientProtocol) as port:
        yield port


def read_to_end(client: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    return b"".join(iter(lambda: client.recv(65_536), b""))


@contextmanager
def connection(port: int) -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=60)) as client:
        yield client


def test_a_connection_without_a_request_is_closed(port: int) -> None:
    with connection(port) as client:
        assert read_to_end(client) == b""


@pytest.mark.parametrize("begun", [b"G", WHOLE[:20], WHOLE[:-2]])
def test_half_a_head_is_answered_with_408(port: int, begun: bytes) -> None:
    with connection(port) as client:
        client.sendall(begun)
        answer = read_to_end(client)
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"connection: close" in answer.lower()


def test_half_a_body_is_answered_with_408_and_the_application_learns_of_it(port: int) -> None:
    disconnected.clear()
    with connection(port) as client:
        client.sendall(HEADERS_OF_TEN + b"12345")
        assert read_to_end(client).startswith(b"HTTP/1.1 408 ")
    assert disconnected.wait(60)


def test_half_of_a_later_request_is_answered_with_408(port: int) -> None:
    with connection(port) as client:
        client.sendall(WHOLE)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += client.recv(65_536)
        client.sendall(WHOLE[:9])
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert read_to_end(client).startswith(b"HTTP/1.1 408 ")


class MemoryTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class RecordingProtocol(TimedRequestProtocol):
    """Keeps its timers, which end nothing by themselves."""

    request_seconds = 3600.0

    @property
    def timer(self) -> asyncio.TimerHandle | None:
        return self._timer

    def expire(self) -> None:
        self._end_request()


def connect() -> tuple[RecordingProtocol, MemoryTransport]:
    config = uvicorn.Config(echo, lifespan="off", log_config=None)
    config.load()
    protocol, transport = RecordingProtocol(config, ServerState(), {}), MemoryTransport()
    protocol.connection_made(transport)
    return protocol, transport


def test_parts_of_the_headers_share_one_limit_and_each_part_of_a_body_has_its_own() -> None:
    async def send_in_parts() -> None:
        protocol, _ = connect()
        begun = protocol.timer
        protocol.data_received(HEADERS_OF_TEN[:9])
        assert protocol.timer is begun
        protocol.data_received(HEADERS_OF_TEN[9:])
        body = protocol.timer
        assert body is not None
        assert body is not begun
        protocol.data_received(b"12345")
        assert protocol.timer is not None
        assert protocol.timer is not body
        protocol.data_received(b"67890")
        assert protocol.timer is None

    asyncio.run(send_in_parts())


def test_a_client_is_not_blamed_while_the_application_does_not_read_on() -> None:
    async def send_too_much() -> None:
        protocol, transport = connect()
        protocol.data_received(HEADERS_OF_TEN.replace(b"10", b"100000"))
        protocol.data_received(b"x" * 99_000)
        protocol.expire()
        assert not transport.closed
        assert protocol.timer is not None

    asyncio.run(send_too_much())


def test_the_server_limits_requests(tmp_path: Path) -> None:
    container = Container(Settings(home=tmp_path))
    listening = Listening(address="127.0.0.1")
    owner = Owner(container.sign_in.machine_secret, Readers.of())
    config = Server(make_app(container, owner, listening), listening).config
    assert config.http is TimedRequestProtocol
