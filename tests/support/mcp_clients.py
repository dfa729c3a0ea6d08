"""The official client of the Model Context Protocol, over HTTP with a token."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

Mode: TypeAlias = Literal["legacy", "auto"]
"""With the handshake of protocols until 2025-11-25, or without as since 2026-07-28."""
Found = TypeVar("Found")
Work: TypeAlias = Callable[[Client], Awaitable[Found]]
TIMEOUT = 60.0


class Balancer(httpx2.AsyncBaseTransport):
    """Sends each request to the next server, as a proxy before several processes does."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        self.sent: list[int] = []
        """The port that each request went to."""
        self._transport = httpx2.AsyncHTTPTransport()
        self._ports = itertools.cycle([httpx2.URL(url).port for url in urls])

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        port = next(self._ports)
        assert port is not None
        self.sent.append(port)
        request.url = request.url.copy_with(port=port)
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


@asynccontextmanager
async def connect(
    url: str, token: str, mode: Mode, transport: httpx2.AsyncBaseTransport | None = None
) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=TIMEOUT, transport=transport) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def use(url: str, token: str, mode: Mode, work: Work[Found]) -> Found:
    """Connect, and return what `work` does."""

    async def run() -> Found:
        async with connect(url, token, mode) as client:
            return await work(client)

    return asyncio.run(run())


def call(url: str, token: str, mode: Mode, name: str, **arguments: object) -> CallToolResult:
    return use(url, token, mode, lambda client: client.call_tool(name, arguments))


def read_text(result: CallToolResult) -> str:
    """Return the text of a result, of which there is one."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def read_failure(result: CallToolResult) -> str:
    assert result.is_error
    assert result.structured_content is None
    return read_text(result)


async def find_refusal(done: Awaitable[object]) -> MCPError:
    """Return the error of the protocol that a request ends with."""
    try:
        found = await done
    except MCPError as error:
        return error
    raise AssertionError(f"answered with {found}")


@dataclass
class Progress:
    """What a call has reported."""

    steps: list[float] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        self.steps.append(progress)
        self.messages.append(message or "")


RAW_HEADERS: Mapping[str, str] = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


def make_request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def make_call(name: str, **arguments: object) -> dict[str, Any]:
    return make_request("tools/call", name=name, arguments=arguments)
