"""The endpoints at which programs register, get tokens and give them back."""

from collections.abc import Callable
from datetime import timedelta
from math import ceil
from typing import Annotated, Any, TypeAlias

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from backend.access.oauth.clients import (
    AuthMethod,
    ClientRegistration,
    ClientService,
    GrantType,
    RegisteredClient,
    authenticate_client,
)
from backend.access.oauth.errors import OAuthError, OAuthErrorCode
from backend.access.oauth.grants import (
    ACCESS_LIFETIME,
    CodeExchange,
    GrantService,
    IssuedTokens,
    RefreshRequest,
)
from backend.access.oauth.parameters import Fields, find_parameter, get_parameter, list_values
from backend.access.oauth.resources import SCOPES, name_resource, read_resource
from backend.api.authentication import read_address
from backend.api.authorization import Permission, requires
from backend.api.dependencies import AccountDatabaseDependency
from backend.api.oauth_responses import (
    describe_refusal,
    make_answer,
    read_body,
    read_credentials,
    read_fields,
    refuse,
)
from backend.api.routes.oauth_metadata import get_issuer
from backend.schemas.oauth import (
    ClientMetadata,
    RegisteredClientResponse,
    RevokedResponse,
    TokenResponse,
)
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.errors import TemporarilyUnavailableError

router = APIRouter()
Json: TypeAlias = dict[str, Any]

_CREDENTIALS: Json = {
    "client_id": {"type": "string"},
    "client_secret": {"type": "string", "description": "Here or in the header, as Basic"},
}


def _describe_form(required: list[str], example: Json, **fields: Json) -> Json:
    shape = {"type": "object", "required": required, "properties": {**fields, **_CREDENTIALS}}
    content = {"application/x-www-form-urlencoded": {"schema": shape, "example": example}}
    return {"security": [], "requestBody": {"required": True, "content": content}}


_TEXT: Json = {"type": "string"}
_TOKEN_FORM = _describe_form(
    ["grant_type"],
    {
        "grant_type": "authorization_code",
        "code": "qoac_q6b1…",
        "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        "redirect_uri": "http://127.0.0.1:33418/callback",
        "client_id": "p3cKZ0bq5oVx2l6Yh1r8Aw",
    },
    grant_type={"type": "string", "enum": ["authorization_code", "refresh_token"]},
    code=_TEXT,
    code_verifier=_TEXT,
    redirect_uri=_TEXT,
    refresh_token=_TEXT,
    scope=_TEXT,
    resource=_TEXT,
)
_REVOCATION_FORM = _describe_form(
    ["token"],
    {"token": "qort_x8Zt….k2Lw…", "client_id": "p3cKZ0bq5oVx2l6Yh1r8Aw"},
    token=_TEXT,
    token_type_hint=_TEXT,
)
_REGISTRATION: Json = {
    "security": [],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/ClientMetadata"}}
        },
    },
}
_REFUSALS: dict[int | str, Json] = {
    400: describe_refusal("The request is refused, as RFC 6749 (5.2) has it"),
    401: describe_refusal("The client is not known, or its secret is wrong"),
}
_TOO_MANY: dict[int | str, Json] = {
    429: describe_refusal("Too many clients were registered from this address"),
}

IssuerDependency = Annotated[str, Depends(get_issuer)]


@router.post(
    "/oauth/register",
    status_code=201,
    response_model=RegisteredClientResponse,
    responses={**_REFUSALS, **_TOO_MANY},
    openapi_extra=_REGISTRATION,
    summary="Register a program as a client (RFC 7591)",
    dependencies=[Depends(get_issuer)],
)
@requires(Permission.ANYONE)
async def register_client(request: Request, database: AccountDatabaseDependency) -> JSONResponse:
    """Whoever asks is registered. Redirect URIs begin with https://, or with http:// and 127.0.0.1, [::1] or localhost, where any port is taken
    later. A client that nobody connects within a day is forgotten."""
    service = ClientService(database, Actor("visitor", read_address(request)))
    try:
        wanted = _read_registration(await read_body(request))
        registered = await to_thread.run_sync(service.register, wanted)
    except OAuthError as error:
        return refuse(error)
    except TemporarilyUnavailableError as error:
        return _refuse_for_now(str(error), error.retry_after)
    return make_answer(_describe_client(registered), 201)


@router.post(
    "/oauth/token",
    response_model=TokenResponse,
    responses=_REFUSALS,
    openapi_extra=_TOKEN_FORM,
    summary="Exchange a code, or a refresh token, for tokens (RFC 6749, 4.1.3 and 6)",
)
@requires(Permission.ANYONE)
async def issue_tokens(
    request: Request, issuer: IssuerDependency, database: AccountDatabaseDependency
) -> JSONResponse:
    """An access token is valid for an hour. Codes and refresh tokens are valid once: all tokens of a grant end when one is used again."""
    try:
        fields = await read_fields(request)
        issued = await to_thread.run_sync(_issue_tokens, request, issuer, database, fields)
    except OAuthError as error:
        return refuse(error)
    return make_answer(_describe_tokens(issued))


@router.post(
    "/oauth/revoke",
    response_model=RevokedResponse,
    responses=_REFUSALS,
    openapi_extra=_REVOCATION_FORM,
    summary="Give a token back (RFC 7009)",
    dependencies=[Depends(get_issuer)],
)
@requires(Permission.ANYONE)
async def revoke_token(request: Request, database: AccountDatabaseDependency) -> JSONResponse:
    """All tokens of its grant end with it. One that is not known has ended already."""
    try:
        fields = await read_fields(request)
        await to_thread.run_sync(_revoke, request, database, fields)
    except OAuthError as error:
        return refuse(error)
    return make_answer(RevokedResponse())


def _issue_tokens(
    request: Request, issuer: str, database: Database, fields: Fields
) -> IssuedTokens:
    kind = get_parameter(fields, "grant_type")
    if kind not in {"authorization_code", "refresh_token"}:
        raise OAuthError(
            OAuthErrorCode.UNSUPPORTED_GRANT_TYPE,
            "The grant_type is neither authorization_code nor refresh_token.",
        )
    service = _prove_client(request, database, fields)
    check_resource = _make_resource_check(issuer, list_values(fields, "resource"))
    if kind == "refresh_token":
        given = get_parameter(fields, "refresh_token")
        scope = find_parameter(fields, "scope")
        return service.refresh(RefreshRequest(given, scope, check_resource))
    exchange = CodeExchange(
        code=get_parameter(fields, "code"),
        verifier=get_parameter(fields, "code_verifier"),
        redirect_uri=find_parameter(fields, "redirect_uri"),
        check_resource=check_resource,
    )
    return service.redeem_code(exchange)


def _revoke(request: Request, database: Database, fields: Fields) -> None:
    service = _prove_client(request, database, fields)
    service.revoke(get_parameter(fields, "token"))


def _prove_client(request: Request, database: Database, fields: Fields) -> GrantService:
    client = authenticate_client(database, read_credentials(request, fields))
    return GrantService(database, client, Actor(f"client:{client.id}", read_address(request)))


def _make_resource_check(issuer: str, given: list[str]) -> Callable[[str], None]:
    """Return what checks that tokens are asked for the resource of a grant, where one is named."""

    def check(granted: str) -> None:
        if given and name_resource(issuer, read_resource(issuer, given)) != granted:
            raise OAuthError(
                OAuthErrorCode.INVALID_TARGET, "The resource is another than was granted."
            )

    return check


def _read_registration(body: bytes) -> ClientRegistration:
    """Read what a program says of itself. Raises OAuthError: the metadata are not valid."""
    try:
        given = ClientMetadata.model_validate_json(body)
    except ValidationError as error:
        where = {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
        raise _invalid_metadata(where) from error
    if given.response_types is not None and "code" not in given.response_types:
        raise _invalid_metadata({"response_types"})
    return ClientRegistration(
        name=given.client_name or "",
        redirect_uris=given.redirect_uris,
        auth_method=_read_auth_method(given.token_endpoint_auth_method),
        grant_types=_read_grant_types(given),
        scopes=[one for one in SCOPES if one in (given.scope or "").split(" ")] or SCOPES,
    )


def _read_auth_method(given: str | None) -> AuthMethod:
    match given:
        case "none" | "client_secret_basic" | "client_secret_post":
            return given
        case None:
            return "client_secret_basic"
        case _:
            raise _invalid_metadata({"token_endpoint_auth_method"})


def _read_grant_types(given: ClientMetadata) -> list[GrantType]:
    """Return the grant types that are supported, of those that are asked for."""
    asked = given.grant_types or ("authorization_code",)
    known: tuple[GrantType, ...] = ("authorization_code", "refresh_token")
    if "authorization_code" not in asked:
        raise _invalid_metadata({"grant_types"})
    return [one for one in known if one in asked]


def _invalid_metadata(where: set[str]) -> OAuthError:
    known = sorted(where & set(ClientMetadata.model_fields))
    if known == ["redirect_uris"]:
        return OAuthError(OAuthErrorCode.INVALID_REDIRECT_URI, "The redirect_uris are not valid.")
    return OAuthError(
        OAuthErrorCode.INVALID_CLIENT_METADATA,
        f"Not valid or not supported: {', '.join(known) or 'the JSON object'}.",
    )


def _refuse_for_now(detail: str, retry_after: timedelta) -> JSONResponse:
    error = OAuthError(OAuthErrorCode.TEMPORARILY_UNAVAILABLE, detail)
    return refuse(error, {"Retry-After": str(ceil(retry_after.total_seconds()))})


def _describe_client(registered: RegisteredClient) -> RegisteredClientResponse:
    client = registered.client
    return RegisteredClientResponse(
        client_id=client.id,
        client_id_issued_at=int(client.created_at.timestamp()),
        client_secret=registered.secret,
        client_secret_expires_at=None if registered.secret is None else 0,
        client_name=client.name,
        redirect_uris=tuple(client.redirect_uris),
        grant_types=tuple(client.grant_types),
        token_endpoint_auth_method=client.auth_method,
        scope=" ".join(client.scopes),
    )


def _describe_tokens(issued: IssuedTokens) -> TokenResponse:
    return TokenResponse(
        access_token=issued.access,
        expires_in=int(ACCESS_LIFETIME.total_seconds()),
        refresh_token=issued.refresh,
        scope=" ".join(issued.scopes),
    )
