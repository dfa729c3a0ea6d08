"""The links of a page, and the page that it sends a browser on to."""

import re
from urllib.parse import urldefrag, urljoin, urlsplit

from lxml.html import HtmlElement

from backend.web_search.results import PageLink
from connectors.text_cleaning import to_one_line

_MOST_LINKS = 1_000
_LONGEST_ADDRESS = 2_000
_LONGEST_WORDS = 200
_LONGEST_WAIT = 10
"""Seconds. A page that is loaded again later is one that people read meanwhile."""
_REFRESH = re.compile(r"\s*(\d+)(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?['\"]?([^'\"]+)", re.IGNORECASE)


def collect_links(root: HtmlElement, url: str) -> tuple[PageLink, ...]:
    """Return the links to other pages in their order, each address once."""
    base, found = _find_base(root, url), dict[str, str]()
    here = urldefrag(url).url
    for element in root.iter("a", "area"):
        address = resolve_link(base, element.get("href") or "")
        if address is not None and address != here and not found.get(address):
            if len(found) == _MOST_LINKS and address not in found:
                break
            found[address] = to_one_line(element.text_content())[:_LONGEST_WORDS]
    return tuple(PageLink(address, words) for address, words in found.items())


def resolve_link(base: str, link: str) -> str | None:
    """Return the absolute address of a link without its fragment; None if it leads to no web page."""
    if not link.strip() or len(link) > _LONGEST_ADDRESS:
        return None
    try:
        parts = urlsplit(urldefrag(urljoin(base, link.strip())).url)
    except ValueError:
        return None
    is_web = parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc
    return parts.geturl() if is_web else None


def find_refresh(root: HtmlElement, url: str) -> str | None:
    """Return where the page sends a browser by itself, soon after it was opened."""
    base = _find_base(root, url)
    for element in root.iter("meta"):
        if (element.get("http-equiv") or "").lower() != "refresh":
            continue
        found = _REFRESH.match(element.get("content") or "")
        if found and int(found[1][:9]) <= _LONGEST_WAIT:
            return resolve_link(base, found[2])
    return None


def _find_base(root: HtmlElement, url: str) -> str:
    stated = next((element.get("href") for element in root.iter("base") if element.get("href")), "")
    return resolve_link(url, stated or "") or url
