"""Addresses of web pages: when two of them lead to the same page."""

import re
from urllib.parse import unquote_plus

from connectors.http_client.address_guard import AddressNotAllowedError, validate_url

LONGEST_ADDRESS = 2_000

_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_TRACKING = re.compile(
    r"utm_\w+|(fb|g|d|y|tw|tt)clid|msclkid|gclsrc|gbraid|wbraid|igshi?d?|mc_[ce]id|mkt_tok"
    r"|_ga|_gl|_hs(enc|mi)|srsltid|ref_src|ref_url|spm|vero_(id|conv)|oly_(anon|enc)_id|_openstat",
    re.IGNORECASE,
)
_USUAL_PORTS = {80, 443}
_REGISTRIES = frozenset(
    (
        "ac",
        "co",
        "com",
        "edu",
        "go",
        "gob",
        "gov",
        "govt",
        "ltd",
        "me",
        "mil",
        "ne",
        "net",
        "nom",
        "or",
        "org",
        "plc",
        "sch",
    )
)
"""Under the domains of countries, the labels under which names are registered, such as co.uk."""


def normalize_address(url: str) -> str | None:
    """Return the spelling that all addresses of the same page share; None for what is no web address.

    Scheme, `www`, parameters that only track visitors, the fragment and a trailing slash do not tell pages apart.
    """
    if len(url) > LONGEST_ADDRESS:
        return None
    try:
        parsed = validate_url(_ESCAPE.sub(_normalize_escape, url.strip()))
    except AddressNotAllowedError:
        return None
    path = parsed.raw_path.decode("ascii").partition("?")[0].rstrip("/")
    host = strip_www(parsed.raw_host.decode("ascii"))
    host = f"[{host}]" if ":" in host else host
    port = "" if parsed.port in {None, *_USUAL_PORTS} else f":{parsed.port}"
    kept = [part for part in parsed.query.decode("ascii").split("&") if _is_kept(part)]
    return f"https://{host}{port}{path}{'?' if kept else ''}{'&'.join(kept)}"


def get_host(url: str) -> str | None:
    """Return the host of a web address without `www`, as ASCII; None for what is none."""
    try:
        return strip_www(validate_url(url.strip()).raw_host.decode("ascii"))
    except AddressNotAllowedError:
        return None


def list_own_labels(url: str) -> list[str]:
    """Return the labels of a host that its owner chooses, as they are read: neither the top-level domain nor co.uk and the like."""
    return _split_host(url)[0]


def get_domain(url: str) -> str:
    """Return the domain that the owner of a host has registered, as far as names tell; all hosts below it may be theirs."""
    own, registry = _split_host(url)
    return ".".join((*own[-1:], *registry))


def _split_host(url: str) -> tuple[list[str], list[str]]:
    """Return the labels that an owner chooses, and those under which names are registered."""
    try:
        labels = validate_url(url.strip()).host.split(".")
    except AddressNotAllowedError:
        return [], []
    is_below_registry = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _REGISTRIES
    at = len(labels) - (2 if is_below_registry else 1)
    return labels[:at], labels[at:]


def strip_www(host: str) -> str:
    """Return the host without `www.` in front, unless nothing but a top-level domain is left."""
    while host.startswith("www.") and "." in host[4:]:
        host = host[4:]
    return host


def _is_kept(part: str) -> bool:
    return bool(part) and not _TRACKING.fullmatch(unquote_plus(part.partition("=")[0]))


def _normalize_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if _UNRESERVED.fullmatch(character) else f"%{match[1].upper()}"
