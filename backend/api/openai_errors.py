"""Errors of the routes below `/v1`, in the shape that programs for OpenAI's API read."""

import re
from collections.abc import Mapping
from typing import Final

from starlette.responses import Response
from starlette.types import Scope

from backend.schemas.openai_error import ErrorType, OpenAiError, OpenAiErrorResponse
from backend.schemas.system import ProblemDetails

PREFIX = "/v1/"
TOO_LONG: Final = "context_length_exceeded"
"""The type of the problem that the language model cannot read all of it; also its code."""
WITHHELD: Final = "content_filter"
"""The same where the provider of the language model withheld the answer."""
_NAME = re.compile(r"(?:body|path|query)\.((?:\w+(?:\.|$))*)")
"""Of a parameter, before the names of its types."""
_INDEX = re.compile(r"\.(\d+)(?=\.|$)")
_TYPES: Mapping[int, ErrorType] = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}


def is_for_openai(scope: Scope) -> bool:
    """Return whether a request is one of a program for OpenAI's API."""
    path: str = scope["path"]
    return path.startswith(PREFIX)


def make_error(found: ProblemDetails) -> OpenAiErrorResponse:
    faults = _list_faults(found)
    param = next(iter(faults), None) or None
    said = [f"{name}: {message}." if name else f"{message}." for name, message in faults.items()]
    if not faults:
        said = [part for part in (found.detail, found.advice) if part]
    error = OpenAiError(
        message=" ".join(said),
        type="server_error" if found.status >= 500 else _find_type(found.status),
        param=param,
        code=_find_code(found, param),
    )
    return OpenAiErrorResponse(error=error)


def make_response(found: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response; what is not valid has the status that OpenAI gives it."""
    status = 400 if found.status == 422 else found.status
    content = make_error(found).model_dump_json()
    return Response(content, status, dict(headers or {}), media_type="application/json")


def _list_faults(found: ProblemDetails) -> dict[str, str]:
    """Return the first fault of each parameter; that of the body as a whole without a name."""
    faults: dict[str, str] = {}
    for one in found.errors:
        faults.setdefault(_name_parameter(one.where), one.message.removesuffix("."))
    return faults


def _name_parameter(where: str) -> str:
    found = _NAME.match(where)
    name = found[1].removesuffix(".") if found else ""
    if name.isdecimal():
        # The place in a body that is no JSON.
        return ""
    return _INDEX.sub(r"[\1]", name)


def _find_type(status: int) -> ErrorType:
    return _TYPES.get(status, "invalid_request_error")


def _find_code(found: ProblemDetails, param: str | None) -> str | None:
    match found.status, param:
        case 400, _ if found.type == TOO_LONG:
            return TOO_LONG
        case 400, _ if found.type == WITHHELD:
            return WITHHELD
        case 401, _:
            return "invalid_api_key"
        case 404, "model":
            return "model_not_found"
        case _:
            return None
