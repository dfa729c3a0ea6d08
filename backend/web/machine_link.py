"""The link that lets the browser of the person in who runs a Quarry without accounts."""

import re
from datetime import UTC, datetime
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.machine_secret import LINK_LIFETIME, SESSION_LIFETIME, MachineSecret
from backend.access.random_secrets import digest
from backend.api.authentication import CHALLENGE, read_address
from backend.api.authorization import Permission, find_asker, requires
from backend.api.problem_details import Problem, problem
from backend.api.request_context import get_request_context
from backend.store import audit
from backend.store.accounts import used_links
from backend.store.audit import Actor
from backend.store.database import Database

_HOST = re.compile(r"\[?(?P<name>[^\]]+?)\]?(?::(?P<port>\d+))?")


def link_command(request: Request) -> str:
    """Return the command that prints a link to the address at which the browser found this server."""
    found = _HOST.fullmatch(request.headers["host"])
    name, port = (found["name"], found["port"]) if found else ("127.0.0.1", None)
    host = "" if name == "127.0.0.1" else f" --host {name}"
    return f"quarry link{host} --port {port or 80}"


def mount_link(app: FastAPI, secret: MachineSecret, database: Database) -> None:
    """Add the address of the links that are made with the secret; each lets one browser in, once."""

    @requires(Permission.ANYONE)
    def open_link(request: Request, code: Annotated[str, Query(max_length=200)] = "") -> Response:
        if get_request_context(request.scope).has_accounts:
            return RedirectResponse("/sign-in", 303)
        if secret.is_link_code(code) and _use_link(database, code, read_address(request)):
            return _begin_session(secret)
        if find_asker(request.scope) is not None:
            # This browser was let in before, perhaps by this link.
            return RedirectResponse("/", 303)
        detail = "This link is not valid, or was used already."
        raise Problem(problem(401, detail, "Run quarry link for a new one."), CHALLENGE)

    app.get("/link", include_in_schema=False)(open_link)


def _use_link(database: Database, code: str, address: str | None) -> bool:
    """Return whether the link was not opened before. That it was is in the audit; its code is not."""
    now = datetime.now(UTC)
    with database.transaction() as opened:
        is_first = used_links.use(opened, digest(code), now, expired=now - LINK_LIFETIME)
        if is_first:
            actor = Actor(audit.OWNER.name, address)
            audit.record(opened, "open_machine_link", "machine:link", {}, actor)
    return is_first


def _begin_session(secret: MachineSecret) -> Response:
    """Lead to the search page, so that the code does not stay in the address."""
    response = RedirectResponse("/", 303)
    response.set_cookie(
        secret.cookie_name,
        secret.make_session(),
        max_age=int(SESSION_LIFETIME.total_seconds()),
        httponly=True,
        samesite="lax",
    )
    return response
