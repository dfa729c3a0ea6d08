"""The one HTTP client of all sources.

A source makes a `WebClient` at the beginning of a run and asks everything through it:

    with WebClient(
        authorization=Authorization.bearer("https://api.example.com", token),
        pace=github_pace,
        reach=reach_of(settings.private_hosts),
    ) as client:
        for page in linked_pages(client, "https://api.example.com/items", params={"per_page": 100}):
            for item in page.answer.json_list():
                ...

The parts beside it: `connectors.http_client.response` (Answer and the errors), `connectors.http_client.address_guard` (Reach, what
may be asked), `connectors.http_client.rate_limits` (rate limits), `connectors.http_client.pagination` (pages). In a source's tests
`reach=LOOPBACK` lets it ask a local server.

What may come of a request:

- an Answer: 2xx, 304, 404, 410;
- NotAuthorised (an ActionRequiredError): 401 and 403. A source says in its own words what to do;
- Rejected (a BadAnswer): any other 4xx, with the answer in it;
- RateLimited (a TemporarilyUnavailableError): the service asks for a longer wait than is slept here;
- Unavailable (a TemporarilyUnavailableError): no answer or, as a Failing, 5xx, after the tries that `Patience` allows;
- TooLarge, Malformed (BadAnswer): more bytes than `Bounds` allow, an unreadable encoding, too many redirects;
- AddressRefused, BadCertificate (both ActionRequiredError): the address must not be asked, or proves nothing.
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
    AddressRefused,
    Reach,
    Resolver,
    checked_url,
)
from connectors.http_client.decompression import ENCODINGS, read_body
from connectors.http_client.rate_limits import PATIENCE, Pace, Patience, standard_pace
from connectors.http_client.request import (
    BOUNDS,
    MEBIBYTE,
    REDIRECTS,
    Authorization,
    Bounds,
    Origin,
    Params,
    Repeat,
    Wish,
    origin_of,
)
from connectors.http_client.response import Answer, Malformed, spoken
from connectors.http_client.retry_policy import Trouble, judged, unanswered
from connectors.http_client.transport import (
    PinnedTransport,
    public_authorities,
    system_resolver,
    within,
)

__all__ = ["BOUNDS", "MEBIBYTE", "Authorization", "Bounds", "Params", "WebClient", "origin_of"]

_USER_AGENT = f"Quarry/{version('quarry-search')}"


class WebClient(Closing):
    """One client of one run of a source. Thread-safe; to be closed."""

    def __init__(
        self,
        *,
        reach: Reach = PUBLIC_ONLY,
        authorization: Authorization | None = None,
        pace: Pace = standard_pace,
        headers: Mapping[str, str] = MappingProxyType({}),
        bounds: Bounds = BOUNDS,
        patience: Patience = PATIENCE,
        cookies: CookieJar | None = None,
        certificates: ssl.SSLContext | None = None,
        resolve: Resolver | None = None,
    ) -> None:
        """
        Args:
            reach: what may be asked besides the public internet.
            authorization: sent to its own origin only.
            pace: reads the service's rate limits.
            headers: sent with every request, to whatever origin: nothing secret.
            cookies: kept in this jar; with none, no cookie is kept or sent.
            certificates: of a service whose certificate a private authority signed.
            resolve: names to addresses; the system's where none is given.

        Raises:
            ValueError: the authorization's origin is not an http(s) address.
        """
        self._pace = pace
        self._headers = dict(headers)
        self._bounds = bounds
        self._patience = patience
        self._cancelled = threading.Event()
        self._authorised: tuple[Origin, Mapping[str, str]] | None = None
        if authorization is not None:
            self.authorise(authorization)
        trusted = certificates or public_authorities()
        # Without httpx.Client around it, which reads the target of a redirect by itself, follows no
        # rule of ours with it, and takes proxies and passwords from the environment.
        self._transport = PinnedTransport(reach, resolve or system_resolver, trusted)
        self._cookies = None if cookies is None else httpx.Cookies(cookies)

    def get(
        self,
        url: str,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        bounds: Bounds | None = None,
    ) -> Answer:
        """Headers given here go to the origin of `url` alone, but for what only describes the wish
        (Accept, Accept-Language, If-None-Match, If-Modified-Since, Range)."""
        return self._answer(self._wish("GET", url, params, headers, bounds))

    def head(
        self,
        url: str,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        bounds: Bounds | None = None,
    ) -> Answer:
        return self._answer(self._wish("HEAD", url, params, headers, bounds))

    def post(
        self,
        url: str,
        *,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        bounds: Bounds | None = None,
    ) -> Answer:
        """It is repeated only where it cannot have been done: no connection, or a rate limit.

        The body is `form` where it is given, else `json`.
        """
        wish = self._wish("POST", url, params, headers, bounds).with_body(json, form)
        return self._answer(replace(wish, repeat=Repeat.UNDONE))

    def query(
        self,
        url: str,
        *,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
        bounds: Bounds | None = None,
    ) -> Answer:
        """A POST that only asks (GraphQL, a search, Slack's methods that read): repeated like a GET."""
        return self._answer(self._wish("POST", url, params, headers, bounds).with_body(json, form))

    def authorise(self, authorization: Authorization) -> None:
        """From now on, in place of what was given before: a token that was renewed.

        Raises:
            ValueError: its origin is not an http(s) address.
        """
        try:
            self._authorised = (origin_of(authorization.origin), authorization.headers)
        except AddressRefused as error:
            raise ValueError(str(error)) from error

    def cancel(self) -> None:
        """From another thread: a wait ends at once, and from now on nothing is waited for or repeated:
        what would have been raises RateLimited or Unavailable."""
        self._cancelled.set()

    def close(self) -> None:
        self._cancelled.set()
        self._transport.close()

    def _wish(
        self,
        method: str,
        url: str,
        params: Params | None,
        headers: Mapping[str, str] | None,
        bounds: Bounds | None,
    ) -> Wish:
        target = checked_url(url)
        return Wish(
            method=method,
            url=target.copy_merge_params(params) if params else target,
            headers=headers or {},
            bounds=bounds or self._bounds,
        )

    def _answer(self, wish: Wish) -> Answer:
        """The answer, after as many tries as patience allows."""
        slept, tried = 0.0, 0
        while True:
            outcome = self._tried(wish)
            if isinstance(outcome, Answer):
                return outcome
            tried += 1
            wait = self._wait(outcome, tried)
            if (
                tried >= self._patience.tries
                or slept + wait > self._patience.longest
                or not (outcome.undone or wish.repeat is Repeat.ANY)
                or self._cancelled.wait(wait)
            ):
                raise outcome.error
            slept += wait

    def _wait(self, trouble: Trouble, tried: int) -> float:
        """Seconds. Of many clients that were told the same wait, not all come back at once."""
        if trouble.stated is None:
            return self._patience.drawn(tried)
        return trouble.stated.total_seconds() + self._patience.drawn(1)

    def _tried(self, wish: Wish) -> Answer | Trouble:
        try:
            with within(wish.bounds.whole):
                answer = self._followed(wish)
        except httpx.TransportError as error:
            return unanswered(wish.url, error)
        return judged(answer, self._pace)

    def _followed(self, wish: Wish) -> Answer:
        """Along redirects, every one checked as the first address was."""
        for _ in range(wish.bounds.redirects + 1):
            answer = self._sent(wish)
            location = answer.headers.get("location")
            if wish.bounds.redirects == 0 or not location or answer.status not in REDIRECTS:
                return answer
            wish = self._redirected(wish, wish.redirected(answer.status, location))
        raise Malformed(
            f"{spoken(wish.url)} is led to by more than {wish.bounds.redirects} redirects"
        )

    def _sent(self, wish: Wish) -> Answer:
        request = self._request(wish)
        response = self._transport.handle_request(request)
        response.request = request
        try:
            if self._cookies is not None:
                self._cookies.extract_cookies(response)
            body = read_body(response, wish.bounds.most_bytes)
        finally:
            response.close()
        return Answer(
            status=response.status_code,
            headers=response.headers,
            body=body,
            url=str(wish.url),
        )

    def _request(self, wish: Wish) -> httpx.Request:
        bounds = wish.bounds
        timeout = httpx.Timeout(bounds.read, connect=bounds.connect, pool=bounds.whole)
        request = httpx.Request(
            wish.method,
            wish.url,
            headers=self._sent_headers(wish),
            content=wish.content,
            extensions={"timeout": timeout.as_dict()},
        )
        if self._cookies is not None:
            self._cookies.set_cookie_header(request)
        return request

    def _sent_headers(self, wish: Wish) -> dict[str, str]:
        """In rising order of what counts: ours, the client's, the request's, the authorization."""
        headers = {"accept": "*/*", "accept-encoding": ENCODINGS, "user-agent": _USER_AGENT}
        for more in (self._headers, wish.headers, self._secrets(wish.url)):
            headers |= {name.lower(): value for name, value in more.items()}
        return headers

    def _secrets(self, url: httpx.URL) -> Mapping[str, str]:
        match self._authorised:
            case (origin, headers) if origin == origin_of(url):
                return headers
            case _:
                return {}

    def _redirected(self, wish: Wish, moved: Wish) -> Wish:
        downgraded = wish.url.scheme == "https" and moved.url.scheme == "http"
        if downgraded and (wish.discreet or self._secrets(wish.url)):
            raise AddressRefused(
                f"{spoken(wish.url)} leads to {spoken(moved.url)}, where nothing is encrypted;"
                " a request with a credential is not sent there"
            )
        return moved
