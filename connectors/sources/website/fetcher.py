"""Asking a site for its pages as a good guest does: by its robots.txt, with pauses, within its hosts."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import TypeAlias

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
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
from connectors.sources.website.robots_txt import Robots
from connectors.sources.website.urls import Scope, page_address, path_of, place_of

NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_HOPS = 10
_LONGEST_PAUSE = 60.0
"""Seconds. A robots.txt that asks for more would have a site read in years."""
_AN_HOUR = timedelta(hours=1)
_ROBOTS = RequestLimits(max_bytes=5 * MEBIBYTE, max_redirects=5)


@dataclass(frozen=True, slots=True)
class Page:
    """It was answered, under this address after all redirects."""

    address: str
    answer: Response


@dataclass(frozen=True, slots=True)
class Same:
    """It is what it was before."""

    address: str


@dataclass(frozen=True, slots=True)
class Absent:
    """There is nothing to read here; the reason is in words."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It is there, and cannot be read now."""

    error: TemporarilyUnavailableError | ActionRequiredError | ResponseError


Fetched: TypeAlias = Page | Same | Absent | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    pause: float
    """Seconds between two requests to a host."""
    most_bytes: int
    signed_in: str = ""
    """What to do when the credential is refused; empty where there is none."""


class Fetcher:
    """One run's way to the pages of a site."""

    def __init__(self, client: WebClient, scope: Scope, manners: Manners) -> None:
        self.scope = scope
        self._client = client
        self._manners = manners
        self._bounds = RequestLimits(
            total=DEFAULT_LIMITS.total, max_bytes=manners.most_bytes, max_redirects=0
        )
        self._robots: dict[str, Robots] = {}
        self._asked: dict[str, float] = {}

    def page(self, address: str, headers: Mapping[str, str] = NO_HEADERS) -> Fetched:
        """Along redirects within the hosts.

        Raises:
            TemporarilyUnavailableError: the service asks to wait, or its robots.txt cannot be had.
            ActionRequiredError: the credential is refused.
        """
        passed: list[str] = []
        while address not in passed and len(passed) <= _HOPS:
            if self.scope.shuns(address):
                return Absent(
                    f"it leads to {address}, which is not of the site: see hosts and exclude"
                )
            if not self._robots_of(address).allows(path_of(address)):
                return Absent("its robots.txt asks not to read it")
            passed.append(address)
            answer = self._answer(address, headers, self._bounds)
            if isinstance(answer, Failed):
                return answer
            target = _target(answer)
            if target is None:
                return _judged(address, answer)
            address, headers = page_address(target, address) or target, NO_HEADERS
        return Failed(MalformedResponse(f"{passed[0]} leads in a circle, or on and on"))

    def file(self, address: str, most_bytes: int) -> Fetched:
        """What is not a page, such as a sitemap: whatever robots.txt says of it."""
        if self.scope.shuns(address):
            return Absent("it is not of the site")
        bounds = RequestLimits(max_bytes=most_bytes)
        answer = self._answer(address, NO_HEADERS, bounds)
        return answer if isinstance(answer, Failed) else _judged(address, answer)

    def _answer(
        self, address: str, headers: Mapping[str, str], bounds: RequestLimits
    ) -> Response | Failed:
        self._pause(place_of(address))
        try:
            return self._client.get(address, headers=headers, limits=bounds)
        except NotAuthorizedError as error:
            if error.response.status == 401 and self._manners.signed_in:
                raise ActionRequiredError(f"{error}: {self._manners.signed_in}") from error
            return Failed(error)
        except (
            ServiceUnavailableError,
            ResponseError,
            AddressNotAllowedError,
            CertificateError,
        ) as error:
            return Failed(error)

    def _pause(self, place: str) -> None:
        robots = self._robots.get(place)
        pause = max(self._manners.pause, min(robots.delay if robots else 0.0, _LONGEST_PAUSE))
        last = self._asked.get(place)
        if last is not None and (wait := last + pause - time.monotonic()) > 0:
            time.sleep(wait)
        self._asked[place] = time.monotonic()

    def _robots_of(self, address: str) -> Robots:
        """Asked once a run; hosts that have none allow all (RFC 9309, 2.3.1)."""
        place = place_of(address)
        if place not in self._robots:
            scheme = address.partition(":")[0]
            self._robots[place] = self._asked_robots(f"{scheme}://{place}/robots.txt")
        return self._robots[place]

    def _asked_robots(self, address: str) -> Robots:
        try:
            answer = self._client.get(address, limits=_ROBOTS)
        except NotAuthorizedError:
            return Robots()
        except ClientError as error:
            if error.response.status < 500:
                return Robots()
            raise TemporarilyUnavailableError(str(error), _AN_HOUR) from error
        except (ResponseTooLarge, MalformedResponse) as error:
            raise TemporarilyUnavailableError(
                f"its robots.txt cannot be read: {error}", _AN_HOUR
            ) from error
        return Robots() if answer.not_found else Robots.of(answer.body)


def _target(answer: Response) -> str | None:
    return answer.headers.get("location") if answer.status in REDIRECT_STATUSES else None


def _judged(address: str, answer: Response) -> Fetched:
    match answer.status:
        case 200:
            return Page(address, answer)
        case 304:
            return Same(address)
        case 404 | 410:
            return Absent(f"there is no such page (status {answer.status})")
        case status:
            return Failed(MalformedResponse(f"{address} is no page (status {status})"))
