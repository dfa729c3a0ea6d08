"""One request at one URL, and which parts of it may follow a redirect to another origin."""

import base64
import json as json_format
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias
from urllib.parse import urlencode

import httpx

from connectors.errors import InvalidInputError
from connectors.http_client.address_guard import AddressNotAllowedError, validate_url
from connectors.http_client.response import redact_url

Params: TypeAlias = Mapping[str, str | int | Sequence[str]]
"""Query parameters; they are added to those already in the URL."""

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port."""

MEBIBYTE = 1024 * 1024

_DEFAULT_PORTS = {"http": 80, "https": 443}

_NOT_SECRET = frozenset(
    {"accept", "accept-language", "if-none-match", "if-modified-since", "range", "user-agent"}
)
"""Headers that hold no secret: they are sent along with a redirect to another origin."""

_AMBIGUOUS = re.compile(r"https?:(?!//)|([a-z][a-z0-9+.-]*:)?/*\\\\", re.IGNORECASE)
"""A path to strict parsers, a host to lenient ones (WHATWG URL, 4.4)."""

_SENDABLE = re.compile(r"[!-~]+( [!-~]+)*")

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_KEEP_METHOD = frozenset({307, 308})


@dataclass(frozen=True, slots=True)
class Authorization:
    """Headers that are sent with every request to one origin, and to no other.

    A redirect to another origin is followed without them; one from https to http is refused.
    """

    origin: str
    """Scheme, host and port: "https://api.example.com". A path after it is ignored."""
    headers: Mapping[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        """Raise InvalidInputError if a header has a line break or a character that cannot be sent."""
        if not all(map(_SENDABLE.fullmatch, self.headers.values())):
            raise InvalidInputError(
                f"the credential for {self.origin} contains a blank, a line break or a character that"
                " cannot be sent: copy it again, without the text around it"
            )

    @classmethod
    def bearer(cls, origin: str, token: str) -> Self:
        return cls(origin, {"Authorization": f"Bearer {token}"})

    @classmethod
    def basic(cls, origin: str, user: str, password: str) -> Self:
        """Use a user name and a password, or an e-mail address and an API token (RFC 7617, UTF-8)."""
        pair = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        return cls(origin, {"Authorization": f"Basic {pair}"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The limits of one attempt. An attempt that takes longer counts as no response."""

    total: float = 60.0
    """Seconds for the whole attempt, redirects and body included: it ends a server that sends slowly."""
    connect: float = 10.0
    """Seconds to resolve the name and connect."""
    read: float = 30.0
    """Seconds without a byte."""
    max_bytes: int = 32 * MEBIBYTE
    """Of the decompressed body."""
    max_redirects: int = 10
    """With 0 a redirect is returned as the response (its `location` header may be relative)."""


DEFAULT_LIMITS = RequestLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, as it is sent at one hop."""

    method: str
    url: httpx.URL
    limits: RequestLimits
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes = field(default=b"", repr=False)
    idempotent: bool = True
    """Whether it may be repeated although the service may have processed it."""

    def with_body(self, json: Any, form: Mapping[str, str] | None) -> "Request":
        """Add the form as the body if given, else the JSON value, else nothing (null included)."""
        if form is not None:
            kind, content = "application/x-www-form-urlencoded", urlencode(form).encode("ascii")
        elif json is not None:
            kind, content = "application/json", json_format.dumps(json).encode("utf-8")
        else:
            return self
        return replace(self, content=content, headers={"content-type": kind, **self.headers})

    def follow_redirect(self, status: int, location: str) -> "Request":
        """Return the request for the new location, without secrets if that is another origin.

        307 and 308 keep the method and the body; the others become a GET, as in browsers
        (RFC 9110, 15.4).

        Raises:
            AddressNotAllowedError: the location is not a web address, or a body would be sent to
                another origin.
        """
        keeps_method = status in _KEEP_METHOD or self.method == "HEAD"
        moved = replace(self, url=validate_url(_join_url(self.url, location)))
        if not keeps_method:
            headers = _without_content_type(self.headers)
            moved = replace(moved, method="GET", content=b"", headers=headers)
        if get_origin(moved.url) == get_origin(self.url):
            return moved
        if moved.content:
            raise AddressNotAllowedError(
                f"{redact_url(self.url)} redirects a request with a body to {redact_url(moved.url)},"
                " another origin"
            )
        return replace(moved, headers=_without_secrets(moved.headers))

    @property
    def may_have_secrets(self) -> bool:
        return len(_without_secrets(self.headers)) < len(self.headers)


def _without_secrets(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in _NOT_SECRET}


def _without_content_type(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in headers.items() if name.lower() != "content-type"}


def _join_url(url: httpx.URL, location: str) -> httpx.URL:
    if _AMBIGUOUS.match(location):
        raise AddressNotAllowedError(f"{redact_url(url)} redirects to an ambiguous address")
    try:
        return url.join(location)
    except (httpx.InvalidURL, ValueError) as error:
        raise AddressNotAllowedError(
            f"{redact_url(url)} redirects to an invalid address: {error}"
        ) from error


def get_origin(url: str | httpx.URL) -> Origin:
    """Return scheme, host and port.

    Raises:
        AddressNotAllowedError: it is not an http(s) address.
    """
    parsed = validate_url(url)
    return (parsed.scheme, parsed.host, parsed.port or _DEFAULT_PORTS[parsed.scheme])
