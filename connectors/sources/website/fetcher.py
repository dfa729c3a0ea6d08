"""Fetching pages of a site: within its hosts, as robots.txt allows, and with a delay between requests."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import TypeAlias

from connectors.errors import ActionRequiredError, SourceAuthError, TemporarilyUnavailableError
from connectors.http_client.address_guard import AddressNotAllowedError
from connectors.http_client.client import WebClient
from connectors.http_client.request import (
    DEFAULT_LIMITS,
    MEBIBYTE,
    REDIRECT_STATUSES,
    RequestLimits,
)
from connectors.http_client.response import (
    CertificateError,
    ClientError,
    MalformedResponse,
    NotAuthorizedError,
    Response,
    ResponseError,
    ResponseTooLarge,
    ServiceUnavailableError,
)
from connectors.sources.website.robots_txt import RobotsTxt
from connectors.sources.website.urls import Scope, host_of, normalize_url

NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_MAX_REDIRECTS = 10
_MAX_CRAWL_DELAY = 60.0
"""Seconds. With a longer delay, a site would take years to read."""
_RETRY_ROBOTS = timedelta(hours=1)
_ROBOTS_LIMITS = RequestLimits(max_bytes=5 * MEBIBYTE, max_redirects=5)


@dataclass(frozen=True, slots=True)
class FetchedPage:
    url: str
    """After all redirects."""
    response: Response


@dataclass(frozen=True, slots=True)
class NotModified:
    url: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no page at the URL, or it must not be fetched."""

    reason: str


@dataclass(frozen=True, slots=True)
class FetchFailed:
    """There is a page, but it cannot be read."""

    error: TemporarilyUnavailableError | ActionRequiredError | ResponseError


FetchResult: TypeAlias = FetchedPage | NotModified | NotFound | FetchFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    delay: float
    """Minimum seconds between two requests to a host."""
    max_bytes: int
    credential_hint: str = ""
    """What to do if the credential is not accepted; empty without a credential."""


class Fetcher:
    """Fetches the pages of a site during one run."""

    def __init__(self, client: WebClient, scope: Scope, options: FetchOptions) -> None:
        self.scope = scope
        self._client = client
        self._options = options
        self._page_limits = RequestLimits(
            total=DEFAULT_LIMITS.total, max_bytes=options.max_bytes, max_redirects=0
        )
        self._robots: dict[str, RobotsTxt] = {}
        self._last_requests: dict[str, float] = {}

    def fetch_page(self, url: str, headers: Mapping[str, str] = NO_HEADERS) -> FetchResult:
        """Fetch a page, and follow redirects within the site.

        Raises:
            TemporarilyUnavailableError: the site limits requests, or its robots.txt cannot be read.
            ActionRequiredError: the credential is not accepted.
        """
        visited: list[str] = []
        while url not in visited and len(visited) <= _MAX_REDIRECTS:
            if self.scope.excludes(url):
                return NotFound(
                    f"it redirects to {url}, which is not part of the site: see hosts and exclude"
                    if visited
                    else f"{url} is not part of the site: see hosts and exclude"
                )
            if not self._robots_txt(url).allows(url):
                return NotFound("robots.txt does not allow reading it")
            visited.append(url)
            response = self._get(url, headers, self._page_limits)
            if isinstance(response, FetchFailed):
                return response
            target = _redirect_target(response)
            if target is None:
                return _to_result(url, response)
            url, headers = normalize_url(target, url) or target, NO_HEADERS
        return FetchFailed(MalformedResponse(f"{visited[0]} redirects too often, or in a circle"))

    def fetch_file(self, url: str, max_bytes: int) -> FetchResult:
        """Fetch a file that is not a page, such as a sitemap; robots.txt does not apply to it."""
        if self.scope.excludes(url):
            return NotFound("it is not part of the site")
        response = self._get(url, NO_HEADERS, RequestLimits(max_bytes=max_bytes))
        return response if isinstance(response, FetchFailed) else _to_result(url, response)

    def _get(
        self, url: str, headers: Mapping[str, str], limits: RequestLimits
    ) -> Response | FetchFailed:
        self._wait(host_of(url))
        try:
            return self._client.get(url, headers=headers, limits=limits)
        except NotAuthorizedError as error:
            if error.response.status == 401 and self._options.credential_hint:
                raise SourceAuthError(f"{error}: {self._options.credential_hint}") from error
            return FetchFailed(error)
        except (
            ServiceUnavailableError,
            ResponseError,
            AddressNotAllowedError,
            CertificateError,
        ) as error:
            return FetchFailed(error)

    def _wait(self, host: str) -> None:
        robots = self._robots.get(host)
        crawl_delay = min(robots.crawl_delay if robots else 0.0, _MAX_CRAWL_DELAY)
        delay = max(self._options.delay, crawl_delay)
        last = self._last_requests.get(host)
        if last is not None and (remaining := last + delay - time.monotonic()) > 0:
            time.sleep(remaining)
        self._last_requests[host] = time.monotonic()

    def _robots_txt(self, url: str) -> RobotsTxt:
        """Fetch the robots.txt of each host once."""
        host = host_of(url)
        if host not in self._robots:
            scheme = url.partition(":")[0]
            self._robots[host] = self._fetch_robots_txt(f"{scheme}://{host}/robots.txt")
        return self._robots[host]

    def _fetch_robots_txt(self, url: str) -> RobotsTxt:
        """Fetch a robots.txt; without one everything is allowed (RFC 9309, 2.3.1)."""
        try:
            response = self._client.get(url, limits=_ROBOTS_LIMITS)
        except NotAuthorizedError:
            return RobotsTxt()
        except ClientError as error:
            if error.response.status < 500:
                return RobotsTxt()
            raise TemporarilyUnavailableError(str(error), _RETRY_ROBOTS) from error
        except (ResponseTooLarge, MalformedResponse) as error:
            raise TemporarilyUnavailableError(
                f"robots.txt cannot be read: {error}", _RETRY_ROBOTS
            ) from error
        return RobotsTxt() if response.not_found else RobotsTxt(response.body)


def _redirect_target(response: Response) -> str | None:
    return response.headers.get("location") if response.status in REDIRECT_STATUSES else None


def _to_result(url: str, response: Response) -> FetchResult:
    match response.status:
        case 200:
            return FetchedPage(url, response)
        case 304:
            return NotModified(url)
        case 404 | 410:
            return NotFound(f"there is no such page (status {response.status})")
        case status:
            return FetchFailed(MalformedResponse(f"{url} is not a page (status {status})"))
