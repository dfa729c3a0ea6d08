"""Normalizing URLs, and deciding which of them belong to the site."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urljoin, urlsplit

from connectors.files.paths import GlobPattern, matches_any

_MAX_LENGTH = 2_000
"""Longer URLs usually come from sites that generate links endlessly."""
_MAX_SEGMENTS = 30
_MAX_REPEATED_SEGMENTS = 3
"""How often a path may contain the same segment: wrong relative links repeat theirs endlessly."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})?")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_PATH_CHARACTERS = "%/:@!$&'()*+,;=~"
_QUERY_CHARACTERS = _PATH_CHARACTERS + "?"
_PATH_SESSION_ID = re.compile(r";(jsessionid|phpsessid|sid|cfid|cftoken)=[^/;]*", re.IGNORECASE)
_TRACKING_PARAMETER = re.compile(
    r"utm_\w+|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|twclid|ttclid|igshid|mc_[ce]id"
    r"|_ga|_gl|_hs(enc|mi)|jsessionid|phpsessid|aspsessionid\w*|cfid|cftoken",
    re.IGNORECASE,
)


def normalize_url(link: str, base: str = "") -> str | None:
    """Return the normalized URL of a link on the page `base` (RFC 3986, 6.2.2).

    Scheme and host are in lower case; the default port, dot segments, the fragment, and parameters that
    only track visitors are removed; escapes are uniform. Return None for links that do not lead to a page:
    other schemes, URLs with a user name, URLs that are too long or not valid.
    """
    if len(link) > _MAX_LENGTH:
        return None
    try:
        parts = urlsplit(urljoin(base, link.strip()))
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
        path = _normalize_path(parts.path)
        query = _normalize_query(parts.query)
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not host or "@" in parts.netloc:
        return None
    host = f"[{host}]" if ":" in host else host
    authority = host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
    url = f"{parts.scheme}://{authority}{path}{query}"
    return None if len(url) > _MAX_LENGTH or _looks_endless(path) else url


def _normalize_path(path: str) -> str:
    kept: list[str] = []
    *folders, last = _quote(_PATH_SESSION_ID.sub("", path), _PATH_CHARACTERS).split("/")
    for part in folders[1:]:
        _apply_segment(kept, part)
    if last in (".", ".."):
        _apply_segment(kept, last)
        last = ""
    return "/" + "".join(f"{part}/" for part in kept) + last


def _apply_segment(kept: list[str], part: str) -> None:
    match part:
        case ".":
            return
        case "..":
            del kept[-1:]
        case _:
            kept.append(part)


def _normalize_query(query: str) -> str:
    kept = [part for part in query.split("&") if part and not _is_tracking(part)]
    return "?" + _quote("&".join(kept), _QUERY_CHARACTERS) if kept else ""


def _is_tracking(part: str) -> bool:
    return any(
        _TRACKING_PARAMETER.fullmatch(name) for name, _ in parse_qsl(part, keep_blank_values=True)
    )


def _quote(text: str, safe: str) -> str:
    return quote(_ESCAPE.sub(_normalize_escape, text), safe=safe)


def _normalize_escape(match: re.Match[str]) -> str:
    if match[1] is None:
        return "%25"
    letter = chr(int(match[1], 16))
    return letter if _UNRESERVED.fullmatch(letter) else f"%{match[1].upper()}"


def _looks_endless(path: str) -> bool:
    parts = [part for part in path.split("/") if part]
    repeated = max(map(parts.count, parts), default=0)
    return len(parts) > _MAX_SEGMENTS or repeated > _MAX_REPEATED_SEGMENTS


def host_of(url: str) -> str:
    """Return the host, with the port unless it is the default one."""
    return urlsplit(url).netloc


def path_segments(url: str) -> tuple[str, ...]:
    """Return the decoded segments of the path."""
    return tuple(unquote(part) for part in urlsplit(url).path.split("/") if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which URLs belong to the site."""

    hosts: frozenset[str]
    """As `host_of` returns them."""
    include: tuple[GlobPattern, ...] = ()
    """Globs of paths. Empty: all."""
    exclude: tuple[GlobPattern, ...] = ()

    def excludes(self, url: str) -> bool:
        """Return whether a URL must never be requested."""
        return host_of(url) not in self.hosts or matches_any(self.exclude, path_segments(url))

    def includes(self, url: str) -> bool:
        """Return whether a URL may become a document; others may be requested for their links."""
        is_included = not self.include or matches_any(self.include, path_segments(url))
        return is_included and not self.excludes(url)


def parse_host(text: str) -> str:
    """Normalize a host as a person writes it.

    Raises:
        ValueError: not a valid host.
    """
    url = normalize_url(f"https://{text.strip()}/")
    if url is None or re.search(r"[/\s@?#]", text.strip()):
        raise ValueError(f"{text!r} is not a host: write www.example.com, or with a port host:8443")
    return host_of(url)


def parse_globs(patterns: Iterable[str]) -> tuple[GlobPattern, ...]:
    return tuple(map(GlobPattern.parse, patterns))
