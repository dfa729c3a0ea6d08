import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest
import trustme

from connectors.http_client.address_guard import AddressNotAllowedError, Resolver
from connectors.http_client.client import WebClient
from connectors.http_client.request import RequestLimits
from connectors.http_client.response import CertificateError, ServiceUnavailableError
from connectors.http_client.retry_policy import RetryPolicy
from connectors.http_client.transport import request_timeout, resolve_host
from tests.support.loopback import LOOPBACK
from tests.support.services.serving import ReceivedRequest, Reply, RequestHandler, echo, serve


@pytest.fixture
def client() -> Iterator[WebClient]:
    with WebClient(allowed_networks=LOOPBACK, retry_policy=RetryPolicy(max_attempts=1)) as client:
        yield client


def _dripping(seconds: float) -> RequestHandler:
    def pieces() -> Iterator[bytes]:
        for _ in range(int(seconds / 0.05)):
            time.sleep(0.05)
            yield b"."

    def answer(request: ReceivedRequest) -> Reply:
        del request
        return Reply(body=pieces())

    return answer


def test_a_server_that_sends_slowly_times_out(client: WebClient) -> None:
    with serve(_dripping(30.0)) as service:
        began = time.monotonic()
        with pytest.raises(ServiceUnavailableError, match=r"too long|in time"):
            client.get(service.url, limits=RequestLimits(total=0.4, read=0.3))
        assert time.monotonic() - began < 15


def test_a_server_that_sends_nothing_times_out(client: WebClient) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        del request
        time.sleep(0.8)
        return Reply()

    with serve(answer) as service:
        for limits in (RequestLimits(read=0.2), RequestLimits(total=0.2)):
            with pytest.raises(ServiceUnavailableError, match=r"too long|in time"):
                client.get(service.url, limits=limits)


def test_a_handshake_that_does_not_come_times_out(client: WebClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        for limits in (RequestLimits(connect=0.2), RequestLimits(total=0.2)):
            with pytest.raises(ServiceUnavailableError, match="in time"):
                client.get(url, limits=limits)


# Servers that speak something else


@contextmanager
def _raw(answer: bytes) -> Iterator[str]:
    """A server that reads some of a request, says this whatever it was, and closes."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"220 mail.example ESMTP ready\r\n",
        b"-ERR unknown command\r\n" * 100,
        b"HTTP/1.1",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 100_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\nabc",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
        b"\x16\x03\x01\x02\x00",
        bytes(range(256)) * 100,
    ],
    ids=lambda said: said[:60].decode("latin-1"),
)
def test_a_response_that_is_not_http_is_retried_later(client: WebClient, said: bytes) -> None:
    with _raw(said) as url, pytest.raises(ServiceUnavailableError):
        client.get(url, limits=RequestLimits(total=5))


# Names and the addresses they are pinned to


def _asking(resolve: Resolver, certificates: ssl.SSLContext | None = None) -> WebClient:
    return WebClient(
        allowed_networks=LOOPBACK,
        resolver=resolve,
        ssl_context=certificates,
        retry_policy=RetryPolicy(max_attempts=1),
    )


def _local(host: str, port: int) -> Sequence[str]:
    del host, port
    return ["127.0.0.1"]


def test_a_name_is_looked_up_once_a_connection() -> None:
    looked_up: list[tuple[str, int]] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        looked_up.append((host, port))
        return ["127.0.0.1"]

    with serve(echo) as service, _asking(resolve) as client:
        url = f"http://Name.EXAMPLE.:{service.port}/"
        for _ in range(3):
            client.get(url)
        assert looked_up == [("name.example", service.port)]
        assert service.log[0].headers["host"] == f"name.example:{service.port}"


def test_the_next_address_is_tried_where_one_takes_nothing() -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        # Nothing listens at this port of the first.
        return ["::1", "127.0.0.1"]

    with serve(echo) as service, _asking(resolve) as client:
        assert client.get(f"http://name.example:{service.port}/").status == 200


@pytest.mark.parametrize("answer", [[], ["127.0.0.1", "10.0.0.1"]])
def test_a_name_without_an_allowed_address_is_not_connected_to(answer: list[str]) -> None:
    with serve(echo) as service, _asking(lambda *_: answer) as client:
        with pytest.raises((ServiceUnavailableError, AddressNotAllowedError)):
            client.get(f"http://name.example:{service.port}/")
        assert service.connections == []


def test_a_name_that_does_not_exist_is_left_for_later() -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with _asking(resolve) as client, pytest.raises(ServiceUnavailableError, match="is not found"):
        client.get("http://name.example/")


def test_the_system_knows_this_machine() -> None:
    with request_timeout(10):
        assert set(resolve_host("localhost", 80)) <= {"127.0.0.1", "::1"}


def test_the_system_is_not_waited_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def never(*_: object, **__: object) -> list[object]:
        over.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", never)
    with request_timeout(0.1), pytest.raises(TimeoutError):
        resolve_host("name.example", 80)
    over.set()


# Certificates


def _secured(name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a server of that name, and of a client that trusts its authority."""
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(server)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return server, trusting


def test_the_certificate_is_that_of_the_name_though_the_address_is_pinned() -> None:
    server, trusting = _secured("name.example")
    asked_for: list[str | None] = []
    server.sni_callback = lambda _, name, __: asked_for.append(name)
    with serve(echo, tls=server) as service, _asking(_local, trusting) as client:
        assert client.get(f"https://name.example:{service.port}/").status == 200
        with pytest.raises(CertificateError, match=r"other\.example"):
            client.get(f"https://other.example:{service.port}/")
        assert len(service.log) == 1
    assert asked_for == ["name.example", "other.example"]


def test_an_unknown_authority_is_not_trusted() -> None:
    server, _ = _secured("name.example")
    with serve(echo, tls=server) as service, _asking(_local) as client:
        with pytest.raises(CertificateError, match="not valid"):
            client.get(f"https://name.example:{service.port}/")
        assert service.log == []


def test_a_server_without_tls_is_left_for_later() -> None:
    with (
        serve(echo) as service,
        _asking(_local) as client,
        pytest.raises(ServiceUnavailableError),
    ):
        client.get(f"https://name.example:{service.port}/")
