"""Clients and grants in a database, on SQLite and on PostgreSQL."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from backend.access.api_tokens import TokenScope
from backend.access.oauth.authorization import approve, read_authorization_request
from backend.access.oauth.clients import AuthMethod, ClientRegistration, ClientService, GrantType
from backend.access.oauth.grants import CodeExchange, GrantService, IssuedTokens, RefreshRequest
from backend.access.oauth.resources import SCOPES
from backend.access.roles import Role
from backend.store.accounts.oauth_clients import OAuthClient
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database, open_database
from tests.support.accounts import add_person
from tests.support.oauth import CALLBACK, make_challenge, parse_response

SITE = "https://quarry.example.com"
NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
VERIFIER = "v" * 43
VISITOR = Actor("visitor", "192.0.2.7")
BOTH: Sequence[GrantType] = ("authorization_code", "refresh_token")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = open_database(database_url)
    yield database
    database.close()


@pytest.fixture
def ann(database: Database) -> Person:
    return add_person(database, "ann@example.com", Role.ADMIN)


def accept_any(resource: str) -> None:
    """The program named no resource when it asked for tokens."""
    del resource


def make_registration(
    name: str = "Editor",
    uris: Sequence[str] = (CALLBACK,),
    auth_method: AuthMethod = "none",
    grant_types: Sequence[GrantType] = BOTH,
    scopes: Sequence[TokenScope] = SCOPES,
) -> ClientRegistration:
    return ClientRegistration(
        name=name,
        redirect_uris=uris,
        auth_method=auth_method,
        grant_types=grant_types,
        scopes=scopes,
    )


@dataclass(frozen=True)
class Flow:
    """A client, and a person who connects it."""

    database: Database
    client: OAuthClient
    person: Person

    @property
    def service(self) -> GrantService:
        return self.service_of(self.database)

    def service_of(self, database: Database) -> GrantService:
        return GrantService(database, self.client, VISITOR)

    def approve(self, now: datetime = NOW, **changed: str) -> str:
        """Return the code that the program is sent."""
        fields = {
            "response_type": "code",
            "client_id": self.client.id,
            "code_challenge": make_challenge(VERIFIER),
            "code_challenge_method": "S256",
            **changed,
        }
        asked = read_authorization_request(self.database, SITE, list(fields.items()))
        actor = Actor(f"user:{self.person.email}")
        address = approve(self.database, asked, SITE, self.person, actor, now)
        return parse_response(address)["code"]

    def exchange(
        self, code: str, verifier: str = VERIFIER, redirect_uri: str | None = CALLBACK
    ) -> CodeExchange:
        return CodeExchange(code, verifier, redirect_uri, accept_any)

    def connect(self, now: datetime = NOW, **changed: str) -> IssuedTokens:
        return self.service.redeem_code(self.exchange(self.approve(now, **changed)), now)

    def refresh(self, token: str | None, now: datetime = NOW) -> IssuedTokens:
        return self.service.refresh(RefreshRequest(token or "", None, accept_any), now)


@pytest.fixture
def register(database: Database) -> Callable[..., OAuthClient]:
    def made(*args: object, now: datetime = NOW, **values: object) -> OAuthClient:
        wanted = make_registration(*args, **values)  # type: ignore[arg-type]
        return ClientService(database, VISITOR).register(wanted, now).client

    return made


@pytest.fixture
def flow(database: Database, ann: Person, register: Callable[..., OAuthClient]) -> Flow:
    return Flow(database, register(), ann)
