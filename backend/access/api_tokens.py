"""API tokens: what a program proves itself with, for what it is meant to do, and until when."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum

from backend.access.random_secrets import digest, make_random_secret
from backend.store import audit
from backend.store.accounts import api_tokens, oauth_grants, people
from backend.store.accounts.api_tokens import ApiToken
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from connectors.errors import ConflictError, InvalidInputError

PREFIX = "qry_"
"""Of every token, so that it is recognized where it should not be, such as in a repository."""
LONGEST_LIFETIME = timedelta(days=366)
USE_PRECISION = timedelta(minutes=1)
"""A use is recorded if the last recorded one is at least so long ago."""

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
    INGEST = "ingest"
    """Put documents into the sources of whoever has the token, and delete them there."""


ALL_SCOPES = frozenset(TokenScope)


class OwnTokens(Enum):
    """What becomes of the API tokens of a person who chooses another password, and of the programs they connected."""

    KEEP = "keep"
    """Programs go on with them."""
    REVOKE = "revoke"


@dataclass(frozen=True, slots=True)
class ApiTokenService:
    """All that can be done to the API tokens of a person, or to service tokens, which are of nobody.

    Each action is one transaction that includes its audit entry.
    """

    database: Database
    actor: Actor = audit.OWNER
    owner: Person | None = None

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
        token = f"{PREFIX}{make_random_secret()}"
        with self.database.transaction() as database:
            self._check_owner(database)
            api_tokens.add(
                database,
                name=name,
                digest=digest(token),
                scopes=chosen,
                created_at=now,
                expires_at=now + lifetime,
                person_id=self.owner.id if self.owner else None,
            )
            details = {"scopes": chosen, "days": lifetime.days}
            self._record(database, "create_token", name, details)
        return token

    def list_tokens(self) -> list[ApiToken]:
        """Return all tokens by name, whose ever they are, also those that have expired."""
        return api_tokens.list_tokens(self.database)

    def revoke(self, name: str) -> None:
        """Delete a token; no request that begins later is answered to it.

        Raises:
            NotFoundError: there is none of this name.
        """
        with self.database.transaction() as database:
            scopes = api_tokens.remove(database, name, self.owner.id if self.owner else None)
            self._record(database, "revoke_token", name, {"before": scopes})

    def _check_owner(self, database: Database) -> None:
        """Raise ConflictError if the account was disabled since the request began, which was before the transaction."""
        owner = people.find(database, self.owner.id) if self.owner else None
        if self.owner and (owner is None or owner.disabled_at is not None):
            raise ConflictError("The account is disabled.")

    def _record(
        self, database: Database, action: str, name: str, details: Mapping[str, object]
    ) -> None:
        audit.record(database, action, audit_name(name, self.owner), details, self.actor)


def find_valid_token(
    database: Database, given: str, now: datetime | None = None
) -> tuple[ApiToken, Person | None] | None:
    """Return the token that was given and its owner, if it is valid, and record its use.

    It is not if it has expired, or if the account of its owner is disabled.
    """
    now = now or datetime.now(UTC)
    found = api_tokens.find_with_owner(database, digest(given))
    if found is None or found[0].expires_at <= now:
        return None
    token, _ = found
    if token.last_used_at is None or now - token.last_used_at >= USE_PRECISION:
        api_tokens.record_use(database, token, now)
    return found


def settle_tokens(database: Database, person_id: int, tokens: OwnTokens) -> Mapping[str, int]:
    """Revoke the tokens of a person, and end what they granted to programs, where that is wanted.

    Returns:
        What the audit says of it.
    """
    match tokens:
        case OwnTokens.KEEP:
            return {}
        case OwnTokens.REVOKE:
            return {
                "revoked_tokens": api_tokens.remove_of_person(database, person_id),
                "disconnected_programs": oauth_grants.remove_of_person(database, person_id),
            }


def _check(name: str, scopes: list[TokenScope], lifetime: timedelta) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInputError(
            "The name of a token has up to 100 letters, digits and the signs . _ @ -"
        )
    if not scopes:
        raise InvalidInputError(f"Choose at least one scope: {', '.join(TokenScope)}.")
    if not timedelta(days=1) <= lifetime <= LONGEST_LIFETIME:
        raise InvalidInputError(f"A token is valid for 1 to {LONGEST_LIFETIME.days} days.")


def audit_name(name: str, owner: Person | None) -> str:
    """Return what the audit calls a token, as subject and as actor; no name of a source contains a colon."""
    return f"token:{name}" if owner is None else f"token:{name} of {owner.email}"
