"""The one HTTP client of all sources.

A source opens a `WebClient` for one run and sends all its requests with it:

    with WebClient(
        authorization=Authorization.bearer("https://api.example.com", token),
        allowed_networks=parse_allowed_networks(settings.private_hosts),
    ) as client:
        for page in iterate_linked_pages(client, "https://api.example.com/items"):
            for item in page.response.json_list():
                ...

For a JSON API see `connectors.http_client.api_client`. In a source's tests `allowed_networks=LOOPBACK`, of
`tests/support/loopback.py`, lets it connect to a local server.

The outcome of a request is one of:

- Response: 2xx, 304, 404, 410;
- NotAuthorizedError (a SourceAuthError): 401 and 403;
- ClientError (a ResponseError): any other 4xx, with the response;
- RateLimitedError (a TemporarilyUnavailableError): the service asks for a longer wait than the `RetryPolicy` allows;
- ServiceUnavailableError (a TemporarilyUnavailableError): no response or, as a ServerError, 5xx, after the
  attempts that the `RetryPolicy` allows;
- ResponseTooLarge, MalformedResponse (ResponseErrors): more bytes than `RequestLimits` allow, an unreadable
  encoding, too many redirects;
- AddressNotAllowedError, CertificateError (SourceErrors): the address is not allowed, or the certificate of the
  server is not valid.
"""

import ssl
import threading
from collections.abc import Mapping
from dataclasses import replace
from http.cookiejar import CookieJar
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import httpx

from connectors.closing import Closing
from connectors.http_client.address_guard import (
    PUBLIC_ONLY,
    AddressNotAllowedError,
    AllowedNetworks,
    Resolver,
    validate_url,
)
from connectors.http_client.decompression import ACCEPT_ENCODING, read_body
from connectors.http_client.rate_limits import RateLimitReader, read_standard_rate_limit
from connectors.http_client.request import (
    DEFAULT_LIMITS,
    REDIRECT_STATUSES,
    Authorization,
    Origin,
    Params,
    Request,
    RequestLimits,
    get_origin,
)
from connectors.http_client.response import Response, TooManyRedirects, redact_url
from connectors.http_client.retry_policy import (
    DEFAULT_RETRY_POLICY,
    FailedAttempt,
    RetryPolicy,
    classify_error,
    classify_response,
)
from connectors.http_client.transport import (
    PinnedTransport,
    load_public_authorities,
    request_timeout,
    resolve_host,
)

_USER_AGENT = f"Quarry/{version('quarry-search')}"


class WebClient(Closing):
    """The HTTP client of one run of a source. Thread-safe; to be closed."""

    def __init__(
        self,
        *,
        allowed_networks: AllowedNetworks = PUBLIC_ONLY,
        authorization: Authorization | None = None,
        read_rate_limit: RateLimitReader = read_standard_rate_limit,
        headers: Mapping[str, str] = MappingProxyType({}),
        limits: RequestLimits = DEFAULT_LIMITS,
        retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
        cookies: CookieJar | None = None,
        ssl_context: ssl.SSLContext | None = None,
        resolver: Resolver = resolve_host,
    ) -> None:
        """Prepare to send requests; a connection is opened by the first of them.

        Args:
            allowed_networks: what it may connect to in addition to the public internet.
            authorization: sent to its own origin only.
            headers: sent with every request, to any origin: nothing secret.
            cookies: the jar for cookies; with None no cookie is kept or sent.
            ssl_context: trusts the authority of a service whose certificate a private one signed.

        Raises:
            ValueError: the authorization's origin is not an http(s) address.
        """
        self._read_rate_limit = read_rate_limit
        self._headers = dict(headers)
        self._limits = limits
        self._retry_policy = retry_policy
        self._cancelled = threading.Event()
        self._authorization: tuple[Origin, Mapping[str, str]] | None = None
        if authorization is not None:
            self.set_authorization(authorization)
        # Without httpx.Client, which parses redirects before our checks and takes proxies and
        # passwords from the environment.
        self._transport = PinnedTransport(
            allowed_networks, resolver, ssl_context or load_public_authorities()
        )
        self._cookies = None if cookies is None else httpx.Cookies(cookies)

    def get(
        self,
        url: str,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        limits: RequestLimits | None = None,
    ) -> Response:
        """Send a GET request.

        Headers given here are sent to the origin of `url` only, except those that are never secret
        (Accept, Accept-Language, If-None-Match, If-Modified-Since, Range).
        """
        return self._send(self._build("GET", url, params, headers, limits))

    def head(
        self,
        url: str,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        limits: RequestLimits | None = None,
    ) -> Response:
        return self._send(self._build("HEAD", url, params, headers, limits))

    def post(
        self,
        url: str,
        *,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        limits: RequestLimits | None = None,
    ) -> Response:
        """Send `form` if given, else `json`.

        Retried only if the service cannot have processed it: no connection, or a rate limit.
        """
        request = self._build("POST", url, params, headers, limits).with_body(json, form)
        return self._send(replace(request, idempotent=False))

    def query(
        self,
        url: str,
        *,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        limits: RequestLimits | None = None,
    ) -> Response:
        """Send a POST that only reads (GraphQL, a search): retried like a GET."""
        return self._send(self._build("POST", url, params, headers, limits).with_body(json, form))

    def set_authorization(self, authorization: Authorization) -> None:
        """Replace the authorization from now on, such as for a renewed token.

        Raises:
            ValueError: its origin is not an http(s) address.
        """
        try:
            self._authorization = (get_origin(authorization.origin), authorization.headers)
        except AddressNotAllowedError as error:
            raise ValueError(str(error)) from error

    def cancel(self) -> None:
        """End waits and retries, now and from now on; may be called from another thread.

        A request that would wait or be retried raises RateLimitedError or ServiceUnavailableError.
        """
        self._cancelled.set()

    def abort(self) -> None:
        """Cancel as `cancel` does, and break off requests that run, as if the server were too slow."""
        self._cancelled.set()
        self._transport.abort()

    def close(self) -> None:
        self._cancelled.set()
        self._transport.close()

    def _build(
        self,
        method: str,
        url: str,
        params: Params | None,
        headers: Mapping[str, str] | None,
        limits: RequestLimits | None,
    ) -> Request:
        target = validate_url(url)
        return Request(
            method=method,
            url=target.copy_merge_params(params) if params else target,
            headers=headers or {},
            limits=limits or self._limits,
        )

    def _send(self, request: Request) -> Response:
        """Send the request, with as many attempts as the retry policy allows."""
        policy, slept, attempts = self._retry_policy, 0.0, 0
        while True:
            outcome = self._attempt(request)
            if isinstance(outcome, Response):
                return outcome
            attempts += 1
            delay = self._choose_delay(outcome, attempts)
            if (
                attempts >= policy.max_attempts
                or slept + delay > policy.max_total_delay
                or not (outcome.not_processed or request.idempotent)
                or self._cancelled.wait(delay)
            ):
                raise outcome.error
            slept += delay

    def _choose_delay(self, failure: FailedAttempt, attempts: int) -> float:
        if failure.stated_wait is None:
            return self._retry_policy.draw_delay(attempts)
        # Of many clients that must wait the same time, not all should come back at once.
        return failure.stated_wait.total_seconds() + self._retry_policy.draw_delay(1)

    def _attempt(self, request: Request) -> Response | FailedAttempt:
        try:
            with request_timeout(request.limits.total):
                response = self._follow_redirects(request)
        except httpx.TransportError as error:
            return classify_error(request.url, error)
        return classify_response(response, self._read_rate_limit)

    def _follow_redirects(self, request: Request) -> Response:
        """Return the response after all redirects, each checked as the first URL was."""
        max_redirects = request.limits.max_redirects
        for _ in range(max_redirects + 1):
            response = self._exchange(request)
            location = response.headers.get("location")
            if max_redirects == 0 or not location or response.status not in REDIRECT_STATUSES:
                return response
            moved = request.follow_redirect(response.status, location)
            self._check_downgrade(request, moved)
            request = moved
        raise TooManyRedirects(
            f"{redact_url(request.url)} is reached after more than {max_redirects} redirects"
        )

    def _exchange(self, request: Request) -> Response:
        """Send one request and read its response."""
        sent = self._to_httpx(request)
        received = self._transport.handle_request(sent)
        received.request = sent
        try:
            if self._cookies is not None:
                self._cookies.extract_cookies(received)
            body = read_body(received, request.limits.max_bytes)
        finally:
            received.close()
        return Response(
            status=received.status_code,
            headers=received.headers,
            body=body,
            url=str(request.url),
        )

    def _to_httpx(self, request: Request) -> httpx.Request:
        limits = request.limits
        timeout = httpx.Timeout(limits.read, connect=limits.connect, pool=limits.total)
        converted = httpx.Request(
            request.method,
            request.url,
            headers=self._merge_headers(request),
            content=request.content,
            extensions={"timeout": timeout.as_dict()},
        )
        if self._cookies is not None:
            self._cookies.set_cookie_header(converted)
        return converted

    def _merge_headers(self, request: Request) -> dict[str, str]:
        """Merge the headers; later ones win: defaults, the client's, the request's, the authorization."""
        headers = {"accept": "*/*", "accept-encoding": ACCEPT_ENCODING, "user-agent": _USER_AGENT}
        for more in (self._headers, request.headers, self._authorization_for(request.url)):
            headers |= {name.lower(): value for name, value in more.items()}
        return headers

    def _authorization_for(self, url: httpx.URL) -> Mapping[str, str]:
        match self._authorization:
            case (origin, headers) if origin == get_origin(url):
                return headers
            case _:
                return {}

    def _check_downgrade(self, request: Request, moved: Request) -> None:
        downgraded = request.url.scheme == "https" and moved.url.scheme == "http"
        if downgraded and (request.may_have_secrets or self._authorization_for(request.url)):
            raise AddressNotAllowedError(
                f"{redact_url(request.url)} redirects to {redact_url(moved.url)}, which is not"
                " encrypted; a request with a credential is not sent there"
            )
