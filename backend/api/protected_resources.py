"""Where a client learns how to be admitted to a resource of this server (RFC 9728, section 3.1 and 5.1)."""

from fastapi import Request

MCP_PATH = "/mcp"
SCOPES = "search ask"
"""Of a token that calls every tool."""
METADATA = "/.well-known/oauth-protected-resource"


def find_metadata_url(request: Request) -> str | None:
    """Return the address of the metadata of the resource that is asked for; None where it has none.

    The host of the request is one of this server's own: the request guard has let it in.
    """
    if request.url.path != MCP_PATH:
        return None
    return f"{str(request.base_url).removesuffix('/')}{METADATA}{MCP_PATH}"


def describe_resource(request: Request) -> str:
    """Return the parameters that a challenge of the resource has besides its realm, and nothing where it has none."""
    metadata = find_metadata_url(request)
    return f', resource_metadata="{metadata}", scope="{SCOPES}"' if metadata else ""
