"""Who sends a request: every request is authenticated before it is routed.

A request of nobody reaches the routes that are open to anyone and no other; what exists beyond them, it cannot tell.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from anyio import to_thread
from fastapi import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.access.api_tokens import PREFIX, TokenScope, audit_name
from backend.access.machine_secret import MachineSecret
from backend.api.authorization import Asker, is_open_to_anyone, set_asker
from backend.api.problem_details import Problem, problem
from backend.api.request_context import get_request_context
from backend.store.api_tokens import ApiToken
from connectors.access import Readers

CSRF_HEADER = "x-csrf-token"
CHALLENGE: Mapping[str, str] = MappingProxyType({"WWW-Authenticate": 'Bearer realm="Quarry"'})
"""Of every answer with the status 401."""
_SAFE = {"GET", "HEAD", "OPTIONS"}


class Authenticator(Protocol):
    """Identifies the asker of a request."""

    async def authenticate(self, request: Request) -> Asker | None:
        """Return None if the request proves nothing, or what it should prove is invalid."""


@dataclass(frozen=True, slots=True)
class MachineAuthenticator:
    """Recognizes the owner of this Quarry by the secret of the machine, or by a session that began with it;
    and programs by the API tokens that the owner gave them.
    """

    secret: MachineSecret
    readers: Readers
    find_token: Callable[[str], ApiToken | None]
    """Returns the valid token that was given; reads the database."""

    async def authenticate(self, request: Request) -> Asker | None:
        if (authorization := request.headers.get("authorization")) is not None:
            scheme, _, given = authorization.partition(" ")
            return await self._by_bearer(given.strip()) if scheme.lower() == "bearer" else None
        session = request.cookies.get(self.secret.cookie_name)
        if session is None or not self.secret.is_session(session):
            return None
        return self._owner(self.secret.csrf_token(session))

    async def _by_bearer(self, given: str) -> Asker | None:
        if not given.startswith(PREFIX):
            return self._owner() if self.secret.is_equal(given) else None
        token = await to_thread.run_sync(self.find_token, given)
        if token is None:
            return None
        return Asker(
            kind="token",
            readers=self.readers,
            is_owner=True,
            scopes=frozenset(map(TokenScope, token.scopes)),
            actor=audit_name(token.name),
        )

    def _owner(self, csrf_token: str | None = None) -> Asker:
        return Asker(kind="local", readers=self.readers, is_owner=True, csrf_token=csrf_token)


class AuthenticationMiddleware:
    """Sets the asker of each request.

    Args:
        routes: all routes of the application, read at each request of nobody.
    """

    def __init__(
        self, app: ASGIApp, authenticator: Authenticator, routes: Sequence[BaseRoute]
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            asker = await self._authenticator.authenticate(request)
            if asker is None and not is_open_to_anyone(self._routes, scope):
                raise _unauthorized()
            if asker is not None:
                get_request_context(scope).asker = asker.kind
                _check_csrf_token(request, asker)
            set_asker(scope, asker)
        await self._app(scope, receive, send)


def _unauthorized() -> Problem:
    return Problem(
        problem(
            401,
            "Quarry answers only the person who runs it.",
            "Send the header Authorization: Bearer, with an API token (quarry tokens create), or with the secret in the"
            " file machine.secret of Quarry's home.",
        ),
        CHALLENGE,
    )


def _check_csrf_token(request: Request, asker: Asker) -> None:
    """Raises Problem: 403, a browser sends its session with a request that no page of that session made."""
    if request.method in _SAFE or asker.csrf_token is None:
        return
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode(errors="replace"), asker.csrf_token.encode()):
        raise Problem(
            problem(
                403,
                "The request does not come from a page of this session.",
                "Reload the page, then try again.",
            )
        )
