"""Where a program has people sent back to: addresses that only it can receive (RFC 8252, RFC 9700, 2.1)."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from backend.access.oauth.errors import OAuthError, OAuthErrorCode

LONGEST_URI = 500
_LOOPBACK = {"127.0.0.1", "[::1]", "localhost"}
_URI = re.compile(r"[!#$%&'()+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
"""The characters of a URI (RFC 3986) but for the asterisk, which some read as a wildcard."""
_NETWORK_LOCATION = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]*)?", re.IGNORECASE
)
"""One host and perhaps a port: no userinfo, and nothing between a bracket and the port."""
_OF_RESPONSES = {"code", "state", "iss", "error", "error_description", "error_uri"}
"""What is added to its query."""


def check_redirect_uri(uri: str) -> None:
    """Check an address before it is registered: https, or http on this machine (RFC 8252, 7.3).

    Schemes of programs such as `cursor:` are refused: any program of a machine may take them.

    Raises:
        OAuthError: invalid_redirect_uri.
    """
    parts = _split(uri)
    if parts is None or "#" in uri:
        raise _refusal("it is not a URL without a fragment")
    scheme, host = parts.scheme, _name_host(parts)
    if not _NETWORK_LOCATION.fullmatch(parts.netloc):
        raise _refusal("it does not name one host")
    if scheme != "https" and not (scheme == "http" and host in _LOOPBACK):
        raise _refusal("it is neither https nor http at 127.0.0.1, [::1] or localhost")
    if _OF_RESPONSES & {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}:
        raise _refusal("its query has a parameter that responses of OAuth have")


def find_redirect_uri(registered: Iterable[str], given: str | None) -> str:
    """Return the address that a request names, or the only one that is registered.

    Raises:
        OAuthError: invalid_request, it is not registered. Nobody may be sent to it.
    """
    known = list(registered)
    if given is None and len(known) == 1:
        return known[0]
    if given is None or not any(_is_same(one, given) for one in known):
        raise OAuthError(
            OAuthErrorCode.INVALID_REQUEST,
            "The redirect_uri is not one that the program has registered.",
        )
    return given


def describe_host(uri: str) -> str:
    """Return the host of an address, with its port, as a person is shown it."""
    return urlsplit(uri).netloc


def is_loopback(uri: str) -> bool:
    """Return whether a program on the machine of the person receives what is sent to this address."""
    return _name_host(urlsplit(uri)) in _LOOPBACK


def add_parameters(uri: str, parameters: Mapping[str, str]) -> str:
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(parameters)}"


def _is_same(registered: str, given: str) -> bool:
    """Compare two addresses letter by letter, but for the port of one on this machine."""
    if registered == given:
        return True
    ours, theirs = _split(registered), _split(given)
    if ours is None or theirs is None or not is_loopback(registered) or ours.scheme != "http":
        return False
    if not _NETWORK_LOCATION.fullmatch(theirs.netloc) or "#" in given:
        return False
    return _without_port(ours) == _without_port(theirs)


def _without_port(parts: SplitResult) -> tuple[str, ...]:
    return (parts.scheme, _name_host(parts), parts.path, parts.query)


def _split(uri: str) -> SplitResult | None:
    if len(uri) > LONGEST_URI or not _URI.fullmatch(uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _name_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host


def _refusal(reason: str) -> OAuthError:
    return OAuthError(OAuthErrorCode.INVALID_REDIRECT_URI, f"A redirect URI is refused: {reason}.")
