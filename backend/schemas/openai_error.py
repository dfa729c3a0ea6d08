"""JSON of errors as programs for OpenAI's API read them."""

from typing import Literal, TypeAlias

from backend.schemas.base import Schema, with_example

ErrorType: TypeAlias = Literal[
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "rate_limit_error",
    "server_error",
]


class OpenAiError(Schema):
    message: str
    type: ErrorType
    param: str | None
    """The parameter that is wrong, where one is."""
    code: str | None


class OpenAiErrorResponse(Schema):
    model_config = with_example(
        error={
            "message": "tools: Quarry does not honor this parameter; leave it out.",
            "type": "invalid_request_error",
            "param": "tools",
            "code": None,
        }
    )

    error: OpenAiError
