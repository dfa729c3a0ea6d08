"""Authorization: every route declares exactly one permission; a route without one is open to nobody.

@app.get("/api/sources")
@requires(Permission.OWNER)
def sources(...): ...
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from fastapi import Request
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import BaseRoute

from backend.api.authentication import AskerDependency
from backend.api.problem_details import Problem, problem

_ATTRIBUTE = "quarry_permission"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


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
