"""Iteration over the pages of a site's lists: by cursor, and by offset."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from connectors.http_client.api_client import find_text, find_value
from connectors.http_client.pagination import iterate_cursor_pages, parse_links
from connectors.http_client.response import (
    ClientError,
    MalformedResponse,
    Response,
    ResponseTooLarge,
)
from connectors.sources.confluence.client import ConfluenceClient, get_results

Json: TypeAlias = dict[str, Any]

PAGE_SIZE = 100
"""Items requested at once. A site may return fewer."""

_OVERLAP = 10
"""Items that a page has in common with the previous one: so many may be deleted in between."""
_BACKTRACK = 1000
"""How many items to go back if a page has nothing in common with the previous one."""
_REMEMBERED_IDS = 5
"""Ids at the end of a page by which the next one recognizes the overlap."""


@dataclass(frozen=True, slots=True)
class ListPage:
    results: list[Json]
    link_base: str
    """The URL to which the links in the results are relative."""
    next: str | None
    """The start of the next page; a checkpoint may hold it."""
    exists: bool = True
    """Whether there is such a list."""


PageIterator: TypeAlias = Callable[
    [ConfluenceClient, str, Mapping[str, str | int], str], Iterator[ListPage]
]
"""Iterates over a list at a path, with parameters, from a start (empty for the beginning)."""


def iterate_by_cursor(
    client: ConfluenceClient, path: str, params: Mapping[str, str | int], start: str
) -> Iterator[ListPage]:
    """Iterate as Confluence Cloud pages. If the cursor to start from has expired, start again.

    Raises:
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """

    def fetch(cursor: str | None) -> Response:
        response = _get_page(client, path, {**params, "cursor": cursor} if cursor else params)
        return _check_exists(response) if cursor else response

    try:
        for page in iterate_cursor_pages(fetch, get_next_cursor, start or None):
            start = ""
            yield _to_page(client, page.response, page.next)
    except ClientError:
        if not start:
            raise
        yield from iterate_by_cursor(client, path, params, "")


def iterate_by_offset(
    client: ConfluenceClient, path: str, params: Mapping[str, str | int], start: str
) -> Iterator[ListPage]:
    """Iterate as Confluence Data Center pages.

    An item that is deleted meanwhile shifts all that follow. Therefore each page begins a little before
    the end of the previous one, and an item may come twice.

    Raises:
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    offset, last_ids = _parse_start(start)
    trusted, overlap = 0, _OVERLAP
    while True:
        begin = max(0, offset - overlap)
        response = _get_page(client, path, {**params, "start": begin})
        response = _check_exists(response) if offset else response
        page = _to_page(client, response, None)
        ids = list(map(_identify, page.results))
        if last_ids and overlap and offset > trusted and last_ids.isdisjoint(ids):
            offset, last_ids, trusted = max(0, offset - _BACKTRACK), frozenset(), offset
            continue
        following = _get_next_offset(response, begin)
        last_ids = frozenset(ids[-_REMEMBERED_IDS:]) or last_ids
        end = None if following is None else f"{following}:{','.join(sorted(last_ids))}"
        yield replace(page, next=end)
        if following is None:
            return
        offset, overlap = following, min(_OVERLAP, (following - begin) // 2)


def require_list(pages: Iterator[ListPage]) -> Iterator[ListPage]:
    """Yield the pages of a list that must exist: a missing one must not look like an empty one.

    Raises:
        MalformedResponse: the list does not exist.
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    for page in pages:
        if not page.exists:
            raise MalformedResponse("Confluence responds that there is no such list")
        yield page


def _get_page(client: ConfluenceClient, path: str, params: Mapping[str, str | int]) -> Response:
    """Request one page, with fewer items if the response is too large."""
    limit = int(params.get("limit", PAGE_SIZE))
    while True:
        try:
            return client.get(path, {**params, "limit": limit})
        except ResponseTooLarge:
            if limit == 1:
                raise
            limit = max(1, limit // 4)


def _check_exists(response: Response) -> Response:
    """Raise MalformedResponse if a page after the first does not exist; the items after it are missing."""
    if response.not_found:
        raise MalformedResponse("the list ends with a page that does not exist")
    return response


def get_next_cursor(response: Response) -> str | None:
    """Return the cursor in the link to the next page; the host of the link does not matter."""
    if response.not_found:
        return None
    link = parse_links(response).get("next")
    return _get_param(link or find_text(response.json_object(), "_links", "next"), "cursor")


def _to_page(client: ConfluenceClient, response: Response, following: str | None) -> ListPage:
    if response.not_found:
        return ListPage([], client.account.api_url, None, exists=False)
    raw = response.json_object()
    return ListPage(get_results(raw), get_link_base(client, raw), following)


def get_link_base(client: ConfluenceClient, raw: Json) -> str:
    base = find_text(raw, "_links", "base")
    is_url = base.startswith(("https://", "http://"))
    return base.rstrip("/") if is_url else client.account.api_url


def _get_next_offset(response: Response, begin: int) -> int | None:
    if response.not_found:
        return None
    link = find_value(response.json_object(), "_links", "next")
    if not link:
        return None
    offset = _get_param(str(link), "start") or ""
    if not offset.isdecimal() or int(offset) <= begin:
        raise MalformedResponse("the pages form a loop: the next page is one that was read before")
    return int(offset)


def _identify(item: Json) -> str:
    names = ("id", "accountId", "userKey", "username", "name")
    return next(filter(None, (find_text(item, name) for name in names)), "")


def _parse_start(start: str) -> tuple[int, frozenset[str]]:
    offset, _, ids = start.partition(":")
    number = int(offset) if offset.isdecimal() else 0
    return number, frozenset(filter(None, ids.split(","))) if number else frozenset()


def _get_param(url: str, name: str) -> str | None:
    try:
        return parse_qs(urlsplit(url).query).get(name, [None])[0]
    except ValueError as error:
        raise MalformedResponse("the link to the next page is not a valid URL") from error
