"""What an owner says of a website."""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from connectors.http_client.setting_types import PrivateHosts
from connectors.setting_types import GlobPatterns, ReaderTokens
from connectors.sources.website.urls import Scope, globs, page_address, place_named, place_of

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS = {"host", "content-length", "connection", "transfer-encoding", "accept-encoding"}
_SENDABLE = re.compile(r"[!-~]+( [!-~]+)*")


def _addresses(urls: tuple[str, ...]) -> tuple[str, ...]:
    for url in urls:
        if page_address(url) is None:
            raise ValueError(f"{url!r} is not the address of a page: write https://HOST/PATH")
    return urls


class Crawl(BaseModel):
    """From page to page, by their links."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["crawl"] = "crawl"
    more: tuple[str, ...] = Field(default=(), description="Further pages to start from.")
    depth: int = Field(
        default=10, ge=0, le=1000, description="Links from a start page to another page, at most."
    )

    _are_pages = field_validator("more")(_addresses)


class Sitemap(BaseModel):
    """The pages that the site lists for search engines. Their links are not followed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["sitemap"] = "sitemap"
    more: tuple[str, ...] = Field(
        default=(),
        description="Further sitemaps. What an index of sitemaps names is read by itself.",
    )

    _are_pages = field_validator("more")(_addresses)


class WebsiteSettings(BaseModel):
    """Which pages of which site, and who may read them. Globs: see `connectors.files.glob_patterns`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(description="The page to start from, or the sitemap: https://HOST/PATH.")
    readers: ReaderTokens = Field(
        min_length=1, description="Who may read the pages: public, user:<email>, group:<id>."
    )
    read: Annotated[Crawl | Sitemap, Field(discriminator="kind")] = Field(
        default=Crawl(), description="Follow links, or read what sitemaps list."
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Further hosts that belong to the site, such as docs.example.com. The host of"
        " every address above belongs to it.",
    )
    include: GlobPatterns = Field(
        default=(),
        description="Globs of the paths to read, such as docs/**. Empty: all. The page to start from"
        " is followed in any case.",
    )
    exclude: GlobPatterns = Field(
        default=(), description="Globs of the paths never to ask for, such as logout."
    )
    pages: int = Field(
        default=20_000, gt=0, le=1_000_000, description="Addresses to ask for in one run, at most."
    )
    pause: float = Field(
        default=0.5,
        ge=0,
        le=60,
        description="Seconds between two requests to a host. Where its robots.txt asks for more, it"
        " gets that, up to a minute.",
    )
    largest_page: int = Field(
        default=20_000_000, gt=0, description="Bytes. A larger page or file is told as unreadable."
    )
    private_hosts: PrivateHosts = Field(
        default=(),
        description="Hosts, addresses or networks (10.0.0.0/8) inside the own network that may be"
        " asked.",
    )

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        return _addresses((url.strip(),))[0]

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(place_named, hosts))

    @model_validator(mode="after")
    def _begins_somewhere(self) -> "WebsiteSettings":
        scope = self.scope()
        for begin in self.begins():
            if scope.shuns(begin):
                raise ValueError(f"{begin} is where reading begins, and exclude leaves it out")
        return self

    def begins(self) -> tuple[str, ...]:
        """The pages to start from, or the sitemaps."""
        found = (page_address(url) for url in (self.url, *self.read.more))
        return tuple(dict.fromkeys(filter(None, found)))

    def scope(self) -> Scope:
        return Scope(
            places=frozenset({*map(place_of, self.begins()), *self.hosts}),
            include=globs(self.include),
            exclude=globs(self.exclude),
        )


class Anonymous(BaseModel):
    """Nobody needs to sign in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["none"] = "none"


class Basic(BaseModel):
    """A user name and a password, as a browser asks for them in a window of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["basic"] = "basic"
    user: str = Field(description="The user name.", pattern=r"^[^:\x00-\x1f\x7f]+$")
    password: SecretStr = Field(description="The password.")


class Header(BaseModel):
    """A header of the request, such as a token or a cookie."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["header"] = "header"
    name: str = Field(default="Authorization", description="The name of the header.")
    value: SecretStr = Field(description="What stands in it: Bearer …, Token …, a cookie.")

    @field_validator("name")
    @classmethod
    def _may_be_set(cls, name: str) -> str:
        if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
            raise ValueError(f"{name!r} is not a header that can be set")
        return name

    @field_validator("value")
    @classmethod
    def _one_line(cls, value: SecretStr) -> SecretStr:
        if not _SENDABLE.fullmatch(value.get_secret_value()):
            raise ValueError("it is one line, without letters beyond ASCII and blanks around it")
        return value


SignIn: TypeAlias = Anonymous | Basic | Header


class WebsiteCredential(BaseModel):
    """How Quarry signs in to the site; it is shown to the host of the first address only."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sign_in: Annotated[SignIn, Field(discriminator="kind")] = Field(
        default=Anonymous(), description="With nothing, a password, or a header."
    )
