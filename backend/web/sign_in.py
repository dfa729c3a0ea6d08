"""The link that lets a browser in."""

from typing import Annotated

from fastapi import FastAPI, Query
from fastapi.responses import RedirectResponse, Response

from backend.access.machine_secret import SESSION_LIFETIME, MachineSecret
from backend.api.authentication import CHALLENGE
from backend.api.authorization import Permission, requires
from backend.api.problem_details import Problem, problem


def mount_link(app: FastAPI, secret: MachineSecret) -> None:
    """Add the address of the links that are made with the secret."""

    @requires(Permission.ANYONE)
    def open_link(code: Annotated[str, Query(max_length=200)] = "") -> Response:
        if not secret.is_link_code(code):
            detail = "This link is not valid, or no longer."
            raise Problem(problem(401, detail, "Run quarry link for a new one."), CHALLENGE)
        return _begin_session(secret)

    app.get("/link", include_in_schema=False)(open_link)


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
