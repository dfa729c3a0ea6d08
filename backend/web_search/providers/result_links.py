"""Where a link of a result page leads, behind the redirects with which search engines count clicks."""

import base64
import binascii
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

from lxml.html import HtmlElement

_PARAMETERS = {"q", "url", "u", "uddg", "target", "to", "dest", "rurl", "imgrefurl"}
"""Names of the parameter that holds the address."""
_ATTRIBUTES = ("data-url", "data-href", "data-landurl", "mu")
"""Names of attributes of the link, or of an element around it, that hold the address."""
_IN_PATH = re.compile(r"/RU=(https?[^/]+)/")
_REDIRECT = re.compile(r"/(url|link|redirect|l|ck|r|goto|out|click)(/|$)")
_AD_PATH = re.compile(r"/(aclk|aclick|y\.js|pagead)\b")
_AD_HOST = re.compile(r"(^|\.)(googleadservices|doubleclick|adservice\.\w+)\.")
_ENCODED = re.compile(r"a1[A-Za-z0-9_-]{8,}")
"""An address in Base64, after a mark of its version."""
_NEAREST = 6
"""Elements around a link whose attributes are looked at."""


@dataclass(frozen=True, slots=True)
class Target:
    url: str
    is_of_engine: bool
    """It leads to the engine itself, or by a redirect to where only the engine knows."""


def resolve_target(link: HtmlElement, page_url: str) -> Target | None:
    """Return where a link leads; None where that is no page, an advertisement, or a page of the engine's own search."""
    try:
        url = urljoin(page_url, link.get("href", "").strip())
        parts, page = urlsplit(url), urlsplit(page_url)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.hostname or _is_ad(url):
        return None
    if _site(parts.hostname) != _site(page.hostname or ""):
        return Target(url, is_of_engine=False)
    hidden = _find_hidden(url) or _find_attribute(link)
    if hidden is not None:
        return None if _is_ad(hidden) else Target(hidden, is_of_engine=False)
    is_elsewhere = parts.hostname != page.hostname or _REDIRECT.search(parts.path)
    return Target(url, is_of_engine=True) if is_elsewhere else None


def _is_ad(url: str) -> bool:
    parts = urlsplit(url)
    return bool(_AD_PATH.search(parts.path) or _AD_HOST.search(parts.hostname or ""))


def _site(host: str) -> str:
    return ".".join(host.split(".")[-2:])


def _find_hidden(url: str) -> str | None:
    """Return the address that a redirect of the engine holds."""
    parts = urlsplit(url)
    if in_path := _IN_PATH.search(parts.path):
        return unquote(in_path[1])
    for name, value in parse_qsl(parts.query):
        if name.lower() in _PARAMETERS and (found := _decode(value)):
            return found
    return None


def _decode(value: str) -> str | None:
    if value.startswith(("http://", "https://")):
        return value
    if not _ENCODED.fullmatch(value):
        return None
    encoded = value[2:]
    try:
        text = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return text if text.startswith(("http://", "https://")) else None


def _find_attribute(link: HtmlElement) -> str | None:
    for each in (link, *list(link.iterancestors())[:_NEAREST]):
        for name in _ATTRIBUTES:
            if each.get(name, "").startswith(("http://", "https://")):
                return str(each.get(name))
    return None
