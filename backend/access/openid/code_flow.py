"""The way of a browser to the provider and back: the code flow (OpenID Connect Core 1.0, 3.1) with PKCE (RFC 7636).

`begin` makes what the browser keeps until it comes back; `finish` accepts what it then brings only together with that.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from backend.access.code_challenge import make_challenge
from backend.access.openid.claims import Identity, read_identity
from backend.access.openid.errors import SignInRefusedError, translated_errors
from backend.access.openid.id_token import Expected, verify_id_token
from backend.access.openid.provider import Provider, ProviderMetadata, client_authentication
from backend.access.openid.signing_keys import SigningKeys
from connectors.errors import NotConfiguredError
from connectors.http_client.response import (
    ClientError,
    MalformedResponse,
    NotAuthorizedError,
    Response,
)

ATTEMPT_LIFETIME = timedelta(minutes=10)
"""How long somebody may take at the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A sign-in that was begun: known to the browser that began it, and to no other."""

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str
    begun_at: datetime


class AuthorizationResponse(BaseModel):
    """What the browser brings back from the provider, in the address."""

    model_config = ConfigDict(frozen=True)

    state: str
    code: str | None = None
    iss: str | None = None
    error: str | None = None


class _Tokens(BaseModel):
    """The response of the token endpoint."""

    id_token: str
    access_token: SecretStr


class CodeFlow:
    """Signs somebody in through one provider. Thread-safe."""

    def __init__(self, provider: Provider, clock: Callable[[], float] = time.monotonic) -> None:
        self._provider = provider
        self._keys = SigningKeys(self._fetch_keys, clock)

    def begin(self, redirect_uri: str, now: datetime) -> tuple[str, Attempt]:
        """Return the address at the provider to which the browser goes, and what it keeps meanwhile.

        Raises:
            NotConfiguredError, TemporarilyUnavailableError: there is no provider, or it does not respond.
        """
        attempt = Attempt(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            redirect_uri=redirect_uri,
            begun_at=now,
        )
        endpoint = self._provider.read_metadata().authorization_endpoint
        query = urlencode(self._authorization_request(attempt))
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}", attempt

    def finish(self, response: AuthorizationResponse, attempt: Attempt, now: datetime) -> Identity:
        """Return who came back.

        Raises:
            SignInRefusedError: what the browser or the provider sent proves nobody.
            NotConfiguredError, TemporarilyUnavailableError: the provider refuses Quarry, or does not respond.
        """
        metadata = self._provider.read_metadata()
        code = _check_response(response, attempt, metadata, now)
        tokens = self._exchange(code, attempt, metadata)
        settings = self._provider.settings
        expected = Expected(
            issuer=settings.issuer, client_id=settings.client_id, nonce=attempt.nonce
        )
        claims = verify_id_token(tokens.id_token, self._keys, expected, now)
        return read_identity(self._provider, claims, tokens.access_token.get_secret_value())

    def _authorization_request(self, attempt: Attempt) -> dict[str, str]:
        return {
            "response_type": "code",
            "client_id": self._provider.settings.client_id,
            "redirect_uri": attempt.redirect_uri,
            "scope": " ".join(self._provider.settings.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": make_challenge(attempt.verifier),
            "code_challenge_method": "S256",
        }

    def _exchange(self, code: str, attempt: Attempt, metadata: ProviderMetadata) -> _Tokens:
        headers, fields = client_authentication(self._provider.settings, metadata)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect_uri,
            "code_verifier": attempt.verifier,
            **fields,
        }
        with translated_errors("the token endpoint of the provider"):
            try:
                response = self._provider.post_form(metadata.token_endpoint, form, headers)
            except (ClientError, NotAuthorizedError) as error:
                raise _explain_refusal(error.response) from error
            return _parse_tokens(response)

    def _fetch_keys(self) -> dict[str, object]:
        url = self._provider.read_metadata().jwks_uri
        return self._provider.get_json(url, "the keys of the provider")


def _check_response(
    response: AuthorizationResponse, attempt: Attempt, metadata: ProviderMetadata, now: datetime
) -> str:
    """Return the code."""
    if not hmac.compare_digest(response.state.encode(), attempt.state.encode()):
        raise SignInRefusedError("This browser began another sign-in. Sign in again.")
    if not timedelta(0) <= now - attempt.begun_at < ATTEMPT_LIFETIME:
        raise SignInRefusedError("The sign-in took too long. Sign in again.")
    # Another provider must not get a code of this one (RFC 9207).
    expects_issuer = metadata.authorization_response_iss_parameter_supported
    if (response.iss is not None or expects_issuer) and response.iss != metadata.issuer:
        raise SignInRefusedError("Another provider than the one that was asked has responded.")
    if response.error is not None or not response.code:
        raise SignInRefusedError(_describe_error(response.error))
    return response.code


def _describe_error(code: str | None) -> str:
    if code == "access_denied":
        return "The sign-in was cancelled, or the provider does not let this account use Quarry."
    return f"The provider reports {_quote(code)}. Sign in again."


def _quote(code: object) -> str:
    """Return the code of an error, without what is no code: the text stands on a page of ours."""
    text = code if isinstance(code, str) else ""
    known = text.isascii() and text.replace("_", "").isalnum() and len(text) <= 50
    return f"the error {text}" if known else "an error"


def _explain_refusal(response: Response) -> SignInRefusedError | NotConfiguredError:
    match code := _read_error_code(response):
        case "invalid_grant":
            return SignInRefusedError(
                "The provider does not accept the code: it was used before, or it is too old. Sign in again."
            )
        case "invalid_client" | "unauthorized_client":
            return NotConfiguredError(
                "The provider does not accept QUARRY_OIDC_CLIENT_ID and QUARRY_OIDC_CLIENT_SECRET."
            )
        case _:
            return SignInRefusedError(f"The provider reports {_quote(code)}. Sign in again.")


def _read_error_code(response: Response) -> object:
    try:
        return response.json_object().get("error")
    except MalformedResponse:
        return None


def _parse_tokens(response: Response) -> _Tokens:
    try:
        return _Tokens.model_validate(response.json_object())
    except ValidationError as error:
        raise SignInRefusedError("The provider sends no ID token.") from error
