"""The socket that `quarry serve` listens on, and what is said before it does."""

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.cli.serve import open_listener
from backend.cli.serve_processes import Listener
from backend.settings import Settings, for_one_of_several


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


def test_nor_are_those_of_several_processes() -> None:
    listener = Listener.of(open_listener("127.0.0.1", 0))
    assert asyncio.run(_accepted_option(listener)) != 0


def test_connections_wait_for_a_process_however_few_it_accepts_at_once() -> None:
    with Listener.of(open_listener("127.0.0.1", 0)) as listener, ExitStack() as clients:
        listener.listen(1)
        for _ in range(50):
            clients.enter_context(socket.create_connection(listener.getsockname(), 10))


@pytest.mark.parametrize(("settings", "threads"), [({}, 1), ({"threads": 3}, 3)])
def test_a_process_of_several_embeds_by_one_thread_unless_told_otherwise(
    settings: dict[str, int], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QUARRY_THREADS", raising=False)
    assert for_one_of_several(Settings.model_validate(settings)).threads == threads


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_wrong_limit_of_source_managers_is_said_at_the_start(
    tmp_path: Path, command: str
) -> None:
    settings = {"QUARRY_HOME": str(tmp_path), "QUARRY_BROKER_URL": "redis://127.0.0.1:1/0"}
    done = CliRunner(env={**settings, "QUARRY_SOURCE_ROOTS": "srv/docs"}).invoke(app, [command])
    assert done.exit_code == 1
    said = " ".join(done.output.split())
    assert "QUARRY_SOURCE_ROOTS or QUARRY_SOURCE_ADDRESSES is not valid: 'srv/docs'" in said
