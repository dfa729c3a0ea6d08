"""The client of Confluence's REST APIs.

They are described at developer.atlassian.com: "Confluence Cloud REST API" (v1 and v2) and "Confluence
Data Center REST API".
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from connectors.errors import SourceAuthError
from connectors.http_client.api_client import (
    ApiAccount,
    ApiClient,
    check_objects,
    find_text,
    get_field,
)
from connectors.http_client.client import WebClient
from connectors.http_client.rate_limits import read_standard_rate_limit, read_wait
from connectors.http_client.request import DEFAULT_LIMITS
from connectors.http_client.response import (
    MalformedResponse,
    NotAuthorizedError,
    Response,
    ResponseError,
)

_HEADERS = MappingProxyType({"Accept": "application/json"})
_NO_REDIRECTS = replace(DEFAULT_LIMITS, max_redirects=0)
_DOWNLOAD_SECONDS = 600.0


class ConfluenceClient(ApiClient):
    """The client of one site, with a second connection without credential for anonymous requests."""

    def __init__(self, account: ApiAccount) -> None:
        super().__init__(account, headers=_HEADERS, read_rate_limit=read_atlassian_rate_limit)
        self._anonymous = WebClient(
            allowed_networks=account.allowed_networks,
            read_rate_limit=read_atlassian_rate_limit,
            headers=_HEADERS,
            limits=_NO_REDIRECTS,
        )

    def download(self, path: str, max_bytes: int) -> Response:
        limits = replace(DEFAULT_LIMITS, total=_DOWNLOAD_SECONDS, max_bytes=max_bytes)
        return self.get(path, headers={"Accept": "*/*"}, limits=limits)

    def get_object_anonymously(self, path: str) -> dict[str, Any] | None:
        """Return what an anonymous visitor gets; None if access is denied or leads to a login page.

        Raises:
            TemporarilyUnavailableError: the site is not available now.
        """
        try:
            response = self._anonymous.get(f"{self.account.api_url}{path}")
            return response.json_object() if response.status == 200 else None
        except (NotAuthorizedError, ResponseError):
            return None

    def close(self) -> None:
        super().close()
        self._anonymous.close()

    def auth_error(self, response: Response) -> SourceAuthError:
        # A server reports an invalid token with status 403 and this header.
        if "FAILED" in response.headers.get("x-seraph-loginreason", "").upper():
            return self.invalid_token_error("the login failed")
        return super().auth_error(response)


def read_atlassian_rate_limit(response: Response) -> timedelta | None:
    """Read 429, and 503, with Retry-After in seconds, else X-RateLimit-Reset as an ISO 8601 date."""
    has_reset = "x-ratelimit-reset" in response.headers
    if response.status == 429 or (response.status == 503 and has_reset):
        return read_wait(response, "retry-after", "x-ratelimit-reset")
    return read_standard_rate_limit(response)


def get_id(raw: Mapping[str, Any]) -> str:
    """Return the id, a number that some responses give as a text.

    Raises:
        MalformedResponse: there is none.
    """
    if found := find_text(raw, "id"):
        return found
    raise MalformedResponse("the response has an object without id")


def get_results(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of one page of a list.

    Raises:
        MalformedResponse: there is no list of objects.
    """
    return check_objects(get_field(raw, "results", list))
