"""What a token is for, and what of it is granted."""

import pytest

from backend.access.api_tokens import TokenScope
from backend.access.oauth.errors import OAuthError
from backend.access.oauth.resources import (
    ProtectedResource,
    find_resource,
    read_resource,
    read_scopes,
)

SITE = "https://quarry.example.com"
BOTH = ["search", "ask"]


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/mcp", ProtectedResource.MCP),
        ("/mcp/", ProtectedResource.MCP),
        ("/mcp/messages", ProtectedResource.MCP),
        ("/mcpx", None),
        ("/MCP", None),
        ("//mcp", None),
        ("/api/search", ProtectedResource.API),
        ("/v1/models", ProtectedResource.API),
        ("/openapi.json", ProtectedResource.API),
        ("/api", None),
        ("/", None),
        ("/document/x", None),
        ("/account", None),
        ("/metrics", None),
        ("/oauth/consent", None),
    ],
)
def test_a_path_belongs_to_one_resource_at_most(
    path: str, resource: ProtectedResource | None
) -> None:
    assert find_resource(path) is resource


@pytest.mark.parametrize(
    ("given", "resource"),
    [
        ([], ProtectedResource.MCP),
        ([f"{SITE}/mcp"], ProtectedResource.MCP),
        ([f"{SITE}/mcp/"], ProtectedResource.MCP),
        (["HTTPS://Quarry.Example.com:443/mcp"], ProtectedResource.MCP),
        ([f"{SITE}/mcp", f"{SITE}/mcp"], ProtectedResource.MCP),
        ([SITE], ProtectedResource.API),
        ([f"{SITE}/"], ProtectedResource.API),
    ],
)
def test_a_resource_is_named_by_its_address(given: list[str], resource: ProtectedResource) -> None:
    assert read_resource(SITE, given) is resource


@pytest.mark.parametrize(
    "given",
    [
        ["https://evil.example.com/mcp"],
        [f"{SITE}/mcp/other"],
        [f"{SITE}/MCP"],
        [f"{SITE}/api"],
        [f"{SITE}:8443/mcp"],
        ["http://quarry.example.com/mcp"],
        [f"{SITE}/mcp?x=1"],
        [f"{SITE}/mcp#x"],
        ["https://user@quarry.example.com/mcp"],
        [f"{SITE}.evil.example.com/mcp"],
        ["/mcp"],
        ["mcp"],
        ["https://[broken/mcp"],
        [f"{SITE}/mcp", SITE],
    ],
)
def test_anything_else_is_no_resource_of_this_server(given: list[str]) -> None:
    with pytest.raises(OAuthError) as refused:
        read_resource(SITE, given)
    assert refused.value.code == "invalid_target"


@pytest.mark.parametrize(
    ("asked", "allowed", "granted"),
    [
        (None, BOTH, BOTH),
        ("search", BOTH, ["search"]),
        ("ask search", BOTH, BOTH),
        ("search ask", ["search"], ["search"]),
        ("search admin metrics ingest", BOTH, ["search"]),
        ("search offline_access", BOTH, ["search"]),
        (None, ["ask"], ["ask"]),
    ],
)
def test_no_more_is_granted_than_reading_and_asking(
    asked: str | None, allowed: list[str], granted: list[str]
) -> None:
    assert read_scopes(asked, allowed) == granted


@pytest.mark.parametrize("asked", ["admin", "openid profile", "SEARCH", "search\task", " "])
def test_where_nothing_is_left_it_is_refused(asked: str) -> None:
    with pytest.raises(OAuthError) as refused:
        read_scopes(asked, list(TokenScope))
    assert refused.value.code == "invalid_scope"
