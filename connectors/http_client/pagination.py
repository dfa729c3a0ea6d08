"""Iteration over the pages of a list, by Link headers or by cursors, with detection of loops."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

from connectors.http_client.client import WebClient
from connectors.http_client.request import Params, get_origin
from connectors.http_client.response import MalformedResponse, Response, redact_url

_PARAMETER = re.compile(r';\s*([^\s=;,]+)(?:\s*=\s*(?:"([^"]*)"|([^\s";,]*)))?')
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:"[^"]*"|[^\s";,]*))?)*)')


@dataclass(frozen=True, slots=True)
class Page:
    response: Response
    next: str | None
    """The URL or the cursor of the next page; None at the last. A checkpoint may hold it."""


def iterate_linked_pages(
    client: WebClient,
    url: str,
    *,
    params: Params | None = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[Page]:
    """Yield the page at `url` and those that follow by `Link: <…>; rel="next"` (RFC 8288).

    To resume, pass the `next` of a page as `url`, without params. A page that is not found (404, 410)
    is yielded as the last.

    Raises:
        MalformedResponse: a link leads to an earlier page, or to another origin than that of `url`.
    """
    response = client.get(url, params=params, headers=headers)
    seen = {response.url}
    while True:
        following = None if response.not_found else parse_links(response).get("next")
        if following is not None:
            _check_origin(url, following)
            _check_not_seen(following, seen)
        yield Page(response, following)
        if following is None:
            return
        response = client.get(following, headers=headers)


def iterate_cursor_pages(
    fetch: Callable[[str | None], Response],
    get_cursor: Callable[[Response], str | None],
    start: str | None = None,
) -> Iterator[Page]:
    """Yield the page that `fetch` returns for `start`, and those that follow until no cursor is left.

    Args:
        get_cursor: returns the cursor of the next page; None or empty at the last.

    Raises:
        MalformedResponse: a cursor was seen before.
    """
    seen = {start} if start else set()
    cursor = start
    while True:
        response = fetch(cursor)
        cursor = get_cursor(response) or None
        if cursor is not None:
            _check_not_seen(cursor, seen)
        yield Page(response, cursor)
        if cursor is None:
            return


def parse_links(response: Response) -> dict[str, str]:
    """Return the Link headers as relation (in lower case) to absolute URL; the first of each counts.

    Raises:
        MalformedResponse: a link is not a valid URL.
    """
    found: dict[str, str] = {}
    for target, parameters in _LINK.findall(response.headers.get("link", "")):
        for name, quoted, plain in _PARAMETER.findall(parameters):
            for relation in (quoted or plain).lower().split() if name.lower() == "rel" else ():
                found.setdefault(relation, _resolve_link(response, target.strip()))
    return found


def _check_not_seen(following: str, seen: set[str]) -> None:
    if following in seen:
        raise MalformedResponse("the pages form a loop: the next page is one that was read before")
    seen.add(following)


def _check_origin(url: str, following: str) -> None:
    if get_origin(url) != get_origin(following):
        raise MalformedResponse(
            f"{redact_url(url)} links to a next page on another server: {redact_url(following)}"
        )


def _resolve_link(response: Response, target: str) -> str:
    try:
        return urljoin(response.url, target)
    except ValueError as error:
        raise MalformedResponse(f"{redact_url(response.url)} has an invalid link") from error
