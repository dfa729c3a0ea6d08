"""What the open web yields: results of search engines, and pages that were read."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Freshness(StrEnum):
    """How old a result may be at most."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True)
class WebQuery:
    """What a search engine is asked.

    Attributes:
        text: The query as it is sent.
        limit: The most results that are wanted, at least 1.
        freshness: How old they may be; `None` for any age.
        language: The language that they should be in (ISO 639-1, such as `en`); `None` for any.
        sites: The domains that they should be of; empty for any.
    """

    text: str
    limit: int
    freshness: Freshness | None = None
    language: str | None = None
    sites: tuple[str, ...] = ()

    @property
    def text_with_sites(self) -> str:
        """The query with its domains in the syntax that search engines share."""
        if not self.sites:
            return self.text
        return f"{self.text} ({' OR '.join(f'site:{site}' for site in self.sites)})"


@dataclass(frozen=True)
class WebResult:
    """One result of a search engine, as that engine describes it.

    Attributes:
        summary: What the engine shows of the page, without markup.
        published: When the page was published, where the engine says so.
        provider: The name of the provider that returned it.
    """

    title: str
    url: str
    summary: str
    published: datetime | None
    provider: str


@dataclass(frozen=True)
class PageDate:
    """When a page was published.

    Attributes:
        is_guess: Whether it was concluded from the text or the address instead of being declared.
    """

    at: datetime
    is_guess: bool


@dataclass(frozen=True)
class PageLink:
    """A link of a page: an absolute address, without its fragment, and the words that lead there."""

    url: str
    text: str


@dataclass(frozen=True)
class WebPage:
    """A page that was read.

    Attributes:
        url: The address that it was read from, after redirects.
        text: What it says: plain text with line breaks, without navigation and advertisements.
        language: ISO 639-1, `None` where it cannot be recognized.
    """

    url: str
    title: str
    text: str
    published: PageDate | None
    language: str | None
    links: tuple[PageLink, ...] = ()


class Obstacle(StrEnum):
    """What a site shows in place of the page."""

    CAPTCHA = "captcha"
    CONSENT = "consent"
    LOGIN = "login"
    SCRIPTS = "scripts"
    EMPTY = "empty"
    NOT_FOUND = "not found"


@dataclass(frozen=True)
class BlockedPage:
    """A page whose site shows something else in its place. It is named to people and never cited."""

    url: str
    obstacle: Obstacle


@dataclass(frozen=True)
class UnreadablePage:
    """A page that could not be read.

    Attributes:
        reason: A sentence that says what happened, for people and for models.
        unknown_host: The name that leads to no address, so that no page of it can be read; empty where it has one.
    """

    url: str
    reason: str
    unknown_host: str = ""


PageOutcome = WebPage | BlockedPage | UnreadablePage
