"""API tokens: what a program proves itself with, for what it is meant to do, and until when."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from backend.store import api_tokens, audit
from backend.store.api_tokens import ApiToken
from backend.store.database import Database
from connectors.errors import InvalidInputError

PREFIX = "qry_"
"""Of every token, so that it is recognized where it should not be, such as in a repository."""
LONGEST_LIFETIME = timedelta(days=366)
USE_PRECISION = timedelta(minutes=1)
"""A use is recorded if the last recorded one is at least so long ago."""

_BYTES = 32
_NAME = re.compile(r"[\w.@-]{1,100}")


class TokenScope(StrEnum):
    """What a token may be used for. A session, and the secret of the machine, may do all of it."""

    SEARCH = "search"
    """Find and read documents."""
    ASK = "ask"
    """Have questions answered."""
    ADMIN = "admin"
    """See and change the sources."""
    METRICS = "metrics"
    """Read the metrics of the server."""


ALL_SCOPES = frozenset(TokenScope)


@dataclass(frozen=True, slots=True)
class ApiTokenService:
    """All that can be done to API tokens. Each action is one transaction that includes its audit entry."""

    database: Database
    actor: str = audit.OWNER

    def create(
        self,
        name: str,
        scopes: Iterable[TokenScope],
        lifetime: timedelta,
        now: datetime | None = None,
    ) -> str:
        """Return a new token, which cannot be shown again: only its hash is stored.

        Raises:
            InvalidInputError: the name, the scopes or the lifetime are not valid.
            ConflictError: there is a token of this name.
        """
        now = now or datetime.now(UTC)
        chosen = sorted(set(scopes))
        _check(name, chosen, lifetime)
        token = f"{PREFIX}{secrets.token_urlsafe(_BYTES)}"
        with self.database.transaction() as database:
            api_tokens.add(
                database,
                name=name,
                digest=digest(token),
                scopes=chosen,
                created_at=now,
                expires_at=now + lifetime,
            )
            details = {"scopes": chosen, "days": lifetime.days}
            audit.record(database, "create_token", audit_name(name), details, self.actor)
        return token

    def list_tokens(self) -> list[ApiToken]:
        """Return all tokens by name, also those that have expired."""
        return api_tokens.list_tokens(self.database)

    def revoke(self, name: str) -> None:
        """Delete a token; no request that begins later is answered to it.

        Raises:
            NotFoundError: there is none of this name.
        """
        with self.database.transaction() as database:
            api_tokens.remove(database, name)
            audit.record(database, "revoke_token", audit_name(name), {}, self.actor)


def find_valid_token(
    database: Database, given: str, now: datetime | None = None
) -> ApiToken | None:
    """Return the token that was given, if it exists and has not expired, and record its use."""
    now = now or datetime.now(UTC)
    token = api_tokens.find_by_digest(database, digest(given))
    if token is None or token.expires_at <= now:
        return None
    if token.last_used_at is None or now - token.last_used_at >= USE_PRECISION:
        api_tokens.record_use(database, token, now)
    return token


def digest(token: str) -> str:
    """Return what is stored. A token is random, so that a fast hash without salt cannot be reversed."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _check(name: str, scopes: list[TokenScope], lifetime: timedelta) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInputError(
            "The name of a token has up to 100 letters, digits and the signs . _ @ -"
        )
    if not scopes:
        raise InvalidInputError(f"Choose at least one scope: {', '.join(TokenScope)}.")
    if not timedelta(days=1) <= lifetime <= LONGEST_LIFETIME:
        raise InvalidInputError(f"A token is valid for 1 to {LONGEST_LIFETIME.days} days.")


def audit_name(name: str) -> str:
    """Return what the audit calls a token, as subject and as actor; no name of a source contains a colon."""
    return f"token:{name}"
