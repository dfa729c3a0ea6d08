"""What is asked of a service: one request at one address, and what of it may go to another."""

import base64
import json as json_format
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Self, TypeAlias
from urllib.parse import urlencode

import httpx

from connectors.errors import ActionRequiredError
from connectors.http_client.address_guard import AddressRefused, checked_url
from connectors.http_client.response import spoken

Params: TypeAlias = Mapping[str, str | int | Sequence[str]]
"""Of the query; they are added to what stands in the address already."""

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port."""

MEBIBYTE = 1024 * 1024

_DEFAULT_PORTS = {"http": 80, "https": 443}

_PLAIN = frozenset(
    {"accept", "accept-language", "if-none-match", "if-modified-since", "range", "user-agent"}
)
"""Headers that hold no secret: they go along with a redirect to another origin."""

_AMBIGUOUS = re.compile(r"https?:(?!//)|([a-z][a-z0-9+.-]*:)?/*\\\\", re.IGNORECASE)
"""A path to strict readers, a host to lenient ones (WHATWG URL, 4.4)."""

_SENDABLE = re.compile(r"[!-~]+( [!-~]+)*")

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEP_METHOD = frozenset({307, 308})


@dataclass(frozen=True, slots=True)
class Authorization:
    """Headers that are sent to one origin only, on every request to it, and nowhere else.

    A redirect to another origin goes without them; one from https to http is refused.
    """

    origin: str
    """Scheme, host and port: "https://api.example.com". A path behind it is ignored."""
    headers: Mapping[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        """Raises ActionRequiredError: a header has a line break or a letter that cannot be sent."""
        if not all(map(_SENDABLE.fullmatch, self.headers.values())):
            raise ActionRequiredError(
                f"the credential for {self.origin} has a blank, a line break or a letter in it that"
                " cannot be sent: copy it anew, without what stands around it"
            )

    @classmethod
    def bearer(cls, origin: str, token: str) -> Self:
        return cls(origin, {"Authorization": f"Bearer {token}"})

    @classmethod
    def basic(cls, origin: str, user: str, password: str) -> Self:
        """User name and password, or an e-mail address and an API token (RFC 7617, in UTF-8)."""
        pair = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        return cls(origin, {"Authorization": f"Basic {pair}"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Of one request. A try that takes longer counts as no answer."""

    whole: float = 60.0
    """Seconds of one try in all, redirects and body with it: it ends a server that drips bytes."""
    connect: float = 10.0
    """Seconds to resolve the name and connect."""
    read: float = 30.0
    """Seconds without a byte."""
    most_bytes: int = 32 * MEBIBYTE
    """Of the body, unpacked."""
    redirects: int = 10
    """Followed at most; with 0 a redirect is an answer (its `location` header may be relative)."""


BOUNDS = Bounds()


class Repeat(Enum):
    """After which troubles a request may be sent once more."""

    ANY = auto()
    UNDONE = auto()
    """Only those after which it has surely not been done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One request, as it is sent at one hop."""

    method: str
    url: httpx.URL
    bounds: Bounds
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes = field(default=b"", repr=False)
    repeat: Repeat = Repeat.ANY

    def with_body(self, json: Any, form: Mapping[str, str] | None) -> "Wish":
        """The form where there is one, else the JSON, else nothing (JSON's null included)."""
        if form is not None:
            kind, content = "application/x-www-form-urlencoded", urlencode(form).encode("ascii")
        elif json is not None:
            kind, content = "application/json", json_format.dumps(json).encode("utf-8")
        else:
            return self
        return replace(self, content=content, headers={"content-type": kind, **self.headers})

    def redirected(self, status: int, location: str) -> "Wish":
        """What is asked instead, with nothing secret in it where that is of another origin.

        307 and 308 keep the method and the body, the others make a GET of it, as browsers do
        (RFC 9110, 15.4).

        Raises:
            AddressRefused: the new address is not one, or a body would go to another origin.
        """
        keeps = status in _KEEP_METHOD or self.method == "HEAD"
        moved = replace(self, url=checked_url(_joined(self.url, location)))
        if not keeps:
            moved = replace(moved, method="GET", content=b"", headers=_without_body(self.headers))
        if origin_of(moved.url) == origin_of(self.url):
            return moved
        if moved.content:
            raise AddressRefused(
                f"{spoken(self.url)} sends what was posted to it on to {spoken(moved.url)}"
            )
        return replace(moved, headers=_plain(moved.headers))

    @property
    def discreet(self) -> bool:
        """It has headers that may be secret."""
        return len(_plain(self.headers)) < len(self.headers)


def _plain(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in _PLAIN}


def _without_body(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in headers.items() if name.lower() != "content-type"}


def _joined(url: httpx.URL, location: str) -> httpx.URL:
    if _AMBIGUOUS.match(location):
        raise AddressRefused(f"{spoken(url)} leads to an address that is not spelt as one")
    try:
        return url.join(location)
    except (httpx.InvalidURL, ValueError) as error:
        raise AddressRefused(f"{spoken(url)} leads to what is no web address: {error}") from error


def origin_of(url: str | httpx.URL) -> Origin:
    """Raises AddressRefused: it is not an http(s) address."""
    parsed = checked_url(url)
    return (parsed.scheme, parsed.host, parsed.port or _DEFAULT_PORTS[parsed.scheme])
