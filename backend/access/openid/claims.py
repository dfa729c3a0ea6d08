"""From claims to what Quarry takes over of somebody: name, address and groups."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from backend.access.openid.errors import SignInRefusedError
from backend.access.openid.provider import Provider, is_protected

Claims = Mapping[str, Any]

_MOST_GROUPS = 20_000
_GROUPS_OF_USER = "getMemberObjects"
"""The end of the address that Microsoft Entra names where somebody is in more groups than fit in a token."""
_RETIRED_HOST = "graph.windows.net"
_MICROSOFT_GRAPH = "https://graph.microsoft.com/v1.0/me/getMemberObjects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody, as the provider knows them. Only issuer and subject never change."""

    issuer: str
    subject: str
    email: str | None
    """As `normalize_email` takes it."""
    email_verified: bool
    """The provider states that the address was verified."""
    name: str
    groups: frozenset[str]


def read_identity(provider: Provider, token: Claims, access_token: str) -> Identity:
    """Take what the ID token says, and ask the provider for what it leaves out.

    Raises:
        SignInRefusedError: the provider's further responses cannot be used.
        TemporarilyUnavailableError: the provider does not respond.
    """
    claim_sets = [token, *_read_userinfo(provider, token, access_token)]
    email, verified = _find_email(claim_sets)
    names = (claims.get(key) for key in ("name", "preferred_username") for claims in claim_sets)
    return Identity(
        issuer=token["iss"],
        subject=token["sub"],
        email=email,
        email_verified=verified,
        name=next((name for name in names if isinstance(name, str) and name.strip()), ""),
        groups=_find_groups(provider, claim_sets, access_token),
    )


def _read_userinfo(provider: Provider, token: Claims, access_token: str) -> Iterable[Claims]:
    """Yield what the provider says beyond the token, unless the token says all that is needed."""
    url = provider.read_metadata().userinfo_endpoint
    needed = ("email", "email_verified", "name")
    complete = all(key in token for key in needed) and (
        provider.settings.groups_claim in token or _overflow(token, provider.settings.groups_claim)
    )
    if url is None or complete:
        return
    more = provider.get_json(url, "the user information of the provider", access_token)
    if more.get("sub") != token["sub"]:
        raise SignInRefusedError("The user information of the provider is of somebody else.")
    yield more


def _find_email(claim_sets: Sequence[Claims]) -> tuple[str | None, bool]:
    """Return the first address, and whether it is verified: by what is said of it, not of another one."""
    emails = [_fold_case(str(claims.get("email") or "").strip()) for claims in claim_sets]
    email = next(filter(None, emails), None)
    said = [
        claims[key] in (True, "true", "True", "1", 1)
        for claims, each in zip(claim_sets, emails, strict=True)
        for key in ("email_verified", "xms_edov")  # the second is Entra's
        if each == email and key in claims
    ]
    return email, email is not None and bool(said) and all(said)


def _fold_case(email: str) -> str:
    """Leave what is not ASCII to `normalize_email`, which refuses letters that only look like others."""
    return email.lower() if email.isascii() else email


def _find_groups(
    provider: Provider, claim_sets: Sequence[Claims], access_token: str
) -> frozenset[str]:
    name = provider.settings.groups_claim
    for claims in claim_sets:
        if name in claims:
            return _parse_groups(claims[name])
        if source := _overflow(claims, name):
            return _fetch_groups(provider, source, access_token)
    return frozenset()


def _overflow(claims: Claims, name: str) -> Claims | None:
    """Return where the groups are to be fetched (OpenID Connect Core 1.0, 5.6.2)."""
    match claims:
        case {"_claim_names": dict(names), "_claim_sources": dict(sources)}:
            source = sources.get(names.get(name))
            return source if isinstance(source, dict) else None
        case _:
            return None


def _fetch_groups(provider: Provider, source: Claims, access_token: str) -> frozenset[str]:
    subject = "the groups of the person at the provider"
    url, token = str(source.get("endpoint", "")), str(source.get("access_token", access_token))
    if urlsplit(url).hostname == _RETIRED_HOST:
        url = _MICROSOFT_GRAPH
    if not is_protected(url, provider.settings.issuer):
        raise SignInRefusedError(
            "The provider says that groups are at an address that is not encrypted."
        )
    if url.rstrip("/").endswith(_GROUPS_OF_USER):
        found = provider.post_json(url, subject, token, {"securityEnabledOnly": False})
        return _parse_groups(found.get("value"))
    return _parse_groups(provider.get_json(url, subject, token).get(provider.settings.groups_claim))


def _parse_groups(value: object) -> frozenset[str]:
    """Accept a list of names and, as some providers send it, one name alone or null."""
    names = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SignInRefusedError("The provider does not state groups as a list of names.")
    if len(names) > _MOST_GROUPS:
        raise SignInRefusedError(f"The provider states more than {_MOST_GROUPS} groups.")
    cleaned = (" ".join(name.split()) for name in names)
    return frozenset(name for name in cleaned if name and name.isprintable())
