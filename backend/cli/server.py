"""The HTTP server of one process: uvicorn with the API and the pages, which ends within seconds."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import h11
import uvicorn
from rich.console import Console
from uvicorn.protocols.http.h11_impl import H11Protocol

from backend.access.api_tokens import find_valid_token
from backend.access.machine_secret import MachineSecret
from backend.access.oauth.grants import find_valid_access_token
from backend.access.openid.code_flow import CodeFlow
from backend.access.own_readers import find_own_readers
from backend.access.passwords import PasswordQueue, Passwords
from backend.access.people import PeopleService
from backend.access.sessions import find_session_person
from backend.api.access_log import LOG
from backend.api.account_authentication import (
    AccountAuthenticator,
    AccountCookies,
    AccountPresence,
)
from backend.api.answer_process import StartProcess
from backend.api.app import Api, create_app
from backend.api.authentication import MachineAuthenticator
from backend.api.dependencies import AppState
from backend.api.server_processes import ServerProcesses
from backend.cli.link import make_link
from backend.cli.listening import Listening, find_public_address
from backend.container import Container
from backend.settings import Settings
from backend.store.accounts.api_tokens import ApiToken
from backend.store.accounts.people import Person, has_people
from backend.store.database import Database
from backend.web import routes, urls
from backend.web.answer_html import answer_html
from backend.web.machine_link import mount_link
from backend.web.pages.account_pages import AccountPages
from backend.web.pages.openid_pages import OpenIdPages
from backend.web.pages.password_reset_pages import PasswordResetPages
from backend.web.pages.sharing_pages import find_translation
from backend.web.pages.sign_in import SignInPages
from connectors.access import Readers

GRACE = 1
"""Seconds for requests that are under way when the server stops, before their connections are cut."""
SYNC_GRACE = 2.5
"""Seconds for the syncs that are under way then."""
BACKLOG = 2048
"""Connections that may wait to be accepted."""
REQUEST_SECONDS = 10.0
"""Until the headers are complete, from the first byte or the connection on; then between two parts of the body."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The person who runs the server: what they prove it with, and what they may read."""

    secret: MachineSecret
    readers: Readers


def make_app(
    container: Container,
    owner: Owner,
    listening: Listening,
    processes: ServerProcesses | None = None,
    start_answer_process: StartProcess | None = None,
) -> Api:
    """Make the API with the pages: for the owner, or for people once there are accounts."""
    site = listening.public_address
    cookies = AccountCookies.of_site() if site else AccountCookies.of_machine(owner.secret)
    # Whoever reaches it over the network has an account: the secret of the machine is for this machine.

    def open_database() -> Database:
        return container.database

    accounts = AccountPresence(lambda: site is not None or has_people(open_database()))
    authenticator = make_authenticator(open_database, owner, cookies, accounts)
    app = create_app(
        container,
        authenticator,
        answer_html,
        routes.error_page,
        processes,
        site,
        find_translation,
        start_answer_process,
    )
    routes.mount(app)
    if site is None:
        mount_link(app, owner.secret, container.database)
    provider = container.sign_in.openid_provider
    settings = provider.settings if provider else None
    passwords, queue = Passwords(), PasswordQueue()
    sign_in = SignInPages(open_database, cookies, passwords, queue, settings)
    sign_in.mount(app)
    AccountPages(open_database, cookies, passwords, queue).mount(app)
    PasswordResetPages(open_database, cookies, passwords, queue).mount(app)
    if provider is not None:
        cookie = "__Host-quarry-openid" if site else owner.secret.name_cookie("openid")
        pages = OpenIdPages(
            open_database,
            lambda: container.vault,
            cookies,
            sign_in,
            provider,
            CodeFlow(provider),
            cookie,
        )
        pages.mount(app)
    return app


def make_authenticator(
    open_database: Callable[[], Database],
    owner: Owner,
    cookies: AccountCookies,
    accounts: AccountPresence,
) -> AccountAuthenticator:
    def find_token(given: str) -> tuple[ApiToken, Person | None] | None:
        return find_valid_token(open_database(), given)

    return AccountAuthenticator(
        machine=MachineAuthenticator(owner.secret, owner.readers, find_token),
        cookies=cookies,
        service_readers=owner.readers,
        accounts=accounts,
        find_token=find_token,
        find_grant=lambda given, resource: find_valid_access_token(
            open_database(), given, resource
        ),
        find_session_person=lambda session: find_session_person(open_database(), session),
        find_readers=lambda person: find_own_readers(open_database(), person),
    )


class TimedRequestProtocol(H11Protocol):
    """Answers a request that does not arrive in time with 408 (RFC 9110, section 15.5.9), and closes the connection.

    uvicorn limits only the pause between two requests. A client that sends half a request would hold its connection for
    ever, and some thousand such clients all connections that the process may open (the attack is known as Slowloris).
    """

    request_seconds = REQUEST_SECONDS
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        their_state = self.conn.their_state
        if their_state is h11.SEND_BODY:
            self._stop_timer()
            self._start_timer()
        elif their_state is not h11.IDLE:
            self._stop_timer()
        elif self._timer is None:
            # Half of the next request of a connection that was kept.
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.request_seconds, self._end_request)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_request(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            # It is the application that does not read on.
            self._start_timer()
            return
        has_begun = bool(self.conn.trailing_data[0]) or self.conn.their_state is h11.SEND_BODY
        if has_begun and self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send_timeout()
        self.transport.close()

    def _send_timeout(self) -> None:
        if self.conn.our_state is h11.SEND_RESPONSE:
            # From now on the application can send nothing to this client.
            self.cycle.disconnected = True
        status = HTTPStatus.REQUEST_TIMEOUT
        headers = [("content-length", "0"), ("connection", "close")]
        response = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        for event in (response, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")


class Server(uvicorn.Server):
    """Ends streams and syncs first when it stops."""

    def __init__(self, app: Api, listening: Listening, accepted_at_once: int = BACKLOG) -> None:
        config = uvicorn.Config(
            app,
            http=TimedRequestProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(listening.trusted_proxies),
            forwarded_allow_ips=listening.trusted_proxies,
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.key,
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
        await asyncio.to_thread(self.state.turns.stop, GRACE)
        await self.stop_workers()
        await super().shutdown(sockets)

    async def stop_workers(self) -> None:
        """Stop what else the process does."""

    def unfinished(self) -> list[str]:
        """Return the names of what is still running after the shutdown."""
        return self.state.sync_runs.unfinished()


def announce(console: Console, bound: socket.socket, owner: Owner, container: Container) -> None:
    """Say where the server is and what to do."""
    settings, site = container.settings, find_public_address(container.settings)
    url = site.url if site else _url(bound)
    console.print(f"Quarry is at {url}", style="bold", markup=False)
    lines: tuple[str, ...] = _invite_owner(url, owner)
    if has_people(container.database):
        lines = ("It answers people who have signed in, and their programs. Ctrl-C ends it.",)
    elif site:
        lines = _set_up(url, container.database)
    if site:
        lines += (f"It listens at {_url(bound).partition('://')[2]}.",)
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    if settings.workers and settings.broker_url is not None:
        note = "quarry worker and quarry beat sync the sources, over the broker."
        console.print(note, markup=False, soft_wrap=True)


def _set_up(url: str, database: Database) -> tuple[str, ...]:
    link = urls.make_link(url, "/invitation", PeopleService(database).set_up())
    return (
        f"Make the first account by this link, which is valid once, for an hour: {link}",
        "It answers nobody else until then. Ctrl-C ends it.",
    )


def _invite_owner(url: str, owner: Owner) -> tuple[str, ...]:
    asker = ", ".join(sorted(owner.readers.tokens))
    return (
        f"Open it in a browser by this link, which is valid once, for an hour: {make_link(url, owner.secret)}",
        f"It answers you alone, as {asker}. quarry link prints another link. Ctrl-C ends it.",
    )


def syncs_by_itself(settings: Settings) -> bool:
    """Return whether `quarry serve` syncs. Where there is a broker, it is its workers that do."""
    return settings.workers and settings.broker_url is None


def log_requests(level: int) -> None:
    """Log one entry a request; at DEBUG with what was asked."""
    LOG.setLevel(level)


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
