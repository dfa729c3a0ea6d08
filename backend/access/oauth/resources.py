"""What a token is for: one protected resource of this server (RFC 8707, RFC 9728), and scopes of it."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from urllib.parse import urlsplit

from backend.access.api_tokens import TokenScope
from backend.access.oauth.errors import OAuthError, OAuthErrorCode


class ProtectedResource(StrEnum):
    """The path of its identifier, which is the origin of the server followed by it."""

    MCP = "/mcp"
    """The Model Context Protocol."""
    API = ""
    """The HTTP API below /api and /v1."""


SCOPES = (TokenScope.SEARCH, TokenScope.ASK)
"""What programs may be granted: to read and to ask. Who wants more makes an API token."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


def name_resource(origin: str, resource: ProtectedResource) -> str:
    """Return the identifier of a resource, which is the audience of tokens for it."""
    return f"{origin}{resource}"


def find_resource(path: str) -> ProtectedResource | None:
    """Return the resource that a path belongs to, if any: pages take no tokens of it."""
    if path == ProtectedResource.MCP or path.startswith(f"{ProtectedResource.MCP}/"):
        return ProtectedResource.MCP
    if path.startswith(("/api/", "/v1/")) or path == "/openapi.json":
        return ProtectedResource.API
    return None


def read_resource(origin: str, given: Sequence[str]) -> ProtectedResource:
    """Return the resource that a request names; the one of MCP where it names none, as early clients do.

    Raises:
        OAuthError: invalid_target, it names several, or what is no resource of this server.
    """
    if not given:
        return ProtectedResource.MCP
    named = {_normalize(one) for one in given}
    for resource in ProtectedResource:
        if named == {name_resource(origin, resource)}:
            return resource
    raise OAuthError(
        OAuthErrorCode.INVALID_TARGET, "The resource is not one that this server protects."
    )


def _normalize(url: str) -> str:
    """Spell scheme, host and port as an origin does, and leave out a slash at the end; empty where it is no URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if parts.query or parts.fragment or "#" in url or parts.username is not None:
        return ""
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    shown = "" if port in {None, _DEFAULT_PORTS.get(parts.scheme)} else f":{port}"
    return f"{parts.scheme}://{host}{shown}{parts.path.removesuffix('/')}"


def read_scopes(given: str | None, allowed: Iterable[str]) -> list[TokenScope]:
    """Return the scopes to grant: those of `allowed` that are asked for, or all where nothing is.

    Others are left out, which the answer says (RFC 6749, 3.3).

    Raises:
        OAuthError: invalid_scope, none is left.
    """
    asked = SCOPES if given is None else given.split(" ")
    found = [scope for scope in SCOPES if scope in asked and scope in set(allowed)]
    if not found:
        raise OAuthError(
            OAuthErrorCode.INVALID_SCOPE, f"The scopes of this server are {' and '.join(SCOPES)}."
        )
    return found
