"""`quarry serve`: the page and the HTTP API, for the person at this machine."""

import asyncio
import ipaddress
import logging
import socket
from datetime import timedelta
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from backend.api.access_log import log_start
from backend.api.app import Api
from backend.cli import command_line
from backend.cli.command_line import As, say_stopping
from backend.cli.serve_processes import serve_by_processes
from backend.cli.server import (
    SYNC_GRACE,
    Owner,
    Server,
    announce,
    end_process,
    log_requests,
    make_app,
    syncs_by_itself,
)
from backend.container import Container
from backend.sync.due_work import Engine
from backend.sync.run_lease import StallLimit
from backend.sync.worker_threads import WorkerThreads
from backend.worker.logs import configure_logging
from connectors.errors import ActionRequiredError

MOST_PROCESSES = 64


def loopback(host: str) -> str:
    """The address of this machine that `host` names.

    Raises:
        ValueError: others could reach it.
    """
    named = "127.0.0.1" if host.lower() == "localhost" else host
    try:
        if ipaddress.ip_address(named).is_loopback:
            return named
    except ValueError:
        pass
    raise ValueError(
        f"{host} can be reached from other machines. Quarry has no accounts yet, and without TLS"
        " its secret and your documents could be read on the way. It serves"
        " 127.0.0.1 (or localhost, or ::1) alone; from another machine, use a tunnel, such as:"
        " ssh -L 8321:127.0.0.1:8321 this-machine"
    )


def open_listener(address: str, port: int) -> socket.socket:
    """A socket bound to a port of this machine; port 0 picks a free one.

    Raises:
        ActionRequiredError: the port is taken, or may not be used.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # The event loop turns on TCP_NODELAY only where the protocol is named. Without it the end of each answer
    # waits 40 ms for the client's delayed acknowledgement.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address, port))
    except OSError as error:
        bound.close()
        raise ActionRequiredError(
            f"Port {port} of {address} cannot be used: {error.strerror}. Perhaps another quarry serve"
            " runs already: open it, or stop it. Or take another port: quarry serve --port 0 finds"
            " a free one."
        ) from error
    return bound


def run_server(
    container: Container, bound: socket.socket, owner: Owner, console: Console, log_level: int
) -> None:
    """Serve until Ctrl-C or SIGTERM, then end within seconds, also with streams open."""
    configure_logging()
    log_requests(log_level)
    log_start()
    server = _Server(make_app(container, owner), bound, console, owner)
    server.run(sockets=[bound])
    end_process(console, server.unfinished())


class _Server(Server):
    """The server of a single process, which also syncs."""

    def __init__(self, app: Api, bound: socket.socket, console: Console, owner: Owner) -> None:
        super().__init__(app)
        current = self.state.current
        self._settings = settings = current.container.settings
        engine = Engine(
            lambda: current.container,
            bound=StallLimit(still=timedelta(minutes=settings.still_minutes)),
            measure=self.state.metrics.stages,
        )
        works = syncs_by_itself(settings)
        self._workers = WorkerThreads(engine, self.state.warmup.ready.wait) if works else None
        self._workers_ended = True
        self._bound = bound
        self._console = console
        self._owner = owner

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._workers:
            self._workers.start()
        announce(self._console, self._bound, self._owner, self._settings)

    async def stop_workers(self) -> None:
        if self._workers:
            self._workers_ended = await asyncio.to_thread(self._workers.stop, SYNC_GRACE)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        say_stopping()
        super().handle_exit(sig, frame)

    def unfinished(self) -> list[str]:
        return [*super().unfinished(), *([] if self._workers_ended else ["the workers"])]


def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 picks a free one.")
    ] = 8321,
    host: Annotated[
        str, typer.Option(help="A loopback address: 127.0.0.1, localhost or ::1.")
    ] = "127.0.0.1",
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_PROCESSES,
            help="Processes that answer requests, one for each core that searches may use. With more than"
            " one, another process syncs the sources.",
        ),
    ] = 1,
    readers: As = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Also log queries and questions, which are private.")
    ] = False,
) -> None:
    """Serve the pages and the HTTP API, for the person at this machine."""
    asker = command_line.readers(readers)
    try:
        address = loopback(host)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--host") from error
    with command_line.cli_errors(as_json=False):
        bound = open_listener(address, port)
        level = logging.DEBUG if debug else logging.INFO
        container = command_line.open_home()
        owner = Owner(container.machine_secret, asker)
        if processes == 1:
            run_server(container, bound, owner, command_line.console(), level)
        else:
            serve_by_processes(container.settings, bound, owner, level, processes)
