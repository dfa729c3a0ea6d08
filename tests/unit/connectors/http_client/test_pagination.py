import time
from collections.abc import Iterator

import httpx
import pytest

from connectors.http_client.address_guard import AddressNotAllowedError
from connectors.http_client.client import WebClient
from connectors.http_client.pagination import (
    Page,
    iterate_cursor_pages,
    iterate_linked_pages,
    parse_links,
)
from connectors.http_client.response import MalformedResponse, Response
from connectors.http_client.retry_policy import RetryPolicy
from tests.support.loopback import LOOPBACK
from tests.support.services.serving import ReceivedRequest, Reply, RequestHandler, reply_json, serve

PAGES = 5


@pytest.fixture
def client() -> Iterator[WebClient]:
    with WebClient(allowed_networks=LOOPBACK, retry_policy=RetryPolicy(max_attempts=1)) as client:
        yield client


def _linked(request: ReceivedRequest) -> Reply:
    number = int(request.param("page", "1"))
    size = request.param("size")
    link = f'</items?page={number + 1}&size={size}>; rel="next", </items?page={PAGES}>; rel="last"'
    return reply_json(
        [number, size, request.headers.get("accept")],
        headers={"Link": link} if number < PAGES else {},
    )


def test_links_are_followed_to_the_last_page(client: WebClient) -> None:
    with serve(_linked) as service:
        url = f"{service.url}/items"
        pages = list(
            iterate_linked_pages(client, url, params={"size": 7}, headers={"Accept": "a/b"})
        )
        assert [page.response.json() for page in pages] == [[n, "7", "a/b"] for n in range(1, 6)]
        assert pages[1].next == f"{url}?page=3&size=7"
        assert pages[-1].next is None


def test_any_page_is_a_place_to_resume(client: WebClient) -> None:
    with serve(_linked) as service:
        second = next(iterate_linked_pages(client, f"{service.url}/items", params={"size": 7})).next
        assert second is not None
        rest = [page.response.json()[0] for page in iterate_linked_pages(client, second)]
    assert rest == [2, 3, 4, 5]


def test_a_page_is_requested_when_it_is_needed(client: WebClient) -> None:
    with serve(_linked) as service:
        pages = iterate_linked_pages(client, f"{service.url}/items")
        next(pages)
        next(pages)
        assert len(service.log) == 2


def _leading_to(*targets: str) -> RequestHandler:
    """/0 leads to the first, /1 to the second and so on."""

    def answer(request: ReceivedRequest) -> Reply:
        return Reply(headers={"Link": f"<{targets[int(request.path[1:])]}>; rel=next"})

    return answer


@pytest.mark.parametrize(
    ("targets", "good"),
    [
        (["/0"], 0),
        (["/1", "/1"], 1),
        (["/1", "/2", "/0"], 2),
        (["/1", "http://other.example/"], 1),
        (["/1", "//127.0.0.1:8/"], 1),
    ],
    ids=repr,
)
def test_a_loop_or_another_server_ends_the_pages(
    client: WebClient, targets: list[str], good: int
) -> None:
    read: list[Page] = []
    with serve(_leading_to(*targets)) as service:
        with pytest.raises(MalformedResponse, match=r"loop|another server"):
            read.extend(iterate_linked_pages(client, f"{service.url}/0"))
        assert len(service.log) == good + 1


@pytest.mark.parametrize(
    "target", ["http://[", "http://[::1", "file:///etc/passwd", "http://0x7f.1/"]
)
def test_a_link_that_is_no_address_ends_the_pages(client: WebClient, target: str) -> None:
    with serve(_leading_to(target)) as service:
        with pytest.raises((MalformedResponse, AddressNotAllowedError)):
            list(iterate_linked_pages(client, f"{service.url}/0"))
        assert len(service.log) == 1


def test_pages_that_are_gone_end(client: WebClient) -> None:
    gone = Reply(status=404, headers={"Link": "</next>; rel=next"})
    with serve(lambda _: gone) as service:
        (page,) = iterate_linked_pages(client, service.url)
    assert (page.response.not_found, page.next) == (True, None)


def _cursored(client: WebClient, url: str, start: str | None = None) -> Iterator[Page]:
    return iterate_cursor_pages(
        lambda cursor: client.get(url, params={"cursor": cursor or ""}),
        lambda answer: str(answer.json_object()["next"]),
        start,
    )


def test_cursors_are_followed_to_the_empty_one(client: WebClient) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        number = int(request.param("cursor") or 0)
        return reply_json({"next": str(number + 1) if number < 3 else ""})

    with serve(answer) as service:
        assert [page.next for page in _cursored(client, service.url)] == ["1", "2", "3", None]
        assert [page.next for page in _cursored(client, service.url, "2")] == ["3", None]


def test_a_cursor_that_comes_back_ends_the_pages(client: WebClient) -> None:
    following = {"": "a", "a": "b", "b": "a"}
    with serve(lambda request: reply_json({"next": following[request.param("cursor")]})) as service:
        with pytest.raises(MalformedResponse, match="loop"):
            list(_cursored(client, service.url))
        assert len(service.log) == 3


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("", {}),
        ("<https://a.example/2>; rel=next", {"next": "https://a.example/2"}),
        ('<2?a=1,2;3>; title="a, b; rel=no"; REL="Next last"', {"next": "https://a.example/x/2?a=1,2;3", "last": "https://a.example/x/2?a=1,2;3"}),
        ("</1>;rel=prev,</3>;rel=next", {"prev": "https://a.example/1", "next": "https://a.example/3"}),
        ("</1>; rel=next, </2>; rel=next", {"next": "https://a.example/1"}),
        ("</1>", {}),
        ("nonsense", {}),
        ("</1>; rel", {}),
    ],
)  # fmt: skip
def test_link_headers(header: str, found: dict[str, str]) -> None:
    answer = Response(
        status=200,
        headers=httpx.Headers({"Link": header}),
        body=b"",
        url="https://a.example/x/1",
    )
    assert parse_links(answer) == found


@pytest.mark.parametrize(
    "header", ["<" * 60_000, "<a>" + ";" * 60_000, "<a>" + ' ; rel = "' * 6_000, "<a>; a=" * 8_000]
)
def test_a_senseless_link_header_costs_no_time(header: str) -> None:
    answer = Response(
        status=200, headers=httpx.Headers({"Link": header}), body=b"", url="https://a.example/"
    )
    began = time.process_time()
    parse_links(answer)
    assert time.process_time() - began < 2
