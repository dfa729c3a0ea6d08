"""What goes wrong, as problem details (RFC 9457): what happened, and what to do next."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from math import ceil
from typing import Any, TypeAlias

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from backend.api.request_context import visit_in
from backend.schemas.system import FieldError, ProblemDetails
from connectors.errors import (
    ActionRequiredError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    TemporarilyUnavailableError,
)
from indexing.runtime.deadline import DeadlineExceededError

MEDIA_TYPE = "application/problem+json"
MOST_FAULTS = 20

ErrorPage: TypeAlias = Callable[[Request, ProblemDetails], Response]
"""The same problem for people, who look at it in a browser."""

_FOR_PROGRAMS = ("/api/", "/healthz", "/readyz", "/openapi.json")


class Problem(Exception):
    """Ends a request with a problem."""

    def __init__(self, problem: ProblemDetails, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers or {}


def problem(status: int, detail: str, advice: str | None = None) -> ProblemDetails:
    title = HTTPStatus(status).phrase
    return ProblemDetails(title=title, status=status, detail=detail, advice=advice)


def of_error(
    error: TemporarilyUnavailableError | ActionRequiredError | DeadlineExceededError,
) -> ProblemDetails:
    """What stopped a piece of work, told by what to do about it."""
    match error:
        case TemporarilyUnavailableError():
            return problem(503, str(error), f"Try again in {_seconds(error)} s.")
        case DeadlineExceededError():
            return problem(504, "The time for this was up.", "Try again, or allow more time.")
        case NotFoundError():
            return problem(404, str(error))
        case ConflictError():
            return problem(409, str(error))
        case InvalidInputError():
            return problem(422, str(error))
        case _:
            return problem(
                500, str(error), "Whoever runs Quarry has to mend this; quarry doctor says more."
            )


def response(found: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
    content = found.model_dump_json(exclude_none=True, exclude=None if found.errors else {"errors"})
    return Response(content, found.status, dict(headers or {}), media_type=MEDIA_TYPE)


def register(app: FastAPI, error_page: ErrorPage | None) -> None:
    """Tell every error of `app` as a problem; to browsers, but for the API, as a page."""
    tell = _Teller(error_page)
    app.add_exception_handler(Problem, tell.problem)
    app.add_exception_handler(HTTPException, tell.refusal)
    app.add_exception_handler(RequestValidationError, tell.invalid)
    for kind in (TemporarilyUnavailableError, ActionRequiredError, DeadlineExceededError):
        app.add_exception_handler(kind, tell.stopped)
    app.add_exception_handler(Exception, tell.mistake)


class _Teller:
    def __init__(self, error_page: ErrorPage | None) -> None:
        self._error_page = error_page

    def problem(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, Problem):
            raise error
        return self._told(request, error.problem, error.headers)

    def refusal(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        return self._told(request, _refused(request, error), error.headers)

    def invalid(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, RequestValidationError):
            raise error
        return self._told(request, _invalid(error.errors()))

    def stopped(self, request: Request, error: Exception) -> Response:
        if not isinstance(
            error, TemporarilyUnavailableError | ActionRequiredError | DeadlineExceededError
        ):
            raise error
        headers = (
            {"Retry-After": str(_seconds(error))}
            if isinstance(error, TemporarilyUnavailableError)
            else None
        )
        return self._told(request, of_error(error), headers)

    def mistake(self, request: Request, error: Exception) -> Response:
        """A mistake in the program: the log says more, under the id of the request."""
        del error
        detail = f"Something went wrong within Quarry. Its log says more: {_id(request)}."
        return self._told(request, problem(500, detail, "Try again; if it stays, report it."))

    def _told(
        self, request: Request, found: ProblemDetails, headers: Mapping[str, str] | None = None
    ) -> Response:
        if self._error_page is None or not _for_people(request):
            return response(found, headers)
        page = self._error_page(request, found)
        page.headers.update(headers or {})
        return page


def _for_people(request: Request) -> bool:
    programs = request.url.path.startswith(_FOR_PROGRAMS)
    return not programs and "text/html" in request.headers.get("accept", "")


def _refused(request: Request, error: HTTPException) -> ProblemDetails:
    match error.status_code:
        case 404:
            return problem(404, "There is nothing at this address.")
        case 405:
            return problem(405, f"{request.method} cannot be asked of this address.")
        case status:
            return problem(status, str(error.detail))


def _invalid(faults: Sequence[Mapping[str, Any]]) -> ProblemDetails:
    """What was sent is not told back: it may be private, and it may be long."""
    return ProblemDetails(
        title=HTTPStatus.UNPROCESSABLE_ENTITY.phrase,
        status=422,
        detail="The request is not valid.",
        advice="See errors, and /openapi.json for what is expected.",
        errors=tuple(
            FieldError(where=".".join(map(str, fault["loc"])), message=str(fault["msg"]))
            for fault in faults[:MOST_FAULTS]
        ),
    )


def _seconds(error: TemporarilyUnavailableError) -> int:
    return max(1, ceil(error.retry_after.total_seconds()))


def _id(request: Request) -> str:
    return visit_in(request.scope).request_id
