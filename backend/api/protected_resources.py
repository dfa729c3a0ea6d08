"""Where a client learns how to be admitted to a resource of this server (RFC 9728, sections 3.1 and 5.1)."""

from fastapi import Request

from backend.access.oauth.resources import SCOPES, ProtectedResource, find_resource
from backend.api.request_context import get_request_context

METADATA = "/.well-known/oauth-protected-resource"
"""Of the HTTP API; that of another resource is followed by its path."""


def describe_resource(request: Request) -> str:
    """Return the parameters that a challenge of `/mcp` has besides its realm; nothing elsewhere, and without accounts."""
    context, resource = get_request_context(request.scope), find_resource(request.scope["path"])
    if resource is not ProtectedResource.MCP or not context.has_accounts:
        return ""
    metadata = f"{context.origin}{METADATA}{resource}"
    return f', resource_metadata="{metadata}", scope="{" ".join(SCOPES)}"'
