"""What a page says of itself to those who walk through the site: its links, its address, its wishes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from lxml import etree, html
from lxml.html import HtmlElement

from connectors.sources.website.robots_txt import ME
from connectors.sources.website.urls import page_address
from connectors.text_cleaning import to_one_line

_MOST_LINKS = 10_000
_WITHOUT_TEXT = re.compile(
    r"\.(jpe?g|png|gif|svgz?|webp|avif|bmp|ico|tiff?|mp[34]|m4[av]|webm|og[gv]|wav|flac|avi|mov|mkv"
    r"|css|m?js|map|woff2?|ttf|otf|eot|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|iso|deb|rpm|apk|jar)$",
    re.IGNORECASE,
)
_REFRESH = re.compile(r"\s*\d+\s*[;,]\s*url\s*=\s*['\"]?([^'\"]+)", re.IGNORECASE)
_UNINDEXED, _UNFOLLOWED = {"noindex", "none"}, {"nofollow", "none"}
_SETTINGS = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    links: tuple[str, ...] = ()
    """Addresses in their one spelling, of any host, each once, none that robots should not follow."""
    canonical: str | None = None
    """The address that the page names as its own."""
    is_unindexed: bool = False
    """It is not to be found by search."""


def head_of(root: HtmlElement, address: str, headers: httpx.Headers) -> Head:
    """Of the page that was found at `address` (Google's and RFC 6596's meaning of rel=canonical)."""
    base = _base(root, address)
    wishes = {*_of_header(headers), *_of_page(root)}
    links = dict.fromkeys(_links(root, base)) if wishes.isdisjoint(_UNFOLLOWED) else {}
    links.pop(address, None)
    return Head(
        links=tuple(links)[:_MOST_LINKS],
        canonical=_canonical(root, base),
        is_unindexed=not wishes.isdisjoint(_UNINDEXED),
    )


def head_of_file(headers: httpx.Headers) -> Head:
    """Of what is no page, so that only the server speaks for it."""
    return Head(is_unindexed=not set(_of_header(headers)).isdisjoint(_UNINDEXED))


def parsed(page: str) -> HtmlElement | None:
    """The tree of a page; none where it has nothing in it."""
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        return html.document_fromstring(page.encode("utf-8"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return None


def named(root: HtmlElement) -> Mapping[str, str]:
    """The page's `meta` elements by name in lower case, the first of each name."""
    found: dict[str, str] = {}
    for element in root.iter("meta"):
        name = element.get("name") or element.get("property") or element.get("itemprop")
        if name:
            found.setdefault(name.lower(), to_one_line(element.get("content") or ""))
    return found


def _base(root: HtmlElement, address: str) -> str:
    for element in root.iter("base"):
        if href := element.get("href"):
            return page_address(href, address) or address
    return address


def _links(root: HtmlElement, base: str) -> Iterator[str]:
    for element in root.iter("a", "area", "meta"):
        link = page_address(_target(element), base) if _target(element) else None
        if link and not _WITHOUT_TEXT.search(urlsplit(link).path):
            yield link


def _target(element: HtmlElement) -> str:
    if element.tag == "meta":
        is_refresh = (element.get("http-equiv") or "").lower() == "refresh"
        found = _REFRESH.match(element.get("content") or "") if is_refresh else None
        return found[1] if found else ""
    return "" if "nofollow" in _words(element.get("rel")) else element.get("href") or ""


def _canonical(root: HtmlElement, base: str) -> str | None:
    for element in root.iter("link"):
        if "canonical" in _words(element.get("rel")) and (href := element.get("href")):
            return page_address(href, base)
    return None


def _words(text: str | None) -> list[str]:
    return (text or "").lower().split()


def _of_page(root: HtmlElement) -> Iterator[str]:
    for element in root.iter("meta"):
        if (element.get("name") or "").strip().lower() in ("robots", ME):
            yield from re.split(r"[\s,]+", (element.get("content") or "").lower())


def _of_header(headers: httpx.Headers) -> Iterator[str]:
    """A robot's name and a colon may stand before what is meant for it alone."""
    for line in headers.get_list("x-robots-tag"):
        name = ""
        for part in line.lower().split(","):
            before, colon, after = part.strip().partition(":")
            if colon and before not in _SETTINGS:
                name, part = before.strip(), after  # noqa: PLW2901 - the rest of the part
            if name in ("", "*", ME):
                yield part.strip()
