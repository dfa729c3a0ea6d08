"""The way to the server for a program on this machine: messages on standard input and output."""

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until standard input ends. Whatever else is printed meanwhile goes to standard error."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
