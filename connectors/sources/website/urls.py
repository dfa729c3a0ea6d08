"""The addresses of pages: one spelling for each page, and which of them belong to the site."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urljoin, urlsplit

from connectors.files.glob_patterns import GlobPattern, matches_any

LONGEST = 2_000
"""Characters of an address; longer ones are made by programs that have lost their way."""

_MOST_FOLDERS = 30
_MOST_ALIKE = 3
"""How often a part of a path may stand in it: links that are resolved wrongly repeat theirs for ever."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})?")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_PATH = "%/:@!$&'()*+,;=~"
_QUERY = _PATH + "?"
_SESSION_IN_PATH = re.compile(r";(jsessionid|phpsessid|sid|cfid|cftoken)=[^/;]*", re.IGNORECASE)
_TRACKING = re.compile(
    r"utm_\w+|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|twclid|ttclid|igshid|mc_[ce]id"
    r"|_ga|_gl|_hs(enc|mi)|jsessionid|phpsessid|aspsessionid\w*|cfid|cftoken",
    re.IGNORECASE,
)


def page_address(link: str, base: str = "") -> str | None:
    """The one spelling of the page that `link`, found on the page `base`, leads to (RFC 3986, 6.2.2).

    Scheme and host in lower case, no default port, no dot segments, escapes in one form, no fragment,
    and none of the parameters that only follow or recognise a visitor; the others keep their order.
    None where it is no page: another scheme, a user name in it, too long, not an address at all.
    """
    if len(link) > LONGEST:
        return None
    try:
        parts = urlsplit(urljoin(base, link.strip()))
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
        path = _path(parts.path)
        query = _query(parts.query)
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not host or "@" in parts.netloc:
        return None
    host = f"[{host}]" if ":" in host else host
    place = host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
    address = f"{parts.scheme}://{place}{path}{query}"
    return None if len(address) > LONGEST or _is_endless(path) else address


def _path(path: str) -> str:
    kept: list[str] = []
    *folders, last = _escaped(_SESSION_IN_PATH.sub("", path), _PATH).split("/")
    for part in folders[1:]:
        _step(kept, part)
    if last in (".", ".."):
        _step(kept, last)
        last = ""
    return "/" + "".join(f"{part}/" for part in kept) + last


def _step(kept: list[str], part: str) -> None:
    match part:
        case ".":
            return
        case "..":
            del kept[-1:]
        case _:
            kept.append(part)


def _query(query: str) -> str:
    kept = [part for part in query.split("&") if part and not _follows(part)]
    return "?" + _escaped("&".join(kept), _QUERY) if kept else ""


def _follows(part: str) -> bool:
    return any(_TRACKING.fullmatch(name) for name, _ in parse_qsl(part, keep_blank_values=True))


def _escaped(text: str, safe: str) -> str:
    return quote(_ESCAPE.sub(_escape, text), safe=safe)


def _escape(found: re.Match[str]) -> str:
    if found[1] is None:
        return "%25"
    letter = chr(int(found[1], 16))
    return letter if _UNRESERVED.fullmatch(letter) else f"%{found[1].upper()}"


def _is_endless(path: str) -> bool:
    parts = [part for part in path.split("/") if part]
    alike = max(map(parts.count, parts), default=0)
    return len(parts) > _MOST_FOLDERS or alike > _MOST_ALIKE


def place_of(address: str) -> str:
    """The host, and the port where it is not the usual one."""
    return urlsplit(address).netloc


def path_of(address: str) -> str:
    """Path and query, as they are asked for."""
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def folders_of(address: str) -> tuple[str, ...]:
    """The parts of the path, unquoted."""
    return tuple(unquote(part) for part in urlsplit(address).path.split("/") if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which addresses belong to the site."""

    places: frozenset[str]
    """Hosts, with the port where it is not the usual one."""
    include: tuple[GlobPattern, ...] = ()
    """Of paths; with none, all."""
    exclude: tuple[GlobPattern, ...] = ()

    def is_here(self, address: str) -> bool:
        """On one of its hosts."""
        return place_of(address) in self.places

    def shuns(self, address: str) -> bool:
        """Never to be asked."""
        return not self.is_here(address) or matches_any(self.exclude, folders_of(address))

    def chooses(self, address: str) -> bool:
        """To be asked, and to be a document."""
        is_in = not self.include or matches_any(self.include, folders_of(address))
        return is_in and not self.shuns(address)


def place_named(text: str) -> str:
    """A host as a person writes it, in its one spelling.

    Raises:
        ValueError: it is none.
    """
    address = page_address(f"https://{text.strip()}/")
    if address is None or path_of(address) != "/" or re.search(r"[/\s@?#]", text.strip()):
        raise ValueError(f"{text!r} is not a host: write www.example.com, or with a port host:8443")
    return place_of(address)


def globs(patterns: Iterable[str]) -> tuple[GlobPattern, ...]:
    return tuple(map(GlobPattern.parse, patterns))
