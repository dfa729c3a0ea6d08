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
from starlette.routing import BaseRoute

from backend.api.problem_details import Problem, problem
from backend.api.request_context import get_request_context
from connectors.access import Readers

AskerKind: TypeAlias = Literal["local"]

_ATTRIBUTE = "quarry_permission"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    kind: AskerKind
    readers: Readers
    is_owner: bool
    """Whether the asker may see and change what is connected."""


class Authenticator(Protocol):
    """Identifies the asker of a request."""

    async def authenticate(self, request: Request) -> Asker: ...


@dataclass(frozen=True, slots=True)
class LocalAuthenticator:
    """Takes every request for one of the person at this machine.

    Right only where nobody else can reach the server: see `request_guard` and `backend.cli.serve`.
    """

    readers: Readers

    async def authenticate(self, request: Request) -> Asker:
        del request
        return Asker(kind="local", readers=self.readers, is_owner=True)


async def get_asker(request: Request) -> Asker:
    authenticator: Authenticator = request.app.state.authenticator
    asker = await authenticator.authenticate(request)
    get_request_context(request.scope).asker = asker.kind
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


async def check_permission(request: Request, asker: AskerDependency) -> None:
    """Refuse an asker who lacks the permission of the route.

    Raises:
        Problem: 403.
    """
    match get_permission(request.scope.get("endpoint")):
        case Permission.ANYONE | Permission.READER:
            return
        case Permission.OWNER if asker.is_owner:
            return
        case Permission.OWNER:
            raise Problem(problem(403, "Only the owner of this Quarry may do this."))
        case None:
            raise Problem(
                problem(403, "This route declares no permission, so it is open to nobody.")
            )
