"""The ways to the server: messages on standard input and output, and requests over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until standard input ends. Whatever else is printed meanwhile goes to standard error."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class HttpTransport:
    """Streamable HTTP without sessions: each request is whole in itself, so that any process may answer it.

    Args:
        most_bytes: of a request's body.
    """

    def __init__(self, server: Server[Any], most_bytes: int) -> None:
        self._server = server
        self._most_bytes = most_bytes
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer requests within the block; what is under way at its end is cancelled."""
        # Made here: one runs once, an application may be started again.
        manager = StreamableHTTPSessionManager(
            self._server, stateless=True, max_request_body_size=self._most_bytes
        )
        async with manager.run():
            self._manager = manager
            try:
                yield
            finally:
                self._manager = None

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises ValueError: it is called outside of `run`."""
        if self._manager is None:
            raise ValueError("requests are answered while the transport runs")
        await self._manager.handle_request(scope, receive, send)
