"""The ID token: what the provider states of somebody, signed (OpenID Connect Core 1.0, 2 and 3.1.3.7)."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from joserfc.errors import BadSignatureError, JoseError
from joserfc.jws import JWSRegistry, extract_compact
from joserfc.jwt import decode

from backend.access.openid.errors import SignInRefusedError
from backend.access.openid.signing_keys import SigningKeys

LEEWAY = timedelta(seconds=120)
"""By how much the clocks of Quarry and of the provider may differ."""
ALGORITHMS: Mapping[str, str] = MappingProxyType(
    {
        "RS256": "RSA",
        "RS384": "RSA",
        "RS512": "RSA",
        "PS256": "RSA",
        "PS384": "RSA",
        "PS512": "RSA",
        "ES256": "EC",
        "ES384": "EC",
        "ES512": "EC",
        "Ed25519": "OKP",
    }
)
"""Those accepted, with the type of their keys: signatures that only the provider can make. Never what a token asks for."""

_LONGEST_SUBJECT = 255


class _Registry(JWSRegistry):
    """Tokens of up to 128 KB, with certificates in their header; unknown headers are ignored (RFC 7515, 4)."""

    max_header_length = 16_384


_REGISTRY = _Registry(algorithms=list(ALGORITHMS), strict_check_header=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a token has to be made for."""

    issuer: str
    client_id: str
    nonce: str


def verify_id_token(
    token: str, keys: SigningKeys, expected: Expected, now: datetime
) -> dict[str, Any]:
    """Return the claims of a token, once all that the standard demands of it was checked.

    Raises:
        SignInRefusedError: one of the checks failed; the message says which.
        TemporarilyUnavailableError: the keys of the provider cannot be read.
    """
    claims = _verify_signature(token, keys)
    if claims.get("iss") != expected.issuer:
        raise SignInRefusedError("The ID token is of another issuer.")
    _check_audience(claims, expected.client_id)
    _check_times(claims, now)
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), expected.nonce.encode()):
        raise SignInRefusedError("The ID token was made for another sign-in (nonce).")
    match claims.get("sub"):
        case str(subject) if 0 < len(subject) <= _LONGEST_SUBJECT:
            return claims
        case _:
            raise SignInRefusedError("The ID token does not say whose it is (sub).")


def _verify_signature(token: str, keys: SigningKeys) -> dict[str, Any]:
    try:
        header = extract_compact(token.encode(), registry=_REGISTRY).headers()
        algorithm, key_id = str(header.get("alg")), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise SignInRefusedError(
                f"The ID token is signed by an algorithm that is not accepted: {algorithm[:20]!r}."
            )
        return _decode(token, keys, key_id, ALGORITHMS[algorithm])
    except (JoseError, ValueError) as error:
        raise SignInRefusedError("The ID token is not valid: its signature is wrong.") from error


def _decode(token: str, keys: SigningKeys, key_id: str | None, key_type: str) -> dict[str, Any]:
    key = keys.find(key_id, key_type)
    try:
        return decode(token, key, registry=_REGISTRY).claims
    except BadSignatureError:
        newer = keys.find_newer(key, key_id, key_type)
        if newer is None:
            raise
        return decode(token, newer, registry=_REGISTRY).claims


def _check_audience(claims: Mapping[str, Any], client_id: str) -> None:
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    authorized = claims.get("azp", client_id if audiences == [client_id] else None)
    if client_id not in audiences or authorized != client_id:
        raise SignInRefusedError("The ID token is made for another application (audience).")


def _check_times(claims: Mapping[str, Any], now: datetime) -> None:
    issued, expires = _read_time(claims, "iat"), _read_time(claims, "exp")
    difference = issued - now
    if abs(difference) > LEEWAY:
        direction = "ahead of" if difference > timedelta(0) else "behind"
        raise SignInRefusedError(
            f"The clock of the provider is {abs(difference).total_seconds():.0f} s {direction} the clock of Quarry;"
            f" more than {LEEWAY.total_seconds():.0f} s are not accepted. Set the clocks by a time server."
        )
    if expires + LEEWAY <= now:
        raise SignInRefusedError("The ID token has expired.")
    if "nbf" in claims and _read_time(claims, "nbf") - LEEWAY > now:
        raise SignInRefusedError("The ID token is not valid yet.")


def _read_time(claims: Mapping[str, Any], name: str) -> datetime:
    match claims.get(name):
        case int() | float() as seconds if not isinstance(seconds, bool) and 0 < seconds < 2**35:
            return datetime.fromtimestamp(seconds, UTC)
        case _:
            raise SignInRefusedError(f"The ID token does not state a time that it has to ({name}).")
