"""JSON of OAuth, in the words of its standards: metadata, registration, tokens, errors."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from backend.access.oauth.clients import AuthMethod, GrantType
from backend.schemas.base import Schema, with_example

_SITE = "https://quarry.example.com"
_MOST_LISTED = 20
_LONGEST = 2_000

_Text = Annotated[str, Field(max_length=_LONGEST)]


class ProtectedResourceMetadata(Schema):
    """Which server issues tokens for a resource (RFC 9728, 2)."""

    model_config = with_example(
        resource=f"{_SITE}/mcp",
        authorization_servers=[_SITE],
        scopes_supported=["search", "ask"],
        bearer_methods_supported=["header"],
        resource_name="Quarry",
    )

    resource: str
    authorization_servers: tuple[str, ...]
    scopes_supported: tuple[str, ...]
    bearer_methods_supported: tuple[str, ...] = ("header",)
    resource_name: str = "Quarry"


class AuthorizationServerMetadata(Schema):
    """Where programs register, ask and get tokens (RFC 8414, 2)."""

    model_config = with_example(
        issuer=_SITE,
        authorization_endpoint=f"{_SITE}/oauth/authorize",
        token_endpoint=f"{_SITE}/oauth/token",
        registration_endpoint=f"{_SITE}/oauth/register",
        revocation_endpoint=f"{_SITE}/oauth/revoke",
        scopes_supported=["search", "ask"],
    )

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    scopes_supported: tuple[str, ...]
    response_types_supported: tuple[str, ...] = ("code",)
    response_modes_supported: tuple[str, ...] = ("query",)
    grant_types_supported: tuple[GrantType, ...] = ("authorization_code", "refresh_token")
    token_endpoint_auth_methods_supported: tuple[AuthMethod, ...] = (
        "none",
        "client_secret_basic",
        "client_secret_post",
    )
    revocation_endpoint_auth_methods_supported: tuple[AuthMethod, ...] = (
        "none",
        "client_secret_basic",
        "client_secret_post",
    )
    code_challenge_methods_supported: tuple[str, ...] = ("S256",)
    authorization_response_iss_parameter_supported: bool = True


class ClientMetadata(BaseModel):
    """What a program says of itself (RFC 7591, 2); what is not understood is ignored, as the standard has it."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "client_name": "An editor",
                    "redirect_uris": ["http://127.0.0.1/callback"],
                    "grant_types": ["authorization_code", "refresh_token"],
                    "token_endpoint_auth_method": "none",
                    "scope": "search ask",
                }
            ]
        },
    )

    redirect_uris: Annotated[tuple[_Text, ...], Field(min_length=1, max_length=_MOST_LISTED)]
    client_name: _Text | None = None
    token_endpoint_auth_method: _Text | None = None
    grant_types: Annotated[tuple[_Text, ...], Field(max_length=_MOST_LISTED)] | None = None
    response_types: Annotated[tuple[_Text, ...], Field(max_length=_MOST_LISTED)] | None = None
    scope: _Text | None = None


class RegisteredClientResponse(Schema):
    """A client as it is registered (RFC 7591, 3.2.1); the secret is in this answer alone."""

    model_config = with_example(
        client_id="p3cKZ0bq5oVx2l6Yh1r8Aw",
        client_id_issued_at=1_772_443_800,
        client_name="An editor",
        redirect_uris=["http://127.0.0.1/callback"],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
        scope="search ask",
    )

    client_id: str
    client_id_issued_at: int
    client_secret: str | None = None
    client_secret_expires_at: int | None = None
    """0: it does not expire; there only with a secret."""
    client_name: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...] = ("code",)
    token_endpoint_auth_method: str
    scope: str


class TokenResponse(Schema):
    """Tokens of a grant (RFC 6749, 5.1)."""

    model_config = with_example(
        access_token="qoat_q6b1…",
        token_type="Bearer",
        expires_in=3_600,
        refresh_token="qort_x8Zt….k2Lw…",
        scope="search ask",
    )

    access_token: str
    token_type: Literal["Bearer"] = "Bearer"
    expires_in: int
    """Seconds."""
    refresh_token: str | None = None
    scope: str


class OAuthErrorResponse(Schema):
    """A refusal (RFC 6749, 5.2)."""

    model_config = with_example(
        error="invalid_grant",
        error_description="The code or the token is not valid, has expired, or was used before.",
    )

    error: str
    error_description: str


class RevokedResponse(Schema):
    """The token, and all of its grant, is not valid any more, or was not before."""

    model_config = with_example()
