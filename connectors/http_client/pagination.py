"""Page after page, by the services' links or cursors, without going in circles."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

from connectors.http_client.client import Params, WebClient, origin_of
from connectors.http_client.response import Answer, Malformed, spoken

_PARAMETER = re.compile(r';\s*([^\s=;,]+)(?:\s*=\s*(?:"([^"]*)"|([^\s";,]*)))?')
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:"[^"]*"|[^\s";,]*))?)*)')


@dataclass(frozen=True, slots=True)
class Page:
    answer: Answer
    next: str | None
    """The address or the cursor of the page after it; none at the last. A checkpoint may hold it."""


def linked_pages(
    client: WebClient,
    url: str,
    *,
    params: Params | None = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[Page]:
    """From the page at `url` along `Link: <…>; rel="next"` (RFC 8288), to the last.

    To resume give the `next` of a page as `url`, without params. A page that is gone (404, 410) is
    yielded, and is the last.

    Raises:
        Malformed: a link leads to a page that was there before, or away from the origin of `url`.
    """
    answer = client.get(url, params=params, headers=headers)
    seen = {answer.url}
    while True:
        following = None if answer.gone else links(answer).get("next")
        if following is not None:
            _check_origin(url, following)
            _check_new(following, seen)
        yield Page(answer, following)
        if following is None:
            return
        answer = client.get(following, headers=headers)


def cursor_pages(
    fetch: Callable[[str | None], Answer],
    next_of: Callable[[Answer], str | None],
    start: str | None = None,
) -> Iterator[Page]:
    """From the page that `fetch` gives for `start`, to the one whose `next_of` is none or empty.

    Raises:
        Malformed: a cursor comes back that was there before.
    """
    seen = {start} if start else set()
    cursor = start
    while True:
        answer = fetch(cursor)
        cursor = next_of(answer) or None
        if cursor is not None:
            _check_new(cursor, seen)
        yield Page(answer, cursor)
        if cursor is None:
            return


def _check_new(following: str, seen: set[str]) -> None:
    if following in seen:
        raise Malformed("the pages go in a circle: one is followed by a page that was there before")
    seen.add(following)


def _check_origin(url: str, following: str) -> None:
    if origin_of(url) != origin_of(following):
        raise Malformed(f"{spoken(url)} names a next page on another server: {spoken(following)}")


def links(answer: Answer) -> dict[str, str]:
    """The Link headers: relation, in lower case, to absolute address. The first of a relation counts.

    Raises:
        Malformed: one of them is no address.
    """
    found: dict[str, str] = {}
    for target, parameters in _LINK.findall(answer.headers.get("link", "")):
        for name, quoted, plain in _PARAMETER.findall(parameters):
            for relation in (quoted or plain).lower().split() if name.lower() == "rel" else ():
                found.setdefault(relation, _absolute(answer, target.strip()))
    return found


def _absolute(answer: Answer, target: str) -> str:
    try:
        return urljoin(answer.url, target)
    except ValueError as error:
        raise Malformed(f"{spoken(answer.url)} has a link to what is no address") from error
