"""The client of GitHub's GraphQL API.

Its errors are in the body under status 200. Its rate limit is counted in points, of which a query costs
one or more: docs.github.com/graphql, "Rate limits and query limits for the GraphQL API".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from connectors.http_client.api_client import find_text
from connectors.http_client.pagination import iterate_cursor_pages
from connectors.http_client.rate_limits import DEFAULT_WAIT, get_server_time
from connectors.http_client.response import (
    MalformedResponse,
    RateLimitedError,
    Response,
    ResponseError,
)
from connectors.sources.github.client import GitHubClient, read_github_rate_limit
from connectors.text_cleaning import parse_time

_LIMITS = {"RATE_LIMIT", "RATE_LIMITED"}


class GraphQLNotFoundError(ResponseError):
    """The object does not exist, or the token may not see it."""


class InvalidCursorError(ResponseError):
    """The cursor is no longer valid: start from the first page."""


class GraphQLClient:
    def __init__(self, client: GitHubClient) -> None:
        self._client = client
        self._wait: timedelta | None = None

    def query(self, query: str, variables: Mapping[str, object]) -> dict[str, Any]:
        """Return the data.

        If a query that asks for `rateLimit { remaining resetAt }` uses the last points, the next query
        raises RateLimitedError without a request.

        Raises:
            GraphQLNotFoundError: the object does not exist.
            InvalidCursorError: the cursor is no longer valid.
            SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
        """
        return self._extract_data(self._send(query, variables))

    def iterate_pages(
        self,
        query: str,
        variables: Mapping[str, object],
        get_connection: Callable[[dict[str, Any]], dict[str, Any]],
        after: str | None = None,
    ) -> Iterator[tuple[list[dict[str, Any]], str]]:
        """Yield the nodes of each page and the cursor of the next page, empty at the last.

        Args:
            query: has a variable `$after`.
            get_connection: returns the paged connection from the data.
        """
        connection: dict[str, Any] = {}

        def fetch(cursor: str | None) -> Response:
            nonlocal connection
            response = self._send(query, {**variables, "after": cursor})
            connection = get_connection(self._extract_data(response))
            return response

        for page in iterate_cursor_pages(fetch, lambda _: get_next_cursor(connection), after):
            yield get_nodes(connection), page.next or ""

    def _send(self, query: str, variables: Mapping[str, object]) -> Response:
        if self._wait is not None:
            raise RateLimitedError(
                "GitHub's GraphQL API has no points left for this token", self._wait
            )
        return self._client.query_graphql({"query": query, "variables": variables})

    def _extract_data(self, response: Response) -> dict[str, Any]:
        match response.json_object():
            case {"errors": [dict() as error, *_]}:
                raise self._to_error(response, error)
            case {"data": dict() as data}:
                self._wait = _find_wait(response, data)
                return data
            case _:
                raise MalformedResponse("GitHub's GraphQL API responds without data")

    def _to_error(self, response: Response, error: Mapping[str, Any]) -> Exception:
        kind, message = find_text(error, "type"), find_text(error, "message")[:200]
        if kind in _LIMITS or "rate limit" in message.lower():
            # The headers say how long to wait, as they do under a status of its own.
            wait = read_github_rate_limit(replace(response, status=429))
            return RateLimitedError(
                f"GitHub's GraphQL API: {message}", DEFAULT_WAIT if wait is None else wait
            )
        match kind:
            case "NOT_FOUND":
                return GraphQLNotFoundError(message)
            case "INVALID_CURSOR_ARGUMENTS":
                return InvalidCursorError(message)
            case "FORBIDDEN" | "INSUFFICIENT_SCOPES":
                path = error.get("path")
                what = ".".join(map(str, path)) if isinstance(path, list) else "this"
                return self._client.access_denied_error(what, message)
            case _:
                return MalformedResponse(
                    f"GitHub's GraphQL API: {message or 'an error without a message'}"
                )


def get_nodes(connection: object) -> list[dict[str, Any]]:
    """Return the nodes of a page; those that the token may not see are null and left out.

    Raises:
        MalformedResponse: there is no list of nodes.
    """
    match connection:
        case {"nodes": list() as found}:
            return [one for one in found if isinstance(one, dict)]
        case _:
            raise MalformedResponse("GitHub's GraphQL API returns a list without nodes")


def get_next_cursor(connection: object) -> str | None:
    """Return the cursor of the next page, None at the last.

    Raises:
        MalformedResponse: the page does not say.
    """
    match connection:
        case {"pageInfo": {"hasNextPage": False}}:
            return None
        case {"pageInfo": {"hasNextPage": True, "endCursor": str(cursor)}}:
            return cursor
        case _:
            raise MalformedResponse("GitHub's GraphQL API returns a page without pageInfo")


def _find_wait(response: Response, data: Mapping[str, Any]) -> timedelta | None:
    """Return how long to wait if no points are left. A server without limits returns null."""
    match data:
        case {"rateLimit": {"remaining": int(points), "resetAt": str(reset_at)}} if points <= 0:
            reset = parse_time(reset_at)
            wait = DEFAULT_WAIT if reset is None else reset - get_server_time(response)
            return max(wait, timedelta())
        case _:
            return None
