"""Pages of the local web: what a server sends, and what must come out when it is read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from backend.web_search.results import Obstacle

HTML = "text/html; charset=utf-8"
BARE_HTML = "text/html"


@dataclass(frozen=True)
class Reads:
    """The page is read.

    Attributes:
        holds: Parts of its text.
        lacks: What must be nowhere in its text, title and links.
        published: Its date as ISO 8601, with an "about " before it where it is a guess.
        links: Paths or addresses that must be among its links.
        ends_at: The path that it is read from in the end, where that is another one.
    """

    title: str
    holds: tuple[str, ...]
    lacks: tuple[str, ...] = ()
    language: str | None = None
    published: str | None = None
    links: tuple[str, ...] = ()
    ends_at: str | None = None


@dataclass(frozen=True)
class IsBlocked:
    """Something stands in the place of the page."""

    obstacle: Obstacle


@dataclass(frozen=True)
class Fails:
    """The page cannot be read; `says` is part of the reason."""

    says: str


Expected: TypeAlias = Reads | IsBlocked | Fails
Body: TypeAlias = bytes | Callable[[], Iterable[bytes]]


@dataclass(frozen=True)
class LocalPage:
    """One address of the local web.

    Attributes:
        body: What is sent; a function makes a body that is large, slow or without end.
        plain: What must come out without a browser.
        rendered: What must come out of a browser, where that differs.
        headers: `{web}` and `{internal}` in their values stand for the origins of the two servers.
    """

    path: str
    body: Body
    plain: Expected
    rendered: Expected | None = None
    media_type: str | None = HTML
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_browser(self) -> Expected:
        return self.rendered or self.plain


def html(
    title: str | None,
    body: str,
    *,
    lang: str | None = None,
    head: str = "",
    encoding: str = "utf-8",
) -> bytes:
    """A whole page around a body."""
    named = "" if title is None else f"<title>{title}</title>"
    attribute = "" if lang is None else f' lang="{lang}"'
    page = f"<!DOCTYPE html><html{attribute}><head>{named}{head}</head><body>{body}</body></html>"
    return page.encode(encoding)


MENU = """<nav><ul><li>Menu of the site</li><li><a href="/about?utm_source=menu">About</a></li></ul></nav>"""
FOOTER = """<footer><p>Footer of the site. All rights reserved.</p><a href="mailto:desk@news.test">Write to us</a></footer>"""


def article(title: str, paragraphs: Iterable[str], *, more: str = "") -> str:
    """The body of a page with a menu, an article and a footer."""
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"{MENU}<main><article><h1>{title}</h1>{text}{more}</article></main>{FOOTER}"
