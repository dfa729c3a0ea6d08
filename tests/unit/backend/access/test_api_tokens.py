"""API tokens: shown once, stored as a hash, valid until they end or are revoked, and audited."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from backend.access.api_tokens import (
    LONGEST_LIFETIME,
    USE_PRECISION,
    ApiTokenService,
    TokenScope,
    find_valid_token,
)
from backend.access.people import PeopleService
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.store import audit
from backend.store.database import Database, open_database
from backend.store.schema.tables import api_tokens, people
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.accounts import add_person

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
WEEK = timedelta(days=7)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = open_database(database_url)
    yield database
    database.close()


@pytest.fixture
def service(database: Database) -> ApiTokenService:
    return ApiTokenService(database)


def test_a_token_is_valid_until_its_end(service: ApiTokenService) -> None:
    token = service.create("ci", [TokenScope.SEARCH, TokenScope.ASK, TokenScope.ASK], WEEK, NOW)
    assert token.startswith("qry_")
    assert len(token) == len("qry_") + 43
    found = find_valid_token(service.database, token, NOW + WEEK - timedelta(seconds=1))
    assert found
    token_found, owner = found
    assert (token_found.name, list(token_found.scopes), owner) == ("ci", ["ask", "search"], None)
    assert find_valid_token(service.database, token, NOW + WEEK) is None
    (listed,) = service.list_tokens()
    assert (listed.created_at, listed.expires_at) == (NOW, NOW + WEEK)


def test_a_person_who_was_disabled_meanwhile_gets_none(database: Database) -> None:
    add_person(database, "ann@example.com", Role.ADMIN)
    bob = add_person(database, "bob@example.com")
    service = ApiTokenService(database, owner=bob)
    service.create("before", [TokenScope.SEARCH], WEEK)
    PeopleService(database).disable("bob@example.com")
    with pytest.raises(ConflictError, match="disabled"):
        service.create("after", [TokenScope.SEARCH], WEEK)
    assert service.list_tokens() == []


def test_no_token_outlives_its_owner(database: Database) -> None:
    """Without an owner it would be a service token. Quarry deletes nobody, and the database refuses to."""
    ann = add_person(database, "ann@example.com", Role.ADMIN)
    token = ApiTokenService(database, owner=ann).create("ci", [TokenScope.ADMIN], WEEK)
    with pytest.raises(IntegrityError), database.engine.begin() as connection:
        connection.execute(delete(people).where(people.c.id == ann.id))
    found = find_valid_token(database, token)
    assert found is not None
    assert found[1] == ann


def test_only_its_hash_is_stored(service: ApiTokenService) -> None:
    token = service.create("ci", [TokenScope.SEARCH], WEEK)
    with service.database.reading() as connection:
        (row,) = connection.execute(select(api_tokens)).all()
    assert token not in str(row)
    assert token.removeprefix("qry_") not in str(row)
    assert digest(token) in str(row)
    assert find_valid_token(service.database, digest(token)) is None


@pytest.mark.parametrize(
    "given", ["", "qry_", "ci", "qry_" + "x" * 43, "%", "' OR 1=1 --", "é\ud800"]
)
def test_anything_else_is_no_token(service: ApiTokenService, given: str) -> None:
    service.create("ci", [TokenScope.SEARCH], WEEK)
    assert find_valid_token(service.database, given) is None


def test_a_revoked_token_is_none_and_its_name_is_free(service: ApiTokenService) -> None:
    token = service.create("ci", [TokenScope.SEARCH], WEEK)
    with pytest.raises(ConflictError, match="'ci' already"):
        service.create("ci", [TokenScope.ASK], WEEK)
    service.revoke("ci")
    assert find_valid_token(service.database, token) is None
    with pytest.raises(NotFoundError, match="'ci'"):
        service.revoke("ci")
    assert service.create("ci", [TokenScope.SEARCH], WEEK) != token


def test_its_last_use_is_recorded_once_a_minute(service: ApiTokenService) -> None:
    token = service.create("ci", [TokenScope.SEARCH], WEEK, NOW)

    def use(moment: datetime) -> datetime | None:
        assert find_valid_token(service.database, token, moment)
        return service.list_tokens()[0].last_used_at

    assert service.list_tokens()[0].last_used_at is None
    assert use(NOW) == NOW
    assert use(NOW + USE_PRECISION - timedelta(seconds=1)) == NOW
    assert use(NOW + USE_PRECISION) == NOW + USE_PRECISION


@pytest.mark.parametrize(
    ("name", "scopes", "lifetime"),
    [
        ("", [TokenScope.SEARCH], WEEK),
        ("two words", [TokenScope.SEARCH], WEEK),
        ("a:b", [TokenScope.SEARCH], WEEK),
        ("x" * 101, [TokenScope.SEARCH], WEEK),
        ("ci\n", [TokenScope.SEARCH], WEEK),
        ("ci", [], WEEK),
        ("ci", [TokenScope.SEARCH], timedelta(0)),
        ("ci", [TokenScope.SEARCH], LONGEST_LIFETIME + timedelta(days=1)),
    ],
)
def test_what_makes_no_token_is_refused(
    service: ApiTokenService, name: str, scopes: list[TokenScope], lifetime: timedelta
) -> None:
    with pytest.raises(InvalidInputError):
        service.create(name, scopes, lifetime)
    assert service.list_tokens() == []
    assert audit.list_entries(service.database) == []


def test_both_actions_are_in_the_audit_without_the_token(service: ApiTokenService) -> None:
    token = service.create("ci", [TokenScope.SEARCH], WEEK)
    service.revoke("ci")
    revoked, created = audit.list_entries(service.database)
    assert [(each.action, each.subject) for each in (created, revoked)] == [
        ("create_token", "token:ci"),
        ("revoke_token", "token:ci"),
    ]
    assert created.detail == {"scopes": ["search"], "days": 7}
    assert revoked.detail == {"before": ["search"]}
    assert token not in str([created, revoked])
