"""The socket that `quarry serve` listens on."""

import asyncio
import socket

from backend.cli.serve import open_listener


async def _accepted_option(listener: socket.socket) -> int:
    """TCP_NODELAY of a connection that the event loop accepted."""
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        accepted.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(on_connection, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
        option = await asyncio.wait_for(accepted, 10)
        writer.close()
    return option


def test_answers_are_sent_without_delay() -> None:
    assert asyncio.run(_accepted_option(open_listener("127.0.0.1", 0))) != 0
