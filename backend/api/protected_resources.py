"""Where a client learns how to be admitted to a resource of this server (RFC 9728, section 3.1 and 5.1)."""

from fastapi import Request

from backend.access.oauth.resources import SCOPES, ProtectedResource, name_resource
from backend.api.request_context import get_request_context

METADATA = "/.well-known/oauth-protected-resource"


def find_metadata_url(request: Request) -> str | None:
    """Return the address of the metadata of the resource that is asked for; None where a challenge names none."""
    if request.scope["path"] != ProtectedResource.MCP:
        return None
    origin = get_request_context(request.scope).origin
    return name_resource(f"{origin}{METADATA}", ProtectedResource.MCP)


def describe_resource(request: Request) -> str:
    """Return the parameters that a challenge of the resource has besides its realm, and nothing where it has none."""
    metadata, scopes = find_metadata_url(request), " ".join(SCOPES)
    return f', resource_metadata="{metadata}", scope="{scopes}"' if metadata else ""
