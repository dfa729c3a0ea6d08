"""The official client of MCP connects itself by OAuth, and calls the tools as the person who allowed it."""

import anyio
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from tests.unit.backend.web.test_oauth_official_client import (
    Storage,
    _make_provider,
    browser,
    container,
    url,
)

__all__ = ["browser", "container", "url"]


def test_tools_are_called_with_the_token_that_a_person_granted(
    url: str, browser: httpx2.Client
) -> None:
    provider = _make_provider(f"{url}/mcp", Storage(), browser)

    async def search() -> CallToolResult:
        async with (
            httpx2.AsyncClient(auth=provider, timeout=60) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            return await client.call_tool("search", {"query": "parental leave"})

    found = anyio.run(search)
    assert found.structured_content is not None
    assert found.structured_content["results"]
