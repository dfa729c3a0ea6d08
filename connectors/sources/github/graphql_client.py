"""Questions to GitHub's GraphQL API: the data, or what its errors ask a person or a run to do.

Errors come under status 200, in the body. The rate limit is counted in points, of which a query costs
one or more: docs.github.com/graphql, "Rate limits and query limits for the GraphQL API".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from connectors.extraction.result import parsed_time
from connectors.http_client.pagination import cursor_pages
from connectors.http_client.rate_limits import UNSAID, github_pace, server_time
from connectors.http_client.response import Answer, BadAnswer, Malformed, RateLimited
from connectors.sources.github.client import Api

_LIMITS = {"RATE_LIMIT", "RATE_LIMITED"}


class NotThere(BadAnswer):
    """There is no such thing, or none that the token may see."""


class BadCursor(BadAnswer):
    """It leads nowhere any more: one begins from the first page."""


class Graph:
    """Asks over the connection of one run."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._wait: timedelta | None = None

    def ask(self, query: str, variables: Mapping[str, object]) -> dict[str, Any]:
        """The data. A query that asks for `rateLimit { remaining resetAt }` is the last one before the
        points come back, where it took the last of them.

        Raises:
            NotThere, BadCursor: see there.
            ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
        """
        return self._data(self._asked(query, variables))

    def pages(
        self,
        query: str,
        variables: Mapping[str, object],
        connection: Callable[[dict[str, Any]], dict[str, Any]],
        after: str | None = None,
    ) -> Iterator[tuple[list[dict[str, Any]], str]]:
        """The nodes of each page of a connection, and the cursor of the next one, empty at the last.

        Args:
            query: has a variable `$after`.
            connection: what is paged, from the data.
        """
        page: dict[str, Any] = {}

        def fetch(cursor: str | None) -> Answer:
            nonlocal page
            answer = self._asked(query, {**variables, "after": cursor})
            page = connection(self._data(answer))
            return answer

        for one in cursor_pages(fetch, lambda _: next_cursor(page), after):
            yield nodes(page), one.next or ""

    def _asked(self, query: str, variables: Mapping[str, object]) -> Answer:
        if self._wait is not None:
            raise RateLimited("GitHub's GraphQL API has no points left for this token", self._wait)
        return self._api.query({"query": query, "variables": variables})

    def _data(self, answer: Answer) -> dict[str, Any]:
        told = answer.json_object()
        match told:
            case {"errors": [dict() as error, *_]}:
                raise self._trouble(answer, error)
            case {"data": dict() as data}:
                self._wait = _until_points(answer, data)
                return data
            case _:
                raise Malformed("GitHub's GraphQL API answers without data")

    def _trouble(self, answer: Answer, error: Mapping[str, Any]) -> Exception:
        kind, said = str(error.get("type", "")), str(error.get("message", ""))[:200]
        if kind in _LIMITS or "rate limit" in said.lower():
            # With a status of its own it tells how long in the headers: it does so with this one too.
            wait = github_pace(replace(answer, status=429))
            return RateLimited(f"GitHub's GraphQL API: {said}", UNSAID if wait is None else wait)
        match kind:
            case "NOT_FOUND":
                return NotThere(said)
            case "INVALID_CURSOR_ARGUMENTS":
                return BadCursor(said)
            case "FORBIDDEN" | "INSUFFICIENT_SCOPES":
                asked = error.get("path")
                path = asked if isinstance(asked, list) else ["what was asked"]
                return self._api.refused(".".join(map(str, path)), said)
            case _:
                return Malformed(f"GitHub's GraphQL API: {said or 'an error without a message'}")


def nodes(connection: object) -> list[dict[str, Any]]:
    """Of one page; one that the token may not see is told as null. Raises Malformed."""
    match connection:
        case {"nodes": list() as found}:
            return [one for one in found if isinstance(one, dict)]
        case _:
            raise Malformed("GitHub's GraphQL API answers a list without nodes")


def next_cursor(connection: object) -> str | None:
    """Raises Malformed."""
    match connection:
        case {"pageInfo": {"hasNextPage": False}}:
            return None
        case {"pageInfo": {"hasNextPage": True, "endCursor": str(cursor)}}:
            return cursor
        case _:
            raise Malformed("GitHub's GraphQL API answers a page without what follows it")


def _until_points(answer: Answer, data: Mapping[str, Any]) -> timedelta | None:
    """How long to wait where no point is left. A server without limits tells null."""
    match data:
        case {"rateLimit": {"remaining": int(left), "resetAt": str(moment)}} if left <= 0:
            reset = parsed_time(moment)
            wait = UNSAID if reset is None else reset - server_time(answer)
            return max(wait, timedelta())
        case _:
            return None
