"""Who sends a request, and what it may do.

Every route that returns anything of a document takes its asker from here. Every route declares exactly one
permission; a route without one is open to nobody.

@app.get("/api/sources")
@requires(Permission.ADMIN)
def sources(...): ...
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from fastapi import Depends, Request
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from backend.access.api_tokens import ALL_SCOPES, TokenScope
from backend.access.roles import Role
from backend.api.problem_details import Problem, problem
from backend.store.accounts.people import Person
from backend.store.audit import OWNER, Actor
from backend.store.owner import ConversationOwner
from connectors.access import Readers

AskerKind: TypeAlias = Literal["local", "session", "token"]

_ATTRIBUTE = "quarry_permission"
_ASKER = "quarry.asker"
_NOBODY_SIGNED_IN = "Only a person who has signed in may do this."
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    kind: AskerKind
    readers: Readers
    """What the asker holds by itself; a route takes what follows from it by `ReadersDependency`."""
    role: Role
    scopes: frozenset[TokenScope] = ALL_SCOPES
    person: Person | None = None
    """Whose session or token it is; None for the owner of the machine, and for a service token."""
    actor: Actor = OWNER
    """Who the audit says it was."""
    csrf_token: str | None = None
    """What a request that changes something must carry; None where no browser sends the credential by itself."""

    @property
    def owner(self) -> ConversationOwner | None:
        """Whose conversations and files are the asker's; None for a service token, which belongs to nobody."""
        if self.person is not None:
            return ConversationOwner(self.person.id)
        return None if self.kind == "token" else ConversationOwner(None)

    @property
    def turn_key(self) -> str:
        """Whose turns the requests take in the pools: sessions and tokens of a person share them."""
        return f"person:{self.person.id}" if self.person else self.actor.name


def set_asker(scope: Scope, asker: Asker | None) -> None:
    scope[_ASKER] = asker


def find_asker(scope: Scope) -> Asker | None:
    """Return the asker of a request; None before it is authenticated, and where nobody was recognized."""
    asker: Asker | None = scope.get(_ASKER)
    return asker


async def get_asker(request: Request) -> Asker:
    asker = find_asker(request.scope)
    if asker is None:
        raise ValueError("a route that is open to anyone asked who sends the request")
    return asker


AskerDependency = Annotated[Asker, Depends(get_asker)]


class Permission(StrEnum):
    ANYONE = "anyone"
    """The route returns nothing of the documents or the sources."""
    SEARCH = "search"
    """The route returns only what the asker's readers may read."""
    ASK = "ask"
    """The route answers a question from what the asker's readers may read."""
    SOURCES = "sources"
    """The route shows or changes the sources that exist for the asker: all for admins, their own for source managers."""
    ADMIN = "admin"
    """The route shows or changes what only admins look after."""
    METRICS = "metrics"
    """The route shows the metrics of the server."""
    INGEST = "ingest"
    """The route puts documents into the sources that exist for the asker, or says what became of them."""
    ACCOUNTS = "accounts"
    """The route shows or changes people, their groups, or API tokens. An admin reaches it by a session; no token
    does, because it could make one that may more, or outlives it."""
    ACCOUNT = "account"
    """The route is about the asker's own account. A person reaches it by a session; no token does."""


_SCOPES: Mapping[Permission, TokenScope] = MappingProxyType(
    {
        Permission.SEARCH: TokenScope.SEARCH,
        Permission.ASK: TokenScope.ASK,
        Permission.SOURCES: TokenScope.ADMIN,
        Permission.ADMIN: TokenScope.ADMIN,
        Permission.METRICS: TokenScope.METRICS,
        Permission.INGEST: TokenScope.INGEST,
    }
)
"""What a token must be made for, where a route is not open to anyone."""
_FOR_MANAGERS = {Permission.SOURCES, Permission.INGEST}
_FOR_ADMINS = {Permission.ADMIN, Permission.METRICS, Permission.ACCOUNTS}


def requires(permission: Permission) -> Callable[[Endpoint], Endpoint]:
    def set_permission(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _ATTRIBUTE, permission)
        return endpoint

    return set_permission


def get_permission(endpoint: object) -> Permission | None:
    permission: Permission | None = getattr(endpoint, _ATTRIBUTE, None)
    return permission


def find_unprotected_routes(routes: Sequence[BaseRoute]) -> Iterator[str]:
    """Yield the paths of all routes without a permission that is checked.

    Only routes of FastAPI call `check_permission`; one of another kind must be open to anyone.
    """
    for context in iter_route_contexts(routes):
        route = context.original_route
        permission = get_permission(getattr(route, "endpoint", None))
        if permission is None or not (
            permission is Permission.ANYONE or isinstance(route, APIRoute)
        ):
            yield str(getattr(route, "path", route))


def is_open_to_anyone(routes: Sequence[BaseRoute], scope: Scope) -> bool:
    """Return whether every route that the request could reach is open to anyone; where it reaches none, it is not."""
    reached = [
        route
        for context in iter_route_contexts(routes)
        for route in [context.original_route]
        if route.matches(scope)[0] is not Match.NONE
    ]
    return bool(reached) and all(
        get_permission(getattr(route, "endpoint", None)) is Permission.ANYONE for route in reached
    )


async def check_permission(request: Request) -> None:
    """Refuse an asker who lacks the permission of the route.

    Raises:
        Problem: 403.
    """
    permission = get_permission(request.scope.get("endpoint"))
    if permission is Permission.ANYONE:
        return
    if permission is None:
        raise Problem(problem(403, "This route declares no permission, so it is open to nobody."))
    check_asker(permission, await get_asker(request))


def check_asker(permission: Permission, asker: Asker) -> None:
    """Refuse an asker who lacks a permission.

    Raises:
        Problem: 403.
    """
    if permission is Permission.ACCOUNT and asker.kind != "session":
        raise Problem(problem(403, _NOBODY_SIGNED_IN))
    if permission is Permission.ACCOUNTS and asker.kind == "token":
        raise Problem(problem(403, "Only an admin who has signed in may do this."))
    if permission in _FOR_MANAGERS and asker.role is Role.MEMBER:
        detail = "Only an admin or a source manager of this Quarry may do this."
        raise Problem(problem(403, detail))
    if permission in _FOR_ADMINS and asker.role is not Role.ADMIN:
        raise Problem(problem(403, "Only an admin of this Quarry may do this."))
    if (scope := _SCOPES.get(permission)) and scope not in asker.scopes:
        detail = f"The API token is not made for this: it lacks the scope {scope}."
        challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
        raise Problem(problem(403, detail), {"WWW-Authenticate": challenge})


def get_person(asker: Asker) -> Person:
    """Return who has signed in.

    Raises:
        Problem: 403, nobody has.
    """
    if asker.person is None:
        raise Problem(problem(403, _NOBODY_SIGNED_IN))
    return asker.person
