"""`quarry serve`: the page and the HTTP API, for the person at this machine."""

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import sys
from datetime import timedelta
from types import FrameType
from typing import Annotated

import typer
import uvicorn
from rich.console import Console

from backend.api.access_log import LOG, log_start
from backend.api.app import Api, create_app
from backend.api.authorization import LocalAuthenticator
from backend.api.dependencies import AppState
from backend.cli import command_line
from backend.cli.command_line import As, say_stopping
from backend.container import Container
from backend.sync.due_work import Engine
from backend.sync.run_lease import StallLimit
from backend.sync.worker_threads import WorkerThreads
from backend.web import routes
from backend.web.answer_html import answer_html
from backend.worker.logs import configure_logging
from connectors.access import Readers
from connectors.errors import ActionRequiredError

SYNC_GRACE = 2.5
"""Seconds for the syncs that are under way when the server stops."""
GRACE = 1
"""Seconds for requests that are under way after that, before their connections are cut."""


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
        f"{host} can be reached from other machines. Quarry has no accounts yet: whoever reached it"
        " would read what you may read, and could connect any folder of yours. It serves"
        " 127.0.0.1 (or localhost, or ::1) alone; from another machine, use a tunnel, such as:"
        " ssh -L 8321:127.0.0.1:8321 this-machine"
    )


def open_listener(address: str, port: int) -> socket.socket:
    """A socket bound to a port of this machine; The port; 0 picks a free one.

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
    container: Container, bound: socket.socket, readers: Readers, console: Console, log_level: int
) -> None:
    """Serve until Ctrl-C or SIGTERM, then end within seconds, also with streams open."""
    _log_requests(log_level)
    app = create_app(container, LocalAuthenticator(readers), answer_html, routes.error_page)
    routes.mount(app)
    server = _Server(app, bound, console, readers)
    # The server raises again what it was stopped by; it has been done by then.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _done_already)
    server.run(sockets=[bound])
    if unfinished := server.unfinished():
        console.print(
            f"Still in the middle of a step: {', '.join(unfinished)}. The next sync goes on from the"
            " last checkpoint.",
            markup=False,
        )
        # Their threads would hold the process up until the step is done.
        sys.stderr.flush()
        os._exit(0)


class _Server(uvicorn.Server):
    def __init__(self, app: Api, bound: socket.socket, console: Console, readers: Readers) -> None:
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE,
        )
        super().__init__(config)
        self.state: AppState = app.state.app_state
        current, settings = self.state.current, self.state.current.container.settings
        engine = Engine(
            lambda: current.container,
            bound=StallLimit(still=timedelta(minutes=settings.still_minutes)),
            measure=self.state.metrics.stages,
        )
        # Where there is a broker, it is its workers that do this.
        self._by_broker = settings.workers and settings.broker_url is not None
        works = settings.workers and not self._by_broker
        self._workers = WorkerThreads(engine, self.state.warmup.ready.wait) if works else None
        self._workers_ended = True
        self._url = _url(bound)
        self._console = console
        self._readers = readers

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._workers:
            self._workers.start()
        asker = ", ".join(sorted(self._readers.tokens))
        self._console.print(f"Quarry is at {self._url}", style="bold", markup=False)
        self._console.print(
            f"Open it in a browser. It answers this machine alone, as {asker}. Ctrl-C ends it.",
            markup=False,
            soft_wrap=True,
        )
        if self._by_broker:
            note = "quarry worker and quarry beat sync the sources, over the broker."
            self._console.print(note, markup=False, soft_wrap=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Before the connections are waited for: streams would go on for as long as they like.
        self.state.active_requests.close()
        self.state.sync_runs.stop(0)
        if self._workers:
            self._workers_ended = await asyncio.to_thread(self._workers.stop, SYNC_GRACE)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        say_stopping()
        super().handle_exit(sig, frame)

    def unfinished(self) -> list[str]:
        """Return the names of what is still running after the shutdown."""
        workers = [] if self._workers_ended else ["the workers"]
        return [*self.state.sync_runs.unfinished(), *workers]


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _log_requests(level: int) -> None:
    """One line of JSON a request, on standard error, after one that says what runs."""
    LOG.setLevel(level)
    LOG.propagate = False
    if not LOG.handlers:
        LOG.addHandler(logging.StreamHandler(sys.stderr))
    configure_logging()
    log_start()


def _done_already(number: int, frame: object) -> None:
    del number, frame


def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 picks a free one.")
    ] = 8321,
    host: Annotated[
        str, typer.Option(help="A loopback address: 127.0.0.1, localhost or ::1.")
    ] = "127.0.0.1",
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
        run_server(command_line.open_home(), bound, asker, command_line.console(), level)
