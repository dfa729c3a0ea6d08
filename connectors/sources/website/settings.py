"""The settings and the credential of a website."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from connectors.access import Access
from connectors.connector import ServerAccess
from connectors.http_client.setting_types import PrivateHosts
from connectors.http_client.sign_in import Anonymous, SignIn
from connectors.setting_types import GlobPatterns, ReaderTokens
from connectors.sources.website.urls import Scope, host_of, normalize_url, parse_globs, parse_host


def _validate_urls(urls: tuple[str, ...]) -> tuple[str, ...]:
    for url in urls:
        if normalize_url(url) is None:
            raise ValueError(f"{url!r} is not the URL of a page: write https://HOST/PATH")
    return urls


class Crawl(BaseModel):
    """Follow the links of pages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["crawl"] = "crawl"
    more: tuple[str, ...] = Field(default=(), description="Further pages to start from.")
    depth: int = Field(
        default=10,
        ge=0,
        le=1000,
        description="The maximum number of links between a start page and another page.",
    )

    _validate_more = field_validator("more")(_validate_urls)


class Sitemap(BaseModel):
    """Read the pages that sitemaps list. Their links are not followed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["sitemap"] = "sitemap"
    more: tuple[str, ...] = Field(
        default=(),
        description="Further sitemaps. Those in a sitemap index are found automatically.",
    )

    _validate_more = field_validator("more")(_validate_urls)


class WebsiteSettings(BaseModel):
    """Index the pages of a website. In globs, * and ? match within a name, ** matches any folders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(description="The start page or the sitemap: https://HOST/PATH.")
    readers: ReaderTokens = Field(
        min_length=1, description="Who may read the pages: public, user:<email>, group:<id>."
    )
    read: Annotated[Crawl | Sitemap, Field(discriminator="kind")] = Field(
        default=Crawl(), description="Follow links, or read the pages that sitemaps list."
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Further hosts of the site, such as docs.example.com. The hosts of the URLs above"
        " belong to it already.",
    )
    include: GlobPatterns = Field(
        default=(),
        description="Globs of the paths to read, such as docs/**. Empty: all. The links of the start page"
        " are followed in any case.",
    )
    exclude: GlobPatterns = Field(
        default=(), description="Globs of the paths never to request, such as logout."
    )
    pages: int = Field(
        default=20_000,
        gt=0,
        le=1_000_000,
        description="The maximum number of URLs to request in one run.",
    )
    pause: float = Field(
        default=0.5,
        ge=0,
        le=60,
        description="Seconds between two requests to a host. A longer Crawl-delay in its robots.txt is"
        " respected, up to a minute.",
    )
    largest_page: int = Field(
        default=20_000_000,
        gt=0,
        description="Bytes. A larger page or file is reported as unreadable.",
    )
    private_hosts: PrivateHosts = Field(
        default=(),
        description="Hosts, addresses or networks (10.0.0.0/8) inside your own network that Quarry may"
        " connect to.",
    )

    @field_validator("url")
    @classmethod
    def _validate_url(cls, url: str) -> str:
        return _validate_urls((url.strip(),))[0]

    @field_validator("hosts")
    @classmethod
    def _validate_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(parse_host, hosts))

    @model_validator(mode="after")
    def _check_start_urls(self) -> "WebsiteSettings":
        scope = self.scope()
        for url in self.start_urls():
            if scope.excludes(url):
                raise ValueError(f"exclude must not match {url}, where reading begins")
        return self

    def access(self) -> Access:
        return Access.to(self.readers)

    def server_access(self) -> ServerAccess:
        return ServerAccess(private_hosts=self.private_hosts)

    def start_urls(self) -> tuple[str, ...]:
        """Return the start pages, or the sitemaps."""
        urls = (normalize_url(url) for url in (self.url, *self.read.more))
        return tuple(dict.fromkeys(filter(None, urls)))

    def scope(self) -> Scope:
        return Scope(
            hosts=frozenset({*map(host_of, self.start_urls()), *self.hosts}),
            include=parse_globs(self.include),
            exclude=parse_globs(self.exclude),
        )


class WebsiteCredential(BaseModel):
    """How Quarry signs in to the site. The credential is sent only to the host of the first URL."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sign_in: Annotated[SignIn, Field(discriminator="kind")] = Field(
        default=Anonymous(),
        description="No credential, a user name and password, or a request header.",
    )
