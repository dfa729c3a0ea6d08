"""The settings and the credential of a source of feeds."""

import re
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from connectors.access import Access
from connectors.connector import ServerAccess
from connectors.http_client.address_guard import AddressNotAllowedError, validate_url
from connectors.http_client.setting_types import PrivateHosts
from connectors.http_client.sign_in import Anonymous, SignIn
from connectors.retention import Retention
from connectors.setting_types import ReaderTokens

MOST_FEEDS = 50
_LONGEST_PERIOD = 36_500
_SECRET_NAME = re.compile(
    r"token|secret|passw|pwd|signature|credential|session|api.?key|auth(?!or)|^(sig|key|access)$",
    re.I,
)
"""Of a parameter in the query of an address."""


def _validate_address(url: str) -> str:
    try:
        return str(validate_url(url.strip()))
    except AddressNotAllowedError as error:
        raise ValueError(str(error)) from error


class FeedSettings(BaseModel):
    """Index the entries of feeds: RSS, Atom or JSON Feed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(description="The address of the feed: https://HOST/PATH.")
    readers: ReaderTokens = Field(
        min_length=1, description="Who may read the entries: public, user:<email>, group:<id>."
    )
    more: tuple[str, ...] = Field(
        default=(), max_length=MOST_FEEDS - 1, description="Addresses of further feeds, up to 49."
    )
    keep_days: int | None = Field(
        default=None,
        ge=1,
        le=_LONGEST_PERIOD,
        description="Days that an entry stays after the feed no longer shows it, which only shows its"
        " latest. Empty: for ever.",
    )
    largest_feed: int = Field(
        default=20_000_000,
        gt=0,
        le=100_000_000,
        description="Bytes. A larger feed is not read.",
    )
    private_hosts: PrivateHosts = Field(
        default=(),
        description="Hosts, addresses or networks (10.0.0.0/8) inside your own network that Quarry may"
        " connect to.",
    )

    @field_validator("url")
    @classmethod
    def _validate_url(cls, url: str) -> str:
        return _validate_address(url)

    @field_validator("more")
    @classmethod
    def _validate_more(cls, more: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_validate_address, more))

    def access(self) -> Access:
        return Access.to(self.readers)

    def server_access(self) -> ServerAccess:
        return ServerAccess(private_hosts=self.private_hosts)

    def feeds(self) -> Mapping[str, str]:
        """Return the addresses, each once, by what stands for them in ids."""
        found: dict[str, str] = {}
        for url in dict.fromkeys((self.url, *self.more)):
            key = feed_key(url)
            # Two feeds may differ in no more than what looks like a secret.
            found[_hash(url) if key in found else key] = url
        return found

    def retention(self) -> Retention:
        return Retention(
            prefixes=tuple(f"{key}/" for key in self.feeds()),
            period=None if self.keep_days is None else timedelta(days=self.keep_days),
        )


def feed_key(url: str) -> str:
    """Return what stands for a feed in ids: its address may hold a secret.

    It stays when a token is rotated or the server begins to encrypt, and with it all that the feed once showed. Other
    parameters tell feeds apart, such as the channel of a video site.
    """
    _, host, path, query, _ = urlsplit(url)
    shown = [one for one in query.split("&") if not _SECRET_NAME.search(one.partition("=")[0])]
    return _hash(urlunsplit(("https", host, path, "&".join(shown), "")))


def _hash(address: str) -> str:
    return sha256(address.encode()).hexdigest()[:12]


class FeedCredential(BaseModel):
    """How Quarry signs in. The credential is sent only to the host of the first address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sign_in: Annotated[SignIn, Field(discriminator="kind")] = Field(
        default=Anonymous(),
        description="No credential, a user name and password, or a request header.",
    )
