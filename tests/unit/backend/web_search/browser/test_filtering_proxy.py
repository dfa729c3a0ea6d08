"""The proxy of the browser, asked over sockets: it connects where the address guard allows, and nowhere else."""

import base64
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web_search.browser.filtering_proxy import FilteringProxy
from backend.web_search.browser.page_traffic import PageTraffic, TrafficLimits
from backend.web_search.domains import ANY_DOMAIN, DomainRules
from connectors.http_client.address_guard import (
    PUBLIC_ONLY,
    AddressNotAllowedError,
    resolve_addresses,
)
from tests.support.fake_internet import PUBLIC, Answer, FakeInternet, fake_internet

LARGE = 3_000_000
GET = b"GET http://news.test/page HTTP/1.1\r\n"


def _site(path: str) -> Answer | None:
    match path:
        case "/page":
            return Answer(b"a page")
        case "/large":
            return Answer(b"x" * LARGE)
        case _:
            return None


@pytest.fixture(scope="module")
def internet() -> Iterator[FakeInternet]:
    with fake_internet(_site) as internet:
        yield internet


@pytest.fixture(autouse=True)
def _forget(internet: FakeInternet) -> None:
    internet.dialled.clear()
    internet.looked_up.clear()
    internet.requests.clear()


@contextmanager
def _open_page(
    internet: FakeInternet,
    limits: TrafficLimits | None = None,
    domains: DomainRules = ANY_DOMAIN,
) -> Iterator[tuple[FilteringProxy, PageTraffic]]:
    limits = limits or TrafficLimits(connect_seconds=2.0, head_seconds=2.0)
    with (
        FilteringProxy(internet.resolve, internet.dial, limits) as proxy,
        proxy.open_page(domains) as traffic,
    ):
        yield proxy, traffic


def _authorization(traffic: PageTraffic) -> bytes:
    pair = f"{traffic.name}:{traffic.password}".encode()
    return b"Proxy-Authorization: Basic " + base64.b64encode(pair) + b"\r\n"


def _connect(proxy: FilteringProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def _receive_all(client: socket.socket) -> bytes:
    received = bytearray()
    while data := client.recv(65_536):
        received += data
    return bytes(received)


def _ask(proxy: FilteringProxy, request: bytes) -> bytes:
    with _connect(proxy) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        try:
            return _receive_all(client)
        except ConnectionResetError:
            return b""


def _request(proxy: FilteringProxy, traffic: PageTraffic, line: bytes) -> bytes:
    with _connect(proxy) as client:
        client.sendall(line + b"\r\n" + _authorization(traffic) + b"\r\n")
        return _receive_all(client)


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_a_page_of_the_public_web_is_passed_on(internet: FakeInternet) -> None:
    with _open_page(internet) as (proxy, traffic):
        answer = _request(proxy, traffic, GET.strip())
    assert (_status(answer), answer.endswith(b"a page")) == (200, True)
    assert internet.dialled == [(PUBLIC, 80)]
    assert internet.requests == ["news.test/page"]


@pytest.mark.parametrize("port", [80, 443])
def test_a_tunnel_passes_bytes_both_ways(internet: FakeInternet, port: int) -> None:
    with _open_page(internet) as (proxy, traffic), _connect(proxy) as client:
        line = b"CONNECT news.test:%d HTTP/1.1\r\n" % port
        client.sendall(line + _authorization(traffic) + b"\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert _receive_all(client).endswith(b"a page")
    assert internet.dialled == [(PUBLIC, port)]


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "loop.test", "loop6.test", "mapped.test", "intranet.test", "both.test"),
        *("metadata.test", "127.0.0.1", "10.1.2.3", "169.254.169.254", "100.100.100.200"),
        *("0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[fd00:ec2::254]", "[64:ff9b::7f00:1]"),
        *("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "192.168.1.1", "224.0.0.1"),
    ],
)
def test_nothing_inside_is_connected_to(internet: FakeInternet, host: str) -> None:
    with _open_page(internet) as (proxy, traffic):
        for line in (f"CONNECT {host}:443 HTTP/1.1", f"GET http://{host}/ HTTP/1.1"):
            assert _status(_request(proxy, traffic, line.encode())) == 403
        assert internet.dialled == []


def test_the_reason_is_kept_for_the_page(internet: FakeInternet) -> None:
    with _open_page(internet) as (proxy, traffic):
        _request(proxy, traffic, b"CONNECT intranet.test:443 HTTP/1.1")
        assert traffic.find_refusal("intranet.test:443") == "it is not in the public internet"
        assert traffic.find_refusal("news.test:443") is None


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"CONNECT news.test:22 HTTP/1.1", 403),
        (b"CONNECT news.test:8080 HTTP/1.1", 403),
        (b"GET http://news.test:8080/ HTTP/1.1", 403),
        (b"GET https://news.test/ HTTP/1.1", 403),
        (b"CONNECT unknown.test:443 HTTP/1.1", 502),
        (b"GET / HTTP/1.1\r\nHost: news.test", 403),
        (b"POST http://news.test/ HTTP/1.1\r\nTransfer-Encoding: chunked", 400),
    ],
)
def test_other_requests_are_refused(internet: FakeInternet, line: bytes, status: int) -> None:
    with _open_page(internet) as (proxy, traffic):
        assert _status(_request(proxy, traffic, line)) == status
    assert internet.dialled == []


@pytest.mark.parametrize(
    "line",
    [
        b"GET http://news.test/ HTTP/1.1",
        b"GET http://deep.NEWS.test/ HTTP/1.1",
        b"CONNECT www.news.test:443 HTTP/1.1",
        b"CONNECT 93.184.216.34:443 HTTP/1.1",
        b"GET http://93.184.216.34/ HTTP/1.1",
    ],
)
def test_what_is_blocked_is_neither_looked_up_nor_connected_to(
    internet: FakeInternet, line: bytes
) -> None:
    blocked = DomainRules.of((), ("news.test",))
    with _open_page(internet, domains=blocked) as (proxy, traffic):
        assert _status(_request(proxy, traffic, line)) == 403
        assert _status(_request(proxy, traffic, b"GET http://rebind.test/page HTTP/1.1")) == 200
    assert internet.dialled == [(PUBLIC, 80)]
    assert set(internet.looked_up) == {"rebind.test"}


def test_a_name_is_looked_up_once_and_its_address_kept(internet: FakeInternet) -> None:
    with _open_page(internet) as (proxy, traffic):
        first = _request(proxy, traffic, b"GET http://rebind.test/page HTTP/1.1")
        assert (_status(first), internet.looked_up["rebind.test"]) == (200, 1)
        assert _status(_request(proxy, traffic, b"GET http://rebind.test/page HTTP/1.1")) == 403
    assert internet.dialled == [(PUBLIC, 80)]


def test_who_knows_no_password_of_a_page_is_refused(internet: FakeInternet) -> None:
    with _open_page(internet) as (proxy, traffic):
        name = base64.b64encode(f"{traffic.name}:wrong".encode())
        for credentials in (b"", b"Proxy-Authorization: Basic " + name + b"\r\n"):
            answer = _ask(proxy, GET + credentials + b"\r\n")
            assert _status(answer) == 407
            assert b'Proxy-Authenticate: Basic realm="Quarry"\r\n' in answer
    assert internet.dialled == []


def test_the_password_ends_with_the_page(internet: FakeInternet) -> None:
    with FilteringProxy(internet.resolve, internet.dial) as proxy:
        with proxy.open_page(ANY_DOMAIN) as traffic:
            pass
        assert _status(_request(proxy, traffic, GET.strip())) == 407


def test_a_second_request_of_a_connection_goes_nowhere(internet: FakeInternet) -> None:
    with _open_page(internet) as (proxy, traffic):
        first = GET + _authorization(traffic) + b"\r\n"
        smuggled = b"GET http://127.0.0.1/smuggled HTTP/1.1\r\n\r\n"
        assert _status(_ask(proxy, first + smuggled)) == 400
        with _connect(proxy) as client:
            client.sendall(first)
            assert _receive_all(client).endswith(b"a page")
    assert internet.requests == ["news.test/page"]


def test_a_request_that_never_arrives_ends(internet: FakeInternet) -> None:
    limits = TrafficLimits(head_seconds=0.3)
    with _open_page(internet, limits) as (proxy, _), _connect(proxy) as client:
        stop = threading.Event()
        dripping = threading.Thread(target=_drip, args=(client, stop))
        dripping.start()
        received = client.recv(100)
        stop.set()
        dripping.join()
        assert _status(received) == 408


def _drip(client: socket.socket, stop: threading.Event) -> None:
    """Send a byte now and then, so that no single wait is long."""
    try:
        while not stop.wait(0.05):
            client.sendall(b"G")
    except OSError:
        return


def test_a_head_without_end_is_refused(internet: FakeInternet) -> None:
    with _open_page(internet) as (proxy, _), _connect(proxy) as client:
        client.sendall(b"GET http://news.test/ HTTP/1.1\r\n" + b"X: " + b"a" * 70_000)
        assert _status(client.recv(100)) == 431


def test_a_page_passes_no_more_bytes_than_it_may(internet: FakeInternet) -> None:
    limits = TrafficLimits(bytes=500_000)
    with _open_page(internet, limits) as (proxy, traffic):
        line = b"GET http://news.test/large HTTP/1.1"
        assert len(_request(proxy, traffic, line)) <= 500_000
        assert _request(proxy, traffic, GET.strip()) == b""


def test_a_large_response_comes_whole(internet: FakeInternet) -> None:
    with _open_page(internet) as (proxy, traffic):
        answer = _request(proxy, traffic, b"GET http://news.test/large HTTP/1.1")
    assert len(answer.partition(b"\r\n\r\n")[2]) == LARGE


def test_a_page_has_no_more_connections_than_it_may(internet: FakeInternet) -> None:
    with _open_page(internet, TrafficLimits(connections=2)) as (proxy, traffic):
        with ExitStack() as stack:
            for _ in range(2):
                client = stack.enter_context(_connect(proxy))
                client.sendall(
                    b"CONNECT news.test:443 HTTP/1.1\r\n" + _authorization(traffic) + b"\r\n"
                )
                assert _status(client.recv(100)) == 200
            assert _status(_request(proxy, traffic, GET.strip())) == 503
        _wait_until(lambda: _status(_request(proxy, traffic, GET.strip())) == 200)


def _wait_until(holds: object) -> None:
    assert callable(holds)
    until = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_the_connections_of_a_page_end_with_it(internet: FakeInternet) -> None:
    with FilteringProxy(internet.resolve, internet.dial) as proxy:
        with proxy.open_page(ANY_DOMAIN) as traffic:
            client = _connect(proxy)
            client.sendall(
                b"CONNECT news.test:443 HTTP/1.1\r\n" + _authorization(traffic) + b"\r\n"
            )
            assert _status(client.recv(100)) == 200
        with client:
            assert client.recv(100) == b""


def test_a_connection_that_is_idle_ends(internet: FakeInternet) -> None:
    limits = TrafficLimits(idle_seconds=0.2)
    with _open_page(internet, limits) as (proxy, traffic), _connect(proxy) as client:
        client.sendall(b"CONNECT news.test:443 HTTP/1.1\r\n" + _authorization(traffic) + b"\r\n")
        assert _status(client.recv(100)) == 200
        assert client.recv(100) == b""


def test_a_closed_proxy_accepts_nothing(internet: FakeInternet) -> None:
    proxy = FilteringProxy(internet.resolve, internet.dial)
    proxy.close()
    with pytest.raises(OSError, match="refused"):
        _connect(proxy)


_ADDRESSES = st.ip_addresses().map(str)
_HOSTS = st.sampled_from(["a.test", "b.test", "127.0.0.1", "[::1]", "0x7f.1", "10.0.0.1:80"])


@given(host=_HOSTS | _ADDRESSES, addresses=st.lists(_ADDRESSES, min_size=1, max_size=3))
def test_it_never_connects_where_the_guard_refuses(host: str, addresses: list[str]) -> None:
    dialled: list[str] = []

    def dial(address: str, port: int, seconds: float) -> socket.socket:
        dialled.append(address)
        raise OSError(f"{address}:{port} is not there within {seconds} s")

    name = f"[{host}]" if ":" in host and "[" not in host else host
    with (
        FilteringProxy(lambda *_: addresses, dial) as proxy,
        proxy.open_page(ANY_DOMAIN) as traffic,
    ):
        _request(proxy, traffic, f"CONNECT {name}:443 HTTP/1.1".encode())
        _request(proxy, traffic, f"GET http://{name}/ HTTP/1.1".encode())
    for address in dialled:
        assert _is_public(address)


def _is_public(address: str) -> bool:
    try:
        return resolve_addresses(address, 443, PUBLIC_ONLY, lambda *_: []) == [address]
    except AddressNotAllowedError:
        return False
