"""Who sends a request, and what it may do.

Every route that returns anything of a document takes its asker from here. Every route declares exactly one
permission; a route without one is open to nobody.

@app.get("/api/sources")
@requires(Permission.OWNER)
def sources(...): ...
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Protocol, TypeAlias, TypeVar

from fastapi import Depends, Request
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from backend.access.machine_secret import MachineSecret
from backend.api.problem_details import Problem, problem
from connectors.access import Readers

AskerKind: TypeAlias = Literal["local"]

_ATTRIBUTE = "quarry_permission"
_ASKER = "quarry.asker"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    kind: AskerKind
    readers: Readers
    """What the asker holds by itself; a route takes what follows from it by `ReadersDependency`."""
    is_owner: bool
    """Whether the asker may see and change what is connected."""
    csrf_token: str | None = None
    """What a request that changes something must carry; None where no browser sends the credential by itself."""


class Authenticator(Protocol):
    """Identifies the asker of a request."""

    async def authenticate(self, request: Request) -> Asker | None:
        """Return None if the request proves nothing, or what it should prove is invalid."""


@dataclass(frozen=True, slots=True)
class MachineAuthenticator:
    """Recognizes the owner of this Quarry by the secret of the machine, or by a session that began with it."""

    secret: MachineSecret
    readers: Readers

    async def authenticate(self, request: Request) -> Asker | None:
        if (authorization := request.headers.get("authorization")) is not None:
            scheme, _, given = authorization.partition(" ")
            is_known = scheme.lower() == "bearer" and self.secret.is_equal(given.strip())
            return self._owner() if is_known else None
        session = request.cookies.get(self.secret.cookie_name)
        if session is None or not self.secret.is_session(session):
            return None
        return self._owner(self.secret.csrf_token(session))

    def _owner(self, csrf_token: str | None = None) -> Asker:
        return Asker(kind="local", readers=self.readers, is_owner=True, csrf_token=csrf_token)


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
    READER = "reader"
    """The route returns only what the asker's readers may read."""
    OWNER = "owner"
    """The route shows or changes the sources."""


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
    """Whether every route that the request could reach is; where it reaches none, it is not."""
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
    asker = find_asker(request.scope)
    match get_permission(request.scope.get("endpoint")):
        case Permission.ANYONE:
            return
        case Permission.READER if asker:
            return
        case Permission.OWNER if asker and asker.is_owner:
            return
        case Permission.READER | Permission.OWNER:
            raise Problem(problem(403, "Only the owner of this Quarry may do this."))
        case None:
            raise Problem(
                problem(403, "This route declares no permission, so it is open to nobody.")
            )
