"""The client of GitHub's REST API.

The meaning of statuses and headers is described at docs.github.com/rest: "Troubleshooting the REST API",
"Rate limits for the REST API" and "Authenticating to the REST API".
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from connectors.errors import SourceAuthError
from connectors.http_client.api_client import (
    AccessDeniedError,
    ApiAccount,
    ApiClient,
    check_objects,
    get_error_message,
)
from connectors.http_client.pagination import Page, iterate_linked_pages
from connectors.http_client.rate_limits import read_standard_rate_limit, read_wait
from connectors.http_client.request import Params
from connectors.http_client.response import (
    ClientError,
    MalformedResponse,
    Response,
    redact_url,
)

PAGE_SIZE = 100
"""The maximum of GitHub."""

_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_BLOCKED = 451
_GRAPHQL_LIMIT = re.compile(rb'"type"\s*:\s*"RATE_LIMITED"')


class GitHubClient(ApiClient):
    def __init__(self, account: ApiAccount) -> None:
        super().__init__(account, headers=_HEADERS, read_rate_limit=read_github_rate_limit)

    def query_graphql(self, body: Mapping[str, object]) -> Response:
        """Return the response of the GraphQL API, whose errors are in the body."""
        return self.query(get_graphql_url(self.account.api_url), body)

    def iterate_pages(self, path: str, params: Params) -> Iterator[Page]:
        """Yield the pages of a list; one page with status 404 or 410 if there is no such list.

        Raises:
            MalformedResponse: a later page is not found; the items after it would be missing.
        """
        with self.translate_errors():
            params = {**params, "per_page": PAGE_SIZE}
            url = f"{self.account.api_url}{path}"
            for number, page in enumerate(iterate_linked_pages(self._client, url, params=params)):
                if number and page.response.not_found:
                    raise MalformedResponse(f"{path} ends with a page that does not exist")
                self.record_time(page.response)
                yield page

    def list_objects(self, path: str, params: Params | None = None) -> Iterator[dict[str, Any]]:
        """Yield the objects of all pages; none if there is no such list."""
        for page in self.iterate_pages(path, params or {}):
            if not page.response.not_found:
                yield from check_objects(page.response.json_list())

    def list_existing(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the objects of all pages of a list that must exist.

        Raises:
            MalformedResponse: there is no such list.
        """
        for page in self.iterate_pages(path, {}):
            if page.response.not_found:
                raise MalformedResponse(f"GitHub responds that there is no {path}")
            yield from check_objects(page.response.json_list())

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        try:
            with super().translate_errors():
                yield
        except ClientError as error:
            if error.response.status != _BLOCKED:
                raise
            url = redact_url(error.response.url)
            raise AccessDeniedError(f"{url} is blocked for legal reasons (451)") from error

    def auth_error(self, response: Response) -> SourceAuthError:
        if response.status == 401:
            return super().auth_error(response)
        sso = response.headers.get("x-github-sso", "")
        if sso.startswith("required"):
            url = sso.partition("url=")[2] or "GitHub, Settings, Personal access tokens"
            return SourceAuthError(
                "the organization requires the token to be authorized for single sign-on: open"
                f" {url} and authorize it, or {self.account.renewal_hint}"
            )
        permissions = response.headers.get("x-accepted-github-permissions", "")
        needs = f"; it needs {permissions}" if permissions else ""
        return self.access_denied_error(
            redact_url(response.url), f"{get_error_message(response)}{needs}"
        )


def read_github_rate_limit(response: Response) -> timedelta | None:
    """Read 403 and 429 of the primary limit (X-RateLimit-Remaining: 0 with X-RateLimit-Reset) and of the
    secondary limits, and a GraphQL error of type RATE_LIMITED under status 200."""
    if not _is_rate_limit(response):
        return read_standard_rate_limit(response)
    is_primary = response.headers.get("x-ratelimit-remaining") == "0"
    names = ("retry-after", "x-ratelimit-reset") if is_primary else ("retry-after",)
    return read_wait(response, *names)


def _is_rate_limit(response: Response) -> bool:
    match response.status:
        case 200:
            return bool(_GRAPHQL_LIMIT.search(response.body[:4096]))
        case 403 | 429:
            return (
                "retry-after" in response.headers
                or response.headers.get("x-ratelimit-remaining") == "0"
                or b"rate limit" in response.body[:4096].lower()
            )
        case _:
            return False


def get_graphql_url(api_url: str) -> str:
    """Return the URL beside the REST API: a GitHub Enterprise Server has /api/v3 and /api/graphql."""
    return f"{api_url.removesuffix('/v3') if api_url.endswith('/api/v3') else api_url}/graphql"
