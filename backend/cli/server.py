"""The HTTP server of one process: uvicorn with the API and the pages, which ends within seconds."""

import logging
import os
import signal
import socket
import sys
from dataclasses import dataclass

import uvicorn
from rich.console import Console

from backend.access.api_tokens import find_valid_token
from backend.access.machine_secret import MachineSecret
from backend.api.access_log import LOG
from backend.api.app import Api, create_app
from backend.api.authentication import MachineAuthenticator
from backend.api.dependencies import AppState
from backend.api.request_timeout import TimedRequestProtocol
from backend.api.server_processes import ServerProcesses
from backend.cli.link import make_link
from backend.container import Container
from backend.settings import Settings
from backend.web import routes
from backend.web.answer_html import answer_html
from backend.web.sign_in import mount_link
from connectors.access import Readers

GRACE = 1
"""Seconds for requests that are under way when the server stops, before their connections are cut."""
SYNC_GRACE = 2.5
"""Seconds for the syncs that are under way then."""
BACKLOG = 2048
"""Connections that may wait to be accepted."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The person who runs the server: what they prove it with, and what they may read."""

    secret: MachineSecret
    readers: Readers


def make_app(container: Container, owner: Owner, processes: ServerProcesses | None = None) -> Api:
    """The API with the pages, for the owner."""
    authenticator = MachineAuthenticator(
        owner.secret, owner.readers, lambda given: find_valid_token(container.database, given)
    )
    app = create_app(container, authenticator, answer_html, routes.error_page, processes)
    routes.mount(app)
    mount_link(app, owner.secret)
    return app


class Server(uvicorn.Server):
    """Ends streams and syncs first when it stops."""

    def __init__(self, app: Api, accepted_at_once: int = BACKLOG) -> None:
        config = uvicorn.Config(
            app,
            http=TimedRequestProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE,
            backlog=accepted_at_once,
        )
        super().__init__(config)
        self.state: AppState = app.state.app_state

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn raises again what it was stopped by; it has been done by then.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, _done_already)
        super().run(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Before the connections are waited for: streams would go on for as long as they like.
        self.state.active_requests.close()
        self.state.sync_runs.stop(0)
        await self.stop_workers()
        await super().shutdown(sockets)

    async def stop_workers(self) -> None:
        """Stop what else the process does."""

    def unfinished(self) -> list[str]:
        """Return the names of what is still running after the shutdown."""
        return self.state.sync_runs.unfinished()


def announce(console: Console, bound: socket.socket, owner: Owner, settings: Settings) -> None:
    """Say where the server is and what to do."""
    asker = ", ".join(sorted(owner.readers.tokens))
    url = _url(bound)
    console.print(f"Quarry is at {url}", style="bold", markup=False)
    for line in (
        f"Open it in a browser by this link, which is valid for an hour: {make_link(url, owner.secret)}",
        f"It answers you alone, as {asker}. quarry link prints another link. Ctrl-C ends it.",
    ):
        console.print(line, markup=False, soft_wrap=True)
    if settings.workers and settings.broker_url is not None:
        note = "quarry worker and quarry beat sync the sources, over the broker."
        console.print(note, markup=False, soft_wrap=True)


def syncs_by_itself(settings: Settings) -> bool:
    """Whether `quarry serve` syncs. Where there is a broker, it is its workers that do."""
    return settings.workers and settings.broker_url is None


def log_requests(level: int) -> None:
    """Log one line of JSON a request, on standard error."""
    LOG.setLevel(level)
    LOG.propagate = False
    if not LOG.handlers:
        LOG.addHandler(logging.StreamHandler(sys.stderr))


def end_process(console: Console, unfinished: list[str]) -> None:
    """End the process now if something is unfinished, and say what: its threads would hold the process up."""
    if not unfinished:
        return
    console.print(
        f"Still in the middle of a step: {', '.join(unfinished)}. The next sync goes on from the"
        " last checkpoint.",
        markup=False,
    )
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _done_already(number: int, frame: object) -> None:
    del number, frame
