"""Fetching a page from the public web, with sentences for what may go wrong."""

import socket
from collections.abc import Iterator, Sequence
from functools import partial
from http.cookiejar import CookieJar
from types import MappingProxyType

import httpx

from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.results import UnreadablePage
from connectors.http_client.address_guard import (
    PUBLIC_ONLY,
    AddressNotAllowedError,
    AllowedNetworks,
    Resolver,
)
from connectors.http_client.client import WebClient
from connectors.http_client.request import MEBIBYTE, RequestLimits
from connectors.http_client.response import (
    CertificateError,
    ClientError,
    NotAuthorizedError,
    Response,
    ResponseError,
    ResponseTooLarge,
    ServerError,
    ServiceUnavailableError,
    TooManyRedirects,
)
from connectors.http_client.retry_policy import RetryPolicy
from connectors.http_client.transport import resolve_host
from indexing.runtime.deadline import Deadline

LARGEST_FILE = 20 * MEBIBYTE
_LONGEST_WAIT = 60.0
"""Seconds for one page, whatever the deadline."""
_MAX_REDIRECTS = 10
_ONCE = RetryPolicy(max_attempts=1)
"""Who waits for an answer is helped more by another page than by a second try."""
_HEADERS = MappingProxyType(
    {
        "accept": "text/html,application/xhtml+xml,application/pdf;q=0.9,*/*;q=0.8",
        "accept-language": "*",
    }
)


class _ForbiddenHostError(AddressNotAllowedError):
    """The rules of domains forbid a host."""


class _UnknownHostError(OSError):
    """A name leads to no address, and will not soon."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} leads to no address")
        self.host = host


class PageFetcher:
    """Fetches pages of the public web. Thread-safe: each page has a client and cookies of its own."""

    def __init__(
        self, allowed: AllowedNetworks = PUBLIC_ONLY, resolver: Resolver = resolve_host
    ) -> None:
        """Prepare to fetch pages. The arguments are for tests: nothing else opens more than the public web."""
        self._allowed = allowed
        self._resolver = resolver

    def fetch(
        self, url: str, deadline: Deadline, domains: DomainRules = ANY_DOMAIN
    ) -> Response | UnreadablePage:
        """Send one request, and follow redirects within the domains; the response may have any status."""
        try:
            return self._get(url, deadline, domains)
        except (NotAuthorizedError, ClientError) as error:
            return error.response
        except ServiceUnavailableError as error:
            if isinstance(error, ServerError) and error.response is not None:
                return error.response
            return _explain_silence(url, error, deadline)
        except (AddressNotAllowedError, CertificateError, ResponseError) as error:
            return UnreadablePage(url, _describe_failure(url, error))

    def _get(self, url: str, deadline: Deadline, domains: DomainRules) -> Response:
        seconds = min(deadline.remaining(), _LONGEST_WAIT)
        limits = RequestLimits(
            total=seconds, read=seconds, max_bytes=LARGEST_FILE, max_redirects=_MAX_REDIRECTS
        )
        with (
            WebClient(
                allowed_networks=self._allowed,
                resolver=partial(self._resolve, domains),
                read_rate_limit=_ignore_rate_limit,
                headers=_HEADERS,
                limits=limits,
                retry_policy=_ONCE,
                # Some sites set a cookie and redirect to the same page.
                cookies=CookieJar(),
            ) as client,
            deadline.on_expiry(client.abort),
        ):
            return client.get(url)

    def _resolve(self, domains: DomainRules, host: str, port: int) -> Sequence[str]:
        """Look up each host that a request leads to, before anything is sent there.

        Raises:
            _ForbiddenHostError: it is of no permitted domain.
            OSError: no address was found.
        """
        if not domains.permits(f"https://{host}"):
            raise _ForbiddenHostError(f"Pages of {host} may not be read here.")
        try:
            return self._resolver(host, port)
        except OSError as error:
            if _may_pass(error):
                raise
            raise _UnknownHostError(host) from error


def _may_pass(error: OSError) -> bool:
    """Return whether the same look-up may succeed later: it took too long, or a name server was not reached."""
    return isinstance(error, TimeoutError) or error.errno == socket.EAI_AGAIN


def _ignore_rate_limit(response: Response) -> None:
    """Leave the response as it is: it may show a captcha."""
    del response


def get_host(url: str) -> str:
    """Return the name under which people are shown a page that was not read; never its path or its query."""
    try:
        return httpx.URL(url).host
    except (httpx.InvalidURL, ValueError):
        return ""


def _explain_silence(
    url: str, error: ServiceUnavailableError, deadline: Deadline
) -> UnreadablePage:
    unknown = next((one for one in _list_causes(error) if isinstance(one, _UnknownHostError)), None)
    if unknown is not None:
        host = get_host(f"https://{unknown.host}") or unknown.host
        return UnreadablePage(url, f"{host} does not exist: its name leads to no address.", host)
    if isinstance(error.__cause__, httpx.ReadTimeout) or not deadline.remaining():
        return UnreadablePage(url, describe_delay(url))
    return UnreadablePage(url, f"{get_host(url)} does not respond.")


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """List causes: the pool of connections raises what it caught `from None`, so that contexts count too."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def describe_delay(url: str) -> str:
    return f"{get_host(url) or 'The page'} takes too long to answer."


def _describe_failure(
    url: str, error: AddressNotAllowedError | CertificateError | ResponseError
) -> str:
    host = get_host(url)
    match error:
        # Not which address it is: what lies within a network is nobody's business.
        case _ForbiddenHostError():
            return str(error)
        case AddressNotAllowedError():
            return (
                f"{host or 'The address'} leads to what is not on the public web (http or https)."
            )
        case CertificateError():
            return f"{host} has no valid certificate, so that it may not be the site that it says."
        case ResponseTooLarge():
            return f"The page of {host} is larger than {LARGEST_FILE // MEBIBYTE} MB."
        case TooManyRedirects():
            return f"{host} redirects too often."
        case _:
            return f"What {host} sent cannot be read."
