"""Who sends a request: every request is authenticated before it is routed.

A request of nobody reaches the routes that are open to anyone and no other; what exists beyond them, it cannot tell.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeAlias
from urllib.parse import parse_qsl

from anyio import to_thread
from fastapi import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.access.api_tokens import PREFIX, TokenScope, audit_name
from backend.access.machine_secret import MachineSecret
from backend.access.networks import normalize_address
from backend.access.oauth.grants import name_actor
from backend.access.roles import Role
from backend.api.authorization import Asker, is_open_to_anyone, set_asker
from backend.api.problem_details import Problem, problem
from backend.api.protected_resources import describe_resource
from backend.api.request_context import get_request_context
from backend.store.accounts.api_tokens import ApiToken
from backend.store.accounts.oauth_grants import OAuthGrant
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from connectors.access import Readers

CSRF_HEADER = "x-csrf-token"
CHALLENGE: Mapping[str, str] = MappingProxyType({"WWW-Authenticate": 'Bearer realm="Quarry"'})
"""Of every answer with the status 401."""
CSRF_FIELD = "csrf_token"
"""Of a form that a browser sends without a script."""
_SAFE = {"GET", "HEAD", "OPTIONS"}
_FORM = "application/x-www-form-urlencoded"

FindToken: TypeAlias = Callable[[str], tuple[ApiToken, Person | None] | None]
"""Returns the valid token that was given, and its owner; reads the database."""
FindGrant: TypeAlias = Callable[[str, str], tuple[OAuthGrant, Person] | None]
"""Returns the grant of a valid access token of OAuth, and whose it is; reads the database. The resource comes second."""


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
    find_token: FindToken

    async def authenticate(self, request: Request) -> Asker | None:
        if "authorization" in request.headers:
            return await self._by_bearer(request)
        session = request.cookies.get(self.secret.cookie_name)
        if session is None or not self.secret.is_session(session):
            return None
        return self._owner(self.secret.csrf_token(session))

    async def _by_bearer(self, request: Request) -> Asker | None:
        given = read_bearer(request)
        if given.startswith(PREFIX):
            found = await to_thread.run_sync(self.find_token, given)
            return found and make_token_asker(*found, self.readers, read_address(request))
        return self._owner() if self.secret.is_equal(given) else None

    def _owner(self, csrf_token: str | None = None) -> Asker:
        return Asker(kind="local", readers=self.readers, role=Role.ADMIN, csrf_token=csrf_token)


def read_bearer(request: Request) -> str:
    """Return what a program proves itself with; nothing where it uses another scheme."""
    scheme, _, given = request.headers["authorization"].partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def read_address(request: Request) -> str | None:
    """Return where a request comes from."""
    return normalize_address(request.client.host) if request.client else None


def make_token_asker(
    token: ApiToken, owner: Person | None, readers: Readers, address: str | None
) -> Asker:
    """Return who sends a token: never more than its owner is now."""
    return Asker(
        kind="token",
        readers=readers,
        role=Role(owner.role) if owner else Role.ADMIN,
        scopes=frozenset(map(TokenScope, token.scopes)),
        person=owner,
        actor=Actor(audit_name(token.name, owner), address),
    )


def make_grant_asker(
    grant: OAuthGrant, person: Person, readers: Readers, address: str | None
) -> Asker:
    """Return who sends an access token of OAuth: never more than its person is now, within the scopes that were granted."""
    return Asker(
        kind="token",
        readers=readers,
        role=Role(person.role),
        scopes=frozenset(map(TokenScope, grant.access_scopes or ())),
        person=person,
        actor=Actor(name_actor(grant, person), address),
    )


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
            request = Request(scope, receive)
            asker = await self._authenticator.authenticate(request)
            if asker is None and not self._is_open(scope):
                raise _unauthorized(request)
            if asker is not None:
                get_request_context(scope).asker = asker.kind
                receive = await self._receive_from_session(request, asker)
            set_asker(scope, asker)
        await self._app(scope, receive, send)

    async def _receive_from_session(self, request: Request, asker: Asker) -> Receive:
        """Return what to receive the request from, once it is known to come from a page of the session."""
        if request.method in _SAFE or asker.csrf_token is None:
            return request.receive
        if _is_proof(request.headers.get(CSRF_HEADER), asker.csrf_token):
            return request.receive
        if self._is_open(request.scope):
            return request.receive
        return await _check_form(request, asker.csrf_token)

    def _is_open(self, scope: Scope) -> bool:
        """Return whether it is open to anyone. All routes are looked through, so it is asked only where it matters."""
        return is_open_to_anyone(self._routes, scope)


def _unauthorized(request: Request) -> Problem:
    if get_request_context(request.scope).has_accounts:
        detail, secret = "Quarry answers only people who have signed in, and their programs.", ""
    else:
        detail = "Quarry answers only the person who runs it."
        secret = ", or with the secret in the file machine.secret of Quarry's home"
    advice = (
        f"Send the header Authorization: Bearer, with an API token (quarry tokens create){secret}."
    )
    return Problem(problem(401, detail, advice), _make_challenge(request))


def _make_challenge(request: Request) -> Mapping[str, str]:
    return {name: f"{value}{describe_resource(request)}" for name, value in CHALLENGE.items()}


def _is_proof(given: str | None, csrf_token: str) -> bool:
    return hmac.compare_digest((given or "").encode(errors="replace"), csrf_token.encode())


async def _check_form(request: Request, csrf_token: str) -> Receive:
    """Return what the application receives the request from, whose body was read for its proof.

    Raises:
        Problem: 403, a browser sends its session with a request that no page of that session made.
    """
    if CSRF_HEADER not in request.headers and request.headers.get("content-type") == _FORM:
        body = await request.body()
        if _is_proof(_read_field(body, CSRF_FIELD), csrf_token):
            return _replay(body, request.receive)
    raise Problem(
        problem(
            403,
            "The request does not come from a page of this session.",
            "Reload the page, then try again.",
        )
    )


def _read_field(body: bytes, name: str) -> str:
    return dict(parse_qsl(body.decode(errors="replace"))).get(name, "")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what begins with a whole body and goes on with `receive`."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
