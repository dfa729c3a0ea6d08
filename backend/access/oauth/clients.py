"""The programs that register themselves as clients of OAuth (RFC 7591): who they are is what they say.

Anybody may register one, so that the number of those that nobody connects is bounded, and they are forgotten after a day.
"""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from backend.access.api_tokens import TokenScope
from backend.access.networks import find_network
from backend.access.oauth.errors import OAuthError, OAuthErrorCode
from backend.access.oauth.redirect_uris import check_redirect_uri, describe_host
from backend.access.random_secrets import digest, make_random_secret
from backend.store import audit
from backend.store.accounts import oauth_clients, oauth_grants
from backend.store.accounts.oauth_clients import OAuthClient, UsedClient
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.random_ids import make_random_id
from connectors.errors import TemporarilyUnavailableError
from connectors.text_cleaning import CONTROLS, remove_invisible, replace_unstorable

SECRET_PREFIX = "qocs_"
"""Of every secret of a client, so that it is recognized where it should not be."""
LONGEST_NAME = 100
MOST_REDIRECT_URIS = 10
MOST_UNUSED = 1_000
"""Clients that nobody has connected; of more, the oldest are forgotten."""
UNUSED_LIFETIME = timedelta(days=1)
FORGOTTEN_AFTER = timedelta(days=90)
"""After which a client that was connected before and is not any more is forgotten."""
REGISTRATION_PERIOD = timedelta(hours=1)
MOST_BY_NETWORK = 100
"""Clients that a network may register in a period: an office, or the servers of a chat product, have one."""

AuthMethod: TypeAlias = Literal["none", "client_secret_basic", "client_secret_post"]
GrantType: TypeAlias = Literal["authorization_code", "refresh_token"]

_SPACES = re.compile(rf"[\s{CONTROLS}\u200e\u200f\u2028\u2029]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRegistration:
    """What a program asks to be registered with."""

    name: str
    redirect_uris: Sequence[str]
    auth_method: AuthMethod
    grant_types: Sequence[GrantType]
    scopes: Sequence[TokenScope]


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    client: OAuthClient
    secret: str | None
    """It is not shown again."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """By which a program says which client it is; a public one has no secret."""

    client_id: str
    secret: str | None


@dataclass(frozen=True, slots=True)
class ClientService:
    """What is done to clients. Each action is one transaction that includes its audit entry."""

    database: Database
    actor: Actor

    def register(self, wanted: ClientRegistration, now: datetime | None = None) -> RegisteredClient:
        """Register a client of whoever asks.

        Raises:
            OAuthError: a redirect URI or the name is not accepted.
            TemporarilyUnavailableError: the network has registered too many.
        """
        now = now or datetime.now(UTC)
        _check_redirect_uris(wanted.redirect_uris)
        name = clean_client_name(wanted.name) or describe_host(wanted.redirect_uris[0])
        secret = None if wanted.auth_method == "none" else f"{SECRET_PREFIX}{make_random_secret()}"
        client = OAuthClient(
            id=make_random_id(),
            name=name,
            redirect_uris=wanted.redirect_uris,
            secret_digest=secret and digest(secret),
            auth_method=wanted.auth_method,
            grant_types=wanted.grant_types,
            scopes=wanted.scopes,
            network=find_network(self.actor.address),
            created_at=now,
            connected_at=None,
        )
        with self.database.transaction() as database:
            _make_room(database, client.network, now)
            oauth_clients.add(database, client)
            details = {"name": name, "redirect_uris": list(wanted.redirect_uris)}
            audit.record(database, "register_client", audit_name(client.id), details, self.actor)
        return RegisteredClient(client, secret)

    def list_clients(self) -> list[UsedClient]:
        """Return all clients, the last registered first."""
        return oauth_clients.list_used(self.database)

    def delete(self, client_id: str) -> None:
        """Delete a client and all that people granted to it. Raises NotFoundError."""
        with self.database.transaction() as database:
            oauth_clients.remove(database, client_id)
            audit.record(database, "delete_client", audit_name(client_id), {}, self.actor)


def authenticate_client(database: Database, credentials: ClientCredentials) -> OAuthClient:
    """Return the client that a program proves to be, or says to be where it is public.

    Raises:
        OAuthError: invalid_client.
    """
    client = oauth_clients.find(database, credentials.client_id)
    if client is None or not _is_proved(client, credentials.secret):
        raise OAuthError(
            OAuthErrorCode.INVALID_CLIENT, "The client is not registered, or its secret is wrong."
        )
    return client


def clean_client_name(name: str) -> str:
    """Return a name as one line without what hides or reorders text; `name` is not trusted otherwise either.

    Raises:
        OAuthError: invalid_client_metadata, it is too long.
    """
    cleaned = _SPACES.sub(" ", replace_unstorable(remove_invisible(name))).strip()
    if len(cleaned) > LONGEST_NAME:
        raise OAuthError(
            OAuthErrorCode.INVALID_CLIENT_METADATA,
            f"The client_name has more than {LONGEST_NAME} characters.",
        )
    return cleaned


def audit_name(client_id: str) -> str:
    """Return what the audit calls a client: by its id, since the name is what the program says."""
    return f"client:{client_id}"


def _is_proved(client: OAuthClient, secret: str | None) -> bool:
    if client.secret_digest is None or secret is None:
        return client.secret_digest is None and not secret
    return hmac.compare_digest(client.secret_digest, digest(secret))


def _check_redirect_uris(uris: Sequence[str]) -> None:
    if not 1 <= len(uris) <= MOST_REDIRECT_URIS:
        raise OAuthError(
            OAuthErrorCode.INVALID_REDIRECT_URI,
            f"A client has 1 to {MOST_REDIRECT_URIS} redirect URIs.",
        )
    for uri in uris:
        check_redirect_uri(uri)


def _make_room(database: Database, network: str, now: datetime) -> None:
    """Forget clients that nobody uses, and refuse a network that has registered too many."""
    oauth_grants.remove_ended(database, now)
    oauth_clients.remove_unused(database, now - UNUSED_LIFETIME, now - FORGOTTEN_AFTER)
    since = now - REGISTRATION_PERIOD
    if oauth_clients.count_registered(database, network, since) >= MOST_BY_NETWORK:
        raise TemporarilyUnavailableError(
            "Too many programs were registered from this address.", REGISTRATION_PERIOD
        )
    oauth_clients.remove_oldest_unused(database, kept=MOST_UNUSED - 1)
