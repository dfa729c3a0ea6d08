"""Authenticates every request before it is routed.

A request of nobody reaches the routes that are open to anyone and no other; what exists beyond them, it cannot tell.
"""

import hmac
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from fastapi import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.api.authorization import Asker, Authenticator, is_open_to_anyone, set_asker
from backend.api.problem_details import Problem, problem
from backend.api.request_context import get_request_context

CSRF_HEADER = "x-csrf-token"
CHALLENGE: Mapping[str, str] = MappingProxyType({"WWW-Authenticate": 'Bearer realm="Quarry"'})
"""Of every answer with the status 401."""
_SAFE = {"GET", "HEAD", "OPTIONS"}


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
            "Send the header Authorization: Bearer, with the secret in the file machine.secret of Quarry's home.",
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
