"""Reading the links, the canonical URL and the robots tags of a page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from lxml.html import HtmlElement

from connectors.sources.website.robots_txt import USER_AGENT
from connectors.sources.website.urls import normalize_url

_MAX_LINKS = 10_000
_IGNORED_FILES = re.compile(
    r"\.(jpe?g|png|gif|svgz?|webp|avif|bmp|ico|tiff?|mp[34]|m4[av]|webm|og[gv]|wav|flac|avi|mov|mkv"
    r"|css|m?js|map|woff2?|ttf|otf|eot|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|iso|deb|rpm|apk|jar)$",
    re.IGNORECASE,
)
_REFRESH_URL = re.compile(r"\s*\d+\s*[;,]\s*url\s*=\s*['\"]?([^'\"]+)", re.IGNORECASE)
_NOINDEX, _NOFOLLOW = {"noindex", "none"}, {"nofollow", "none"}
_RULES_WITH_VALUE = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageHead:
    links: tuple[str, ...] = ()
    """Normalized URLs of any host, without duplicates and without nofollow links."""
    canonical: str | None = None
    """The canonical URL that the page states (RFC 6596)."""
    noindex: bool = False
    """Search engines must not show the page."""


def parse_head(root: HtmlElement, url: str, headers: httpx.Headers) -> PageHead:
    base = _base_url(root, url)
    rules = {*_header_rules(headers), *_page_rules(root)}
    links = dict.fromkeys(_iter_links(root, base)) if rules.isdisjoint(_NOFOLLOW) else {}
    links.pop(url, None)
    return PageHead(
        links=tuple(links)[:_MAX_LINKS],
        canonical=_canonical_url(root, base),
        noindex=not rules.isdisjoint(_NOINDEX),
    )


def parse_file_head(headers: httpx.Headers) -> PageHead:
    """Read what the headers say of a file that is not a page."""
    return PageHead(noindex=not set(_header_rules(headers)).isdisjoint(_NOINDEX))


def _base_url(root: HtmlElement, url: str) -> str:
    for element in root.iter("base"):
        if href := element.get("href"):
            return normalize_url(href, url) or url
    return url


def _iter_links(root: HtmlElement, base: str) -> Iterator[str]:
    for element in root.iter("a", "area", "meta"):
        target = _link_target(element)
        link = normalize_url(target, base) if target else None
        if link and not _IGNORED_FILES.search(urlsplit(link).path):
            yield link


def _link_target(element: HtmlElement) -> str:
    if element.tag == "meta":
        is_refresh = (element.get("http-equiv") or "").lower() == "refresh"
        found = _REFRESH_URL.match(element.get("content") or "") if is_refresh else None
        return found[1] if found else ""
    return "" if "nofollow" in _split_words(element.get("rel")) else element.get("href") or ""


def _canonical_url(root: HtmlElement, base: str) -> str | None:
    for element in root.iter("link"):
        if "canonical" in _split_words(element.get("rel")) and (href := element.get("href")):
            return normalize_url(href, base)
    return None


def _split_words(text: str | None) -> list[str]:
    return (text or "").lower().split()


def _page_rules(root: HtmlElement) -> Iterator[str]:
    for element in root.iter("meta"):
        if (element.get("name") or "").strip().lower() in ("robots", USER_AGENT):
            yield from re.split(r"[\s,]+", (element.get("content") or "").lower())


def _header_rules(headers: httpx.Headers) -> Iterator[str]:
    """Yield the rules of X-Robots-Tag; a name and a colon may limit those that follow to one robot."""
    for line in headers.get_list("x-robots-tag"):
        name = ""
        for part in line.lower().split(","):
            before, colon, after = part.strip().partition(":")
            if colon and before not in _RULES_WITH_VALUE:
                name, part = before.strip(), after  # noqa: PLW2901 - the rest of the part
            if name in ("", "*", USER_AGENT):
                yield part.strip()
