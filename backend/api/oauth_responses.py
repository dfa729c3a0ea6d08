"""Answers of the endpoints of OAuth, and what programs send there."""

import base64
import binascii
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, unquote

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from backend.access.oauth.clients import ClientCredentials
from backend.access.oauth.errors import OAuthError, OAuthErrorCode
from backend.access.oauth.parameters import Fields, find_parameter
from backend.schemas.oauth import OAuthErrorResponse

MOST_BYTES = 50_000
"""Of a request to an endpoint."""
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 50
_NO_STORE: Mapping[str, str] = MappingProxyType({"Cache-Control": "no-store", "Pragma": "no-cache"})
"""Of every answer (RFC 6749, 5.1)."""


def make_answer(model: BaseModel, status: int = HTTPStatus.OK) -> JSONResponse:
    return JSONResponse(model.model_dump(exclude_none=True), status, dict(_NO_STORE))


def refuse(error: OAuthError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a refusal as RFC 6749 (5.2) has it."""
    described = OAuthErrorResponse(error=error.code, error_description=error.description)
    answer = make_answer(described, _STATUSES.get(error.code, HTTPStatus.BAD_REQUEST))
    if error.code is OAuthErrorCode.INVALID_CLIENT:
        answer.headers["WWW-Authenticate"] = 'Basic realm="Quarry"'
    answer.headers.update(headers or {})
    return answer


_STATUSES: Mapping[OAuthErrorCode, HTTPStatus] = MappingProxyType(
    {
        OAuthErrorCode.INVALID_CLIENT: HTTPStatus.UNAUTHORIZED,
        OAuthErrorCode.TEMPORARILY_UNAVAILABLE: HTTPStatus.TOO_MANY_REQUESTS,
    }
)


async def read_body(request: Request) -> bytes:
    """Return the body of a request. Raises OAuthError: it is too long."""
    body = await request.body()
    if len(body) > MOST_BYTES:
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, "The request is too long.")
    return body


async def read_fields(request: Request) -> Fields:
    """Return the fields of a form. Raises OAuthError: it is none."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await read_body(request)
    try:
        if media_type != _FORM:
            raise ValueError(media_type)
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise OAuthError(
            OAuthErrorCode.INVALID_REQUEST, f"Send a form, as {_FORM} in UTF-8."
        ) from error


def read_credentials(request: Request, fields: Fields) -> ClientCredentials:
    """Return as which client a program comes: by the header or by the form, not by both (RFC 6749, 2.3).

    Raises:
        OAuthError: it says nothing that can be read.
    """
    client_id, secret = (find_parameter(fields, name) for name in ("client_id", "client_secret"))
    basic = _read_basic(request)
    if basic is None and client_id is None:
        raise OAuthError(OAuthErrorCode.INVALID_CLIENT, "The client_id is missing.")
    if basic is None:
        return ClientCredentials(client_id or "", secret)
    if secret is not None or client_id not in {None, basic.client_id}:
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, "The client is named in two ways.")
    return basic


def _read_basic(request: Request) -> ClientCredentials | None:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(given.strip(), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise OAuthError(
            OAuthErrorCode.INVALID_CLIENT, "The header Authorization cannot be read."
        ) from error
    client_id, _, secret = decoded.partition(":")
    return ClientCredentials(unquote(client_id), unquote(secret) or None)


def describe_refusal(description: str) -> dict[str, Any]:
    """Describe a refusal for the OpenAPI description."""
    example = OAuthErrorResponse.example().model_dump()
    schema = {"$ref": f"#/components/schemas/{OAuthErrorResponse.__name__}"}
    content = {"application/json": {"schema": schema, "example": example}}
    return {"description": description, "content": content}
