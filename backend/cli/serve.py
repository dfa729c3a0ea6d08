"""`quarry serve`: the page and the HTTP API."""

import asyncio
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
from backend.cli.answer_process import start_answer_process
from backend.cli.command_line import As, say_stopping
from backend.cli.listening import Listening, plan_listening
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
from backend.research.runs.research_workers import ResearchWork, ResearchWorkers
from backend.sync.due_work import Engine
from backend.sync.run_lease import StallLimit
from backend.sync.worker_threads import WorkerThreads
from backend.worker.logs import configure_logging
from backend.worker.research_work import make_research_work
from connectors.errors import ConflictError, InvalidInputError

MOST_PROCESSES = 64


def open_listener(address: str, port: int) -> socket.socket:
    """Return a socket bound to a port of this machine; port 0 picks a free one.

    Raises:
        ConflictError: the port is taken, or may not be used.
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
        raise ConflictError(
            f"Port {port} of {address} cannot be used: {error.strerror}. Perhaps another quarry serve"
            " runs already: open it, or stop it. Or take another port: quarry serve --port 0 finds"
            " a free one."
        ) from error
    return bound


def run_server(
    container: Container,
    bound: socket.socket,
    owner: Owner,
    listening: Listening,
    console: Console,
    log_level: int,
) -> None:
    """Serve until Ctrl-C or SIGTERM, then end within seconds, also with streams open."""
    configure_logging()
    log_requests(log_level)
    log_start()
    start = start_answer_process if container.settings.answer_process else None
    app = make_app(container, owner, listening, start_answer_process=start)
    server = _Server(app, listening, bound, console, owner)
    server.run(sockets=[bound])
    end_process(console, server.unfinished())


class _Server(Server):
    """The server of a single process, which also syncs."""

    def __init__(
        self,
        app: Api,
        listening: Listening,
        bound: socket.socket,
        console: Console,
        owner: Owner,
    ) -> None:
        super().__init__(app, listening)
        current = self.state.current
        self._container = current.container
        settings = self._container.settings
        engine = Engine(
            lambda: current.container.sources,
            bound=StallLimit(still=timedelta(minutes=settings.still_minutes)),
            measure=self.state.metrics.stages,
        )
        works = syncs_by_itself(settings)
        self._workers = WorkerThreads(engine, self.state.warmup.ready.wait) if works else None
        self._research = ResearchWorkers(self._make_research(), self.state.warmup.ready.wait)
        self._workers_ended = True
        self._bound = bound
        self._console = console
        self._owner = owner

    def _make_research(self) -> ResearchWork:
        current = self.state.current
        return make_research_work(
            lambda: current.container,
            lambda: current.container.database,
            self._container.settings.research_at_once,
            self.state.turns.news.announce,
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._workers:
            self._workers.start()
            self._research.start()
        announce(self._console, self._bound, self._owner, self._container)

    async def stop_workers(self) -> None:
        if self._workers:
            self._workers_ended, _ = await asyncio.gather(
                asyncio.to_thread(self._workers.stop, SYNC_GRACE),
                asyncio.to_thread(self._research.stop, SYNC_GRACE),
            )

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
        str,
        typer.Option(
            help="The address to listen at. One that other machines reach, such as 0.0.0.0, needs"
            " QUARRY_PUBLIC_URL, and TLS by QUARRY_TLS_CERTIFICATE and QUARRY_TLS_KEY or by a proxy."
        ),
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
    """Serve the pages and the HTTP API: for the person at this machine, or for people with accounts."""
    asker = command_line.readers(readers)
    with command_line.cli_errors(as_json=False):
        container = command_line.open_home()
        _ = container.sources.limits  # a mistake in it is said now, not to a source manager
        try:
            listening = plan_listening(host, container.settings)
        except InvalidInputError as error:
            raise typer.BadParameter(str(error), param_hint="--host") from error
        bound = open_listener(listening.address, port)
        level = logging.DEBUG if debug else logging.INFO
        owner = Owner(container.sign_in.machine_secret, asker)
        if processes == 1:
            run_server(container, bound, owner, listening, command_line.console(), level)
        else:
            serve_by_processes(container.settings, bound, owner, listening, level, processes)
