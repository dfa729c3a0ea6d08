"""Errors as problem details (RFC 9457): what happened, and what to do next."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from math import ceil
from types import MappingProxyType
from typing import Any, TypeAlias

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from backend.api import openai_errors
from backend.api.request_context import get_request_context
from backend.chat.events import AnswerFailedError
from backend.schemas.system import FieldError, ProblemDetails
from connectors.errors import (
    ActionRequiredError,
    ConflictError,
    DamagedDataError,
    InvalidInputError,
    NotAllowedError,
    NotConfiguredError,
    NotFoundError,
    QuarryError,
    SourceAuthError,
    SourceError,
    TemporarilyUnavailableError,
)
from connectors.registry import InvalidSourceError
from indexing.runtime.deadline import DeadlineExceededError

MEDIA_TYPE = "application/problem+json"
MOST_FAULTS = 20

ErrorPage: TypeAlias = Callable[[Request, ProblemDetails], Response]
"""Renders the problem as a page for browsers."""

_FOR_PROGRAMS = ("/api/", openai_errors.PREFIX, "/healthz", "/readyz", "/openapi.json", "/llms.txt")


class Problem(Exception):
    """Ends a request with a problem."""

    def __init__(self, problem: ProblemDetails, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers or {}


def problem(status: int, detail: str, advice: str | None = None) -> ProblemDetails:
    title = HTTPStatus(status).phrase
    return ProblemDetails(title=title, status=status, detail=detail, advice=advice)


STOPPING = problem(503, "The server is stopping.", "Ask again when it is back.")
BROKEN = problem(500, "An internal error occurred. The log says more.", "Ask again.")
"""What ends a stream of events, and an answer that is sent whole."""

_DOCTOR = "See quarry doctor."
STATUSES: Mapping[type[Exception], tuple[int, str | None]] = MappingProxyType(
    {
        NotAllowedError: (403, None),
        NotFoundError: (404, None),
        ConflictError: (409, None),
        InvalidInputError: (422, None),
        SourceAuthError: (502, "Check the credential of the source and what it may access."),
        SourceError: (502, "Check the source, then sync it again."),
        NotConfiguredError: (503, f"The settings of this installation must be changed. {_DOCTOR}"),
        DamagedDataError: (500, f"The data of this installation must be repaired. {_DOCTOR}"),
        AnswerFailedError: (503, None),
        ActionRequiredError: (500, f"Something on this installation must be fixed. {_DOCTOR}"),
        TemporarilyUnavailableError: (503, "Try again later."),
        DeadlineExceededError: (504, "Try again, or allow more time."),
    }
)
"""What each expected error becomes: the status, and the advice where the error has none and its message does not say
what to do. The exit codes of the same errors are `EXIT_CODES` of `backend.cli.command_line`."""


def from_error(error: Exception) -> ProblemDetails:
    """Return the problem of an error in `STATUSES`, or of a subclass.

    Raises:
        ValueError: it has no status, and should have been caught before.
    """
    if isinstance(error, InvalidSourceError):
        return _invalid_settings(error)
    kind = next((one for one in type(error).__mro__ if one in STATUSES), None)
    if kind is None:
        raise ValueError(f"{type(error).__name__} has no status") from error
    status, advice = STATUSES[kind]
    detail = "The time limit was reached." if status == 504 else str(error)
    return problem(status, detail, _find_advice(error) or advice)


def _find_advice(error: Exception) -> str | None:
    match error:
        case QuarryError(advice=str(advice)):
            return advice
        case TemporarilyUnavailableError():
            return f"Try again in {_seconds(error)} s."
        case _:
            return None


def _invalid_settings(error: InvalidSourceError) -> ProblemDetails:
    """Return each fault by its field; nothing of a credential is repeated."""
    faults = tuple(
        FieldError(where=".".join(one.path), message=one.message) for one in error.errors
    )
    details = problem(422, error.summary, "See errors.")
    return details.model_copy(update={"errors": faults})


def response(found: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
    content = found.model_dump_json(exclude_none=True, exclude=None if found.errors else {"errors"})
    return Response(content, found.status, dict(headers or {}), media_type=MEDIA_TYPE)


def respond(
    scope: Scope, found: ProblemDetails, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a problem in the shape that the program which sent the request reads."""
    if openai_errors.is_for_openai(scope):
        return openai_errors.make_response(found, headers)
    return response(found, headers)


def register(app: FastAPI, error_page: ErrorPage | None) -> None:
    """Answer every error of `app` with problem details; outside of the API, to browsers, with a page."""
    handlers = _ErrorHandlers(error_page)
    app.add_exception_handler(Problem, handlers.problem)
    app.add_exception_handler(HTTPException, handlers.http_exception)
    app.add_exception_handler(RequestValidationError, handlers.invalid_request)
    for kind in STATUSES:
        app.add_exception_handler(kind, handlers.expected_error)
    app.add_exception_handler(Exception, handlers.unexpected_error)


class _ErrorHandlers:
    def __init__(self, error_page: ErrorPage | None) -> None:
        self._error_page = error_page

    def problem(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, Problem):
            raise error
        return self._respond(request, error.problem, error.headers)

    def http_exception(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        return self._respond(request, _from_http_exception(request, error), error.headers)

    def invalid_request(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, RequestValidationError):
            raise error
        return self._respond(request, _from_validation(error.errors()))

    def expected_error(self, request: Request, error: Exception) -> Response:
        headers = (
            {"Retry-After": str(_seconds(error))}
            if isinstance(error, TemporarilyUnavailableError)
            else None
        )
        return self._respond(request, from_error(error), headers)

    def unexpected_error(self, request: Request, error: Exception) -> Response:
        """Answer an error in the program: the log says more, under the id of the request."""
        del error
        detail = f"An internal error occurred. The log says more: request {_id(request)}."
        return self._respond(
            request, problem(500, detail, "Try again. If it happens again, report it.")
        )

    def _respond(
        self, request: Request, found: ProblemDetails, headers: Mapping[str, str] | None = None
    ) -> Response:
        if self._error_page is None or not _wants_page(request):
            return respond(request.scope, found, headers)
        page = self._error_page(request, found)
        page.headers.update(headers or {})
        return page


def _wants_page(request: Request) -> bool:
    programs = request.url.path.startswith(_FOR_PROGRAMS)
    return not programs and "text/html" in request.headers.get("accept", "")


def _from_http_exception(request: Request, error: HTTPException) -> ProblemDetails:
    match error.status_code:
        case 404:
            return problem(404, "There is no page or route at this address.")
        case 405:
            return problem(405, f"This address does not support {request.method}.")
        case status:
            return problem(status, str(error.detail))


def _from_validation(faults: Sequence[Mapping[str, Any]]) -> ProblemDetails:
    """Return the problem of a request that is not valid, without what was sent: it may be private, and long."""
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
    return get_request_context(request.scope).request_id
