"""What programs hold of what people granted them: tokens, exchanged for a code and refreshed.

Each is valid once: a code or a refresh token that comes a second time was stolen by one of the two who sent it, so that all of
its grant ends (RFC 6749, 4.1.2; RFC 9700, 2.2.2 and 4.14).
"""

import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backend.access.code_challenge import make_challenge
from backend.access.oauth.clients import audit_name
from backend.access.oauth.errors import OAuthError, OAuthErrorCode
from backend.access.oauth.resources import read_scopes
from backend.access.random_secrets import digest, make_random_secret
from backend.store import audit
from backend.store.accounts import oauth_grants
from backend.store.accounts.oauth_clients import OAuthClient
from backend.store.accounts.oauth_grants import ConnectedProgram, GrantTokens, OAuthGrant
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database

ACCESS_PREFIX = "qoat_"
"""Of every access token, so that it is recognized where it should not be."""
REFRESH_PREFIX = "qort_"
ACCESS_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=30)
"""From the last time that the program refreshed its tokens."""
USE_PRECISION = timedelta(minutes=1)
"""A use is recorded if the last recorded one is at least so long ago."""
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    access: str
    refresh: str | None
    scopes: Sequence[str]


@dataclass(frozen=True, slots=True)
class CodeExchange:
    """What a program sends with a code: what proves that it began the flow."""

    code: str
    verifier: str
    redirect_uri: str | None
    check_resource: Callable[[str], None]
    """Raises OAuthError: another resource was asked for."""


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    token: str
    scope: str | None
    check_resource: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GrantService:
    """What a client does with its grants, of which it proved to be the client."""

    database: Database
    client: OAuthClient
    actor: Actor

    def redeem_code(self, exchange: CodeExchange, now: datetime | None = None) -> IssuedTokens:
        """Exchange a code for tokens.

        Raises:
            OAuthError: the code is not valid, or the program does not prove that it began the flow.
        """
        now = now or datetime.now(UTC)
        grant = oauth_grants.find_by_code(self.database, digest(exchange.code))
        if grant is None or grant.client_id != self.client.id:
            raise _invalid_grant()
        if grant.redeemed_at is not None:
            raise self._end(grant, "code_used_again")
        if grant.ends_at <= now or not _began(grant, exchange):
            raise self._end(grant, "code_not_accepted")
        exchange.check_resource(grant.resource)
        issued, tokens = self._issue(grant.scopes, make_random_secret(), now)
        if not oauth_grants.redeem(self.database, grant.id, tokens, now):
            raise self._end(grant, "code_used_again")
        return issued

    def refresh(self, request: RefreshRequest, now: datetime | None = None) -> IssuedTokens:
        """Replace all tokens of a grant.

        Raises:
            OAuthError: the token is not valid, or more is asked for than was granted.
        """
        now = now or datetime.now(UTC)
        family = _read_family(request.token)
        grant = oauth_grants.find_by_family(self.database, digest(family))
        if grant is None or grant.client_id != self.client.id or grant.ends_at <= now:
            raise _invalid_grant()
        used = digest(request.token)
        if not hmac.compare_digest(grant.refresh_digest or "", used):
            raise self._end(grant, "refresh_token_used_again")
        request.check_resource(grant.resource)
        scopes = _read_narrowed(request.scope, grant.scopes)
        issued, tokens = self._issue(scopes, family, now)
        if not oauth_grants.rotate(self.database, grant.id, used, tokens):
            raise self._end(grant, "refresh_token_used_again")
        return issued

    def revoke(self, token: str) -> None:
        """End the grant that a token is of (RFC 7009); one that is not known has ended already.

        Raises:
            OAuthError: it is another client's.
        """
        grant = _find_by_any(self.database, token)
        if grant is None:
            return
        if grant.client_id != self.client.id:
            raise _invalid_grant()
        self._end(grant, "by_program")

    def _issue(
        self, scopes: Sequence[str], family: str, now: datetime
    ) -> tuple[IssuedTokens, GrantTokens]:
        """Return new tokens, and what is stored of them."""
        access = f"{ACCESS_PREFIX}{make_random_secret()}"
        access_end = now + ACCESS_LIFETIME
        is_refreshed = "refresh_token" in self.client.grant_types
        refresh = f"{REFRESH_PREFIX}{family}.{make_random_secret()}" if is_refreshed else None
        tokens = GrantTokens(
            access_digest=digest(access),
            access_scopes=scopes,
            access_expires_at=access_end,
            family_digest=refresh and digest(family),
            refresh_digest=refresh and digest(refresh),
            ends_at=now + REFRESH_LIFETIME if refresh else access_end,
        )
        return IssuedTokens(access, refresh, scopes), tokens

    def _end(self, grant: OAuthGrant, reason: str) -> OAuthError:
        """End a grant, and return how its program is refused."""
        with self.database.transaction() as database:
            if oauth_grants.remove_if_there(database, grant.id):
                _record_end(database, grant, reason, self.actor)
        return _invalid_grant()


def find_valid_access_token(
    database: Database, given: str, resource: str, now: datetime | None = None
) -> tuple[OAuthGrant, Person] | None:
    """Return the grant of an access token and whose it is, if it is valid for a resource, and record its use.

    It is not if it has expired, if it is for another resource (its audience, RFC 8707), or if the account is disabled.
    """
    now = now or datetime.now(UTC)
    found = oauth_grants.find_with_person(database, digest(given))
    if found is None:
        return None
    grant, _ = found
    if grant.resource != resource or (grant.access_expires_at or now) <= now:
        return None
    if grant.last_used_at is None or now - grant.last_used_at >= USE_PRECISION:
        oauth_grants.record_use(database, grant.id, now)
    return found


def list_programs(
    database: Database, person: Person, now: datetime | None = None
) -> list[ConnectedProgram]:
    """Return the programs that a person has connected, the last one first."""
    return oauth_grants.list_programs(database, now or datetime.now(UTC), person.id)


def disconnect(database: Database, person: Person, grant_id: int, actor: Actor) -> None:
    """End a grant of a person; no request that begins later is answered to its tokens. Raises NotFoundError."""
    with database.transaction() as opened:
        grant = oauth_grants.remove(opened, grant_id, person.id)
        _record_end(opened, grant, "by_person", actor)


def name_actor(grant: OAuthGrant, person: Person) -> str:
    """Return what the audit calls a program that acts for a person."""
    return f"{audit_name(grant.client_id)} of {person.email}"


def _record_end(database: Database, grant: OAuthGrant, reason: str, actor: Actor) -> None:
    details = {"reason": reason, "resource": grant.resource, "grant": grant.id}
    audit.record(database, "disconnect_program", audit_name(grant.client_id), details, actor)


def _began(grant: OAuthGrant, exchange: CodeExchange) -> bool:
    """Return whether who sends the code is who began the flow (RFC 7636, 4.6)."""
    if exchange.redirect_uri not in {None, grant.redirect_uri}:
        return False
    if not _VERIFIER.fullmatch(exchange.verifier):
        return False
    return hmac.compare_digest(make_challenge(exchange.verifier), grant.code_challenge)


def _read_narrowed(asked: str | None, granted: Sequence[str]) -> Sequence[str]:
    """Return the scopes of new tokens. Raises OAuthError: invalid_scope, more than was granted (RFC 6749, 6)."""
    if asked is None:
        return granted
    if not set(asked.split(" ")) <= set(granted):
        raise OAuthError(OAuthErrorCode.INVALID_SCOPE, "More is asked for than was granted.")
    return read_scopes(asked, granted)


def _read_family(token: str) -> str:
    """Return what all refresh tokens of a grant have in common: by it, one that was used before is recognized."""
    return token.removeprefix(REFRESH_PREFIX).partition(".")[0]


def _find_by_any(database: Database, token: str) -> OAuthGrant | None:
    if token.startswith(REFRESH_PREFIX):
        return oauth_grants.find_by_family(database, digest(_read_family(token)))
    return oauth_grants.find_by_access_token(database, digest(token))


def _invalid_grant() -> OAuthError:
    return OAuthError(
        OAuthErrorCode.INVALID_GRANT,
        "The code or the token is not valid, has expired, or was used before.",
    )
