"""Lists of a site, page after page: by cursors, and by counting."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from connectors.http_client.pagination import cursor_pages, links
from connectors.http_client.response import Answer, Malformed, Rejected, TooLarge
from connectors.sources.confluence.client import Api, inside, results_of, text_of

Json: TypeAlias = dict[str, Any]

PAGE = 100
"""Items asked for at once. A site may give fewer."""

_OVERLAP = 10
"""Items that a page has in common with the one before it: so many may be removed in between."""
_BACK = 1000
"""How far to go back where nothing of the page before is found again."""
_KEPT = 5
"""Ids by which the page before is known again."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One page of a list."""

    results: list[Json]
    base: str
    """What the links in it are relative to."""
    next: str | None
    """From where the list goes on; a checkpoint may hold it."""
    is_there: bool = True
    """There is such a list."""


Listing: TypeAlias = Callable[[Api, str, Mapping[str, str | int], str], Iterator[Leaf]]
"""The pages of a list: the path, the parameters, and where to begin (empty for the beginning)."""


def by_cursor(api: Api, path: str, params: Mapping[str, str | int], start: str) -> Iterator[Leaf]:
    """As Confluence Cloud pages. A cursor that is too old to be taken begins the list anew.

    Raises:
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """

    def fetch(cursor: str | None) -> Answer:
        answer = _asked(api, path, {**params, "cursor": cursor} if cursor else params)
        return _going_on(answer) if cursor else answer

    try:
        for page in cursor_pages(fetch, next_cursor, start or None):
            start = ""
            yield _leaf(api, page.answer, page.next)
    except Rejected:
        if not start:
            raise
        yield from by_cursor(api, path, params, "")


def by_count(api: Api, path: str, params: Mapping[str, str | int], start: str) -> Iterator[Leaf]:
    """As Confluence Data Center pages. What is removed meanwhile moves up all that comes after it, so
    that each page begins a little before the end of the last: an item may come twice.

    Raises:
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """
    at, last = _position(start)
    trusted, overlap = 0, _OVERLAP
    while True:
        begin = max(0, at - overlap)
        answer = _asked(api, path, {**params, "start": begin})
        answer = _going_on(answer) if at else answer
        told = _leaf(api, answer, None)
        ids = list(map(_name, told.results))
        if last and overlap and at > trusted and last.isdisjoint(ids):
            at, last, trusted = max(0, at - _BACK), frozenset(), at
            continue
        following = _next_start(answer, begin)
        last = frozenset(ids[-_KEPT:]) or last
        end = None if following is None else f"{following}:{','.join(sorted(last))}"
        yield replace(told, next=end)
        if following is None:
            return
        at, overlap = following, min(_OVERLAP, (following - begin) // 2)


def present(leaves: Iterator[Leaf]) -> Iterator[Leaf]:
    """Of a list that must be there, the pages: that it is not would look as if all in it were gone.

    Raises:
        Malformed: it is not there.
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """
    for leaf in leaves:
        if not leaf.is_there:
            raise Malformed("Confluence says that there is no such list")
        yield leaf


def _asked(api: Api, path: str, params: Mapping[str, str | int]) -> Answer:
    """One page, of fewer items where their texts are too much for one answer."""
    most = int(params.get("limit", PAGE))
    while True:
        try:
            return api.get(path, {**params, "limit": most})
        except TooLarge:
            if most == 1:
                raise
            most = max(1, most // 4)


def _going_on(answer: Answer) -> Answer:
    """A page after another. Raises Malformed: it is not there, and with it what comes after it."""
    if answer.gone:
        raise Malformed("the list ends in a page that is not there")
    return answer


def next_cursor(answer: Answer) -> str | None:
    """Only the cursor of the link to the next page is taken from it, whatever its host."""
    if answer.gone:
        return None
    linked = links(answer).get("next") or str(inside(answer.json_object(), "_links", "next") or "")
    return _param(linked, "cursor")


def _leaf(api: Api, answer: Answer, following: str | None) -> Leaf:
    """Nothing where there is no such list."""
    if answer.gone:
        return Leaf([], api.base, None, is_there=False)
    raw = answer.json_object()
    return Leaf(results_of(raw), base_of(api, raw), following)


def base_of(api: Api, raw: Json) -> str:
    told = str(inside(raw, "_links", "base") or "")
    return told.rstrip("/") if told.startswith(("https://", "http://")) else api.base


def _next_start(answer: Answer, begin: int) -> int | None:
    if answer.gone:
        return None
    linked = inside(answer.json_object(), "_links", "next")
    if not linked:
        return None
    told = _param(str(linked), "start") or ""
    if not told.isdecimal() or int(told) <= begin:
        raise Malformed("the pages go in a circle: one is followed by itself or one before it")
    return int(told)


def _name(one: Json) -> str:
    names = ("id", "accountId", "userKey", "username", "name")
    return next(filter(None, (text_of(one, name) for name in names)), "")


def _position(start: str) -> tuple[int, frozenset[str]]:
    told, _, ids = start.partition(":")
    at = int(told) if told.isdecimal() else 0
    return at, frozenset(filter(None, ids.split(","))) if at else frozenset()


def _param(url: str, name: str) -> str | None:
    try:
        return parse_qs(urlsplit(url).query).get(name, [None])[0]
    except ValueError as error:
        raise Malformed("a page is followed by what is no address") from error
