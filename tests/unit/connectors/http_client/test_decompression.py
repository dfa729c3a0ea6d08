import gzip
import zlib
from collections.abc import Callable, Iterator

import httpx
import pytest

from connectors.http_client.client import WebClient
from connectors.http_client.decompression import Decompressor
from connectors.http_client.request import MEBIBYTE, RequestLimits
from connectors.http_client.response import MalformedResponse, ResponseTooLarge
from connectors.http_client.retry_policy import RetryPolicy
from tests.support.loopback import LOOPBACK
from tests.support.services.serving import ReceivedRequest, Reply, ScriptedHandler, serve


@pytest.fixture
def client() -> Iterator[WebClient]:
    with WebClient(allowed_networks=LOOPBACK, retry_policy=RetryPolicy(max_attempts=1)) as client:
        yield client


def test_a_body_over_the_bound_is_too_large(client: WebClient) -> None:
    within = RequestLimits(max_bytes=100)
    replies = [
        Reply(body=b"x" * 100),
        Reply(body=b"x" * 101),
        Reply(body=iter([b"x" * 60, b"x" * 41])),
    ]
    with serve(ScriptedHandler(replies)) as service:
        assert len(client.get(service.url, limits=within).body) == 100
        for _ in range(2):
            with pytest.raises(ResponseTooLarge):
                client.get(service.url, limits=within)
        assert len(service.log) == 3


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": lambda data: zlib.compress(data, wbits=-15),
}


@pytest.mark.parametrize("encoding", PACKED)
def test_packed_bodies_are_unpacked_to_the_bound(client: WebClient, encoding: str) -> None:
    body = PACKED[encoding](b"a" * 5000)
    with serve(lambda _: Reply(headers={"Content-Encoding": encoding}, body=body)) as service:
        assert client.get(service.url, limits=RequestLimits(max_bytes=5000)).body == b"a" * 5000
        with pytest.raises(ResponseTooLarge):
            client.get(service.url, limits=RequestLimits(max_bytes=4999))


def test_gzip_in_parts_is_read_to_its_end(client: WebClient) -> None:
    body = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0\0"
    with serve(lambda _: Reply(headers={"Content-Encoding": "gzip"}, body=body)) as service:
        assert client.get(service.url).text == "one two"


def test_a_bomb_is_stopped_early(client: WebClient) -> None:
    part = gzip.compress(bytes(64 * MEBIBYTE))
    sent: list[int] = []

    def pieces() -> Iterator[bytes]:
        for _ in range(1000):
            sent.append(len(part))
            yield part

    def answer(request: ReceivedRequest) -> Reply:
        del request
        return Reply(headers={"Content-Encoding": "gzip"}, body=pieces())

    with serve(answer) as service, pytest.raises(ResponseTooLarge):
        client.get(service.url, limits=RequestLimits(max_bytes=MEBIBYTE))
    # Sockets hold some hundred kilobytes that nobody reads any more.
    assert sum(sent) < 16 * MEBIBYTE


def test_no_more_is_unpacked_than_may_be() -> None:
    bomb = gzip.compress(bytes(64 * MEBIBYTE))
    assert len(bomb) < MEBIBYTE / 8
    assert len(Decompressor(httpx.URL("https://a.example/"))(bomb, 1000)) == 1001


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"a" * 500)[:-12]),
        ("gzip", b"nothing packed"),
        ("br", b"x"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"a"))),
    ],
    ids=["cut", "not packed", "unknown", "twice"],
)
def test_what_cannot_be_unpacked_is_malformed(
    client: WebClient, encoding: str, body: bytes
) -> None:
    reply = Reply(headers={"Content-Encoding": encoding}, body=body)
    with (
        serve(lambda _: reply) as service,
        pytest.raises(MalformedResponse, match=r"decompressed|encoding"),
    ):
        client.get(service.url)
