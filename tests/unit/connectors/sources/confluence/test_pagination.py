"""Lists whose pages move, are short, or come back, while they are read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from connectors.http_client.api_client import ApiAccount
from connectors.http_client.request import MEBIBYTE
from connectors.http_client.response import ClientError, MalformedResponse
from connectors.sources.confluence.client import ConfluenceClient
from connectors.sources.confluence.pagination import (
    PageIterator,
    iterate_by_cursor,
    iterate_by_offset,
    require_list,
)
from tests.support.loopback import LOOPBACK
from tests.support.services.serving import ReceivedRequest, Reply, reply_json, serve


@contextmanager
def api(answer: Callable[[ReceivedRequest], Reply]) -> Iterator[ConfluenceClient]:
    with serve(answer) as server:
        account = ApiAccount(
            service="Confluence",
            source="wiki",
            api_url=server.url,
            token="x",
            token_page="there",
            allowed_networks=LOOPBACK,
        )
        with ConfluenceClient(account) as made:
            yield made


class Shelf:
    """A list that is counted."""

    def __init__(self, count: int, most: int = 100) -> None:
        self.ids = list(range(count))
        self.most = most
        self.then: list[Callable[[], None]] = []

    def __call__(self, request: ReceivedRequest) -> Reply:
        start, limit = int(request.param("start")), min(int(request.param("limit")), self.most)
        shown = [{"id": one} for one in self.ids[start : start + limit]]
        more = start + limit < len(self.ids)
        links = {"next": f"/list?start={start + limit}&limit={limit}"} if more else {}
        if self.then:
            self.then.pop(0)()
        return reply_json({"results": shown, "_links": links})


def ids(shelf: Shelf, start: str = "") -> list[int]:
    with api(shelf) as one:
        return [
            each["id"]
            for leaf in iterate_by_offset(one, "/list", {}, start)
            for each in leaf.results
        ]


@pytest.mark.parametrize("most", [1, 2, 7, 20, 50, 100])
def test_a_list_paged_by_offset_is_complete_with_short_pages(most: int) -> None:
    found = ids(Shelf(150, most))
    assert list(dict.fromkeys(found)) == list(range(150))


@pytest.mark.parametrize("page", [0, 1, 3, 4])
@pytest.mark.parametrize("gone", [3, 10, 40, 99])
def test_a_deletion_meanwhile_hides_no_other_item(gone: int, page: int) -> None:
    shelf = Shelf(400)

    def remove() -> None:
        del shelf.ids[:gone]

    shelf.then = [*[_nothing] * page, remove]
    found = set(ids(shelf))
    assert found >= set(range(gone, 400))


def _nothing() -> None:
    return


def test_a_list_resumes_although_many_items_were_deleted_meanwhile() -> None:
    shelf = Shelf(400)
    with api(shelf) as one:
        leaves = iterate_by_offset(one, "/list", {}, "")
        first = next(leaves)
        second = next(leaves)
    assert second.next is not None
    del shelf.ids[20:90]
    seen = {each["id"] for leaf in (first, second) for each in leaf.results}
    assert seen | set(ids(shelf, second.next)) == set(range(400))


def test_a_loop_in_a_list_paged_by_offset_is_an_error() -> None:
    answer = reply_json({"results": [{"id": 1}], "_links": {"next": "/list?start=0"}})
    with api(lambda _: answer) as one, pytest.raises(MalformedResponse, match="loop"):
        list(iterate_by_offset(one, "/list", {}, ""))


def test_of_a_link_to_the_next_page_only_the_cursor_counts() -> None:
    def answer(request: ReceivedRequest) -> Reply:
        if request.param("cursor") == "a b":
            return reply_json({"results": [{"id": 2}]})
        headers = {"Link": '<https://elsewhere.example/list?cursor=a%20b>; rel="next"'}
        return reply_json({"results": [{"id": 1}]}, headers=headers)

    with api(answer) as one:
        leaves = list(iterate_by_cursor(one, "/list", {"limit": 5}, ""))
    assert [(leaf.results, leaf.next) for leaf in leaves] == [
        ([{"id": 1}], "a b"),
        ([{"id": 2}], None),
    ]


def test_an_expired_cursor_starts_the_list_again() -> None:
    def answer(request: ReceivedRequest) -> Reply:
        if request.param("cursor"):
            return reply_json({"message": "no such cursor"}, status=400)
        return reply_json({"results": [{"id": 1}]})

    with api(answer) as one:
        (leaf,) = iterate_by_cursor(one, "/list", {}, "of last year")
    assert leaf.results == [{"id": 1}]
    with api(lambda _: reply_json({}, status=400)) as one, pytest.raises(ClientError):
        list(iterate_by_cursor(one, "/list", {}, ""))


def test_a_list_that_is_gone_is_empty() -> None:
    with api(lambda _: reply_json({}, status=404)) as one:
        for several in (iterate_by_offset, iterate_by_cursor):
            (leaf,) = several(one, "/list", {}, "")
            assert (leaf.results, leaf.next) == ([], None)


@pytest.mark.parametrize("body", [[], {"results": 1}, {"results": [1]}, {}])
def test_a_response_that_is_not_a_list_is_an_error(body: object) -> None:
    with api(lambda _: reply_json(body)) as one, pytest.raises(MalformedResponse):
        list(iterate_by_offset(one, "/list", {}, ""))


@pytest.mark.parametrize("several", [iterate_by_offset, iterate_by_cursor])
def test_a_later_page_that_is_not_there_does_not_end_the_list(several: PageIterator) -> None:
    first = {
        "results": [{"id": one} for one in range(100)],
        "_links": {"next": "/list?start=100&cursor=c"},
    }

    def answer(request: ReceivedRequest) -> Reply:
        later = request.param("cursor") or request.param("start", "0") != "0"
        return reply_json({}, status=404) if later else reply_json(first)

    with (
        api(answer) as one,
        pytest.raises(MalformedResponse, match="ends with a page that does not exist"),
    ):
        list(several(one, "/list", {}, ""))


@pytest.mark.parametrize("several", [iterate_by_offset, iterate_by_cursor])
def test_a_list_that_must_be_there_is_not_empty_where_it_is_gone(several: PageIterator) -> None:
    with (
        api(lambda _: reply_json({}, status=404)) as one,
        pytest.raises(MalformedResponse, match="no such list"),
    ):
        list(require_list(several(one, "/list", {}, "")))


@pytest.mark.parametrize("several", [iterate_by_offset, iterate_by_cursor])
def test_texts_that_are_too_much_for_one_answer_come_in_smaller_pages(
    several: PageIterator,
) -> None:
    heavy = b" " * (33 * MEBIBYTE)

    def answer(request: ReceivedRequest) -> Reply:
        limit = int(request.param("limit"))
        start = int(request.param("cursor") or request.param("start", "0"))
        links = {"next": f"/list?start={start + limit}&cursor={start + limit}"}
        shown = [{"id": number} for number in range(start, min(start + limit, 30))]
        reply = reply_json({"results": shown, "_links": links if start + limit < 30 else {}})
        return Reply(body=heavy) if limit > 10 else reply

    with api(answer) as one:
        leaves = list(several(one, "/list", {}, ""))
    assert {each["id"] for leaf in leaves for each in leaf.results} == set(range(30))
