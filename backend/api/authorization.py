"""Who may use a route. Each has exactly one rule; one without any is open to nobody.

@app.get("/api/sources")
@ruled(Rule.OWNER)
def sources(...): ...
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from fastapi import Request
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import BaseRoute

from backend.api.authentication import AskerIs
from backend.api.problem_details import Problem, problem

_RULE = "quarry_rule"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Rule(StrEnum):
    ANYONE = "anyone"
    """It tells nothing of what is held."""
    READER = "reader"
    """It tells the asker no more than the asker's readers may read."""
    OWNER = "owner"
    """It tells, or changes, what is connected."""


def ruled(rule: Rule) -> Callable[[Endpoint], Endpoint]:
    def note(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _RULE, rule)
        return endpoint

    return note


def rule_of(endpoint: object) -> Rule | None:
    rule: Rule | None = getattr(endpoint, _RULE, None)
    return rule


def unruled(routes: Sequence[BaseRoute]) -> Iterator[str]:
    """The paths of all routes that no rule opens.

    `admitted` is asked by routes of FastAPI alone; one of another kind must be open to anyone.
    """
    for context in iter_route_contexts(routes):
        route = context.original_route
        rule = rule_of(getattr(route, "endpoint", None))
        if rule is None or not (rule is Rule.ANYONE or isinstance(route, APIRoute)):
            yield str(getattr(route, "path", route))


async def admitted(request: Request, asker: AskerIs) -> None:
    """Let through whom the rule of the route lets through, and nobody else."""
    match rule_of(request.scope.get("endpoint")):
        case Rule.ANYONE | Rule.READER:
            return
        case Rule.OWNER if asker.is_owner:
            return
        case Rule.OWNER:
            raise Problem(problem(403, "Only the owner of this Quarry may do this."))
        case None:
            raise Problem(problem(403, "No rule opens this route, so that it is open to nobody."))
