"""Sessions of people: random, stored as a hash, ended by time, by use of another, and by their owner."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.sessions import (
    LONGEST,
    LONGEST_UNUSED,
    USE_PRECISION,
    Visitor,
    begin_session,
    end_session,
    find_session_person,
    make_csrf_token,
)
from backend.store.accounts.people import Person
from backend.store.database import Database
from backend.store.schema.tables import sessions
from connectors.access import Readers
from tests.support.accounts import add_person, find_person
from tests.support.statements import noted_statements

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def ann(database: Database) -> Person:
    return add_person(database, "ann@example.com", Role.ADMIN)


def test_only_the_hash_of_a_session_is_stored(database: Database, ann: Person) -> None:
    visitor = Visitor(address="192.0.2.7", user_agent="Browser " * 100)
    value = begin_session(database, ann, visitor, NOW)
    assert len(value) == 43
    with database.reading() as connection:
        (row,) = connection.execute(select(sessions)).mappings()
    assert row["digest"] == digest(value)
    assert value not in str(dict(row))
    assert (row["address"], row["user_agent"]) == ("192.0.2.7", ("Browser " * 100)[:300])


def test_a_session_that_is_not_used_ends(database: Database, ann: Person) -> None:
    value = begin_session(database, ann, Visitor(), NOW)
    assert find_person(database, value, NOW + LONGEST_UNUSED) is None
    assert find_person(database, value, NOW + LONGEST_UNUSED - SECOND) == ann


def test_a_session_that_is_used_ends_too(database: Database, ann: Person) -> None:
    value = begin_session(database, ann, Visitor(), NOW)
    for days in range(1, LONGEST.days):
        assert find_person(database, value, NOW + timedelta(days=days)) == ann
    assert find_person(database, value, NOW + LONGEST - SECOND) == ann
    assert find_person(database, value, NOW + LONGEST) is None


def test_whose_session_it_is_and_what_they_hold_takes_two_queries_of_one_transaction(
    database: Database, ann: Person
) -> None:
    """Every request of a browser pays for them."""
    value = begin_session(database, ann, Visitor(), NOW)
    with noted_statements(database.engine) as statements:
        found = find_session_person(database, value, NOW)
    assert found == (ann, Readers.of("user:ann@example.com"))
    # The driver of PostgreSQL begins transactions by itself.
    begun = ["BEGIN"] if database.engine.dialect.name == "sqlite" else []
    assert [each.split()[0] for each in statements] == [*begun, "SELECT", "SELECT"]


def test_its_use_is_recorded_once_a_minute(database: Database, ann: Person) -> None:
    value = begin_session(database, ann, Visitor(), NOW)
    for moment, recorded in (
        (NOW + USE_PRECISION - SECOND, NOW),
        (NOW + USE_PRECISION, NOW + USE_PRECISION),
        (NOW + USE_PRECISION + SECOND, NOW + USE_PRECISION),
    ):
        assert find_person(database, value, moment)
        with database.reading() as connection:
            assert connection.scalar(select(sessions.c.last_used_at)) == recorded


def test_a_new_session_ends_the_one_of_the_browser(database: Database, ann: Person) -> None:
    first = begin_session(database, ann, Visitor(), NOW)
    other = begin_session(database, ann, Visitor(), NOW)
    second = begin_session(database, ann, Visitor(session=first), NOW)
    assert [find_person(database, each, NOW) for each in (first, other, second)] == [None, ann, ann]


def test_what_somebody_chose_is_no_session(database: Database, ann: Person) -> None:
    value = begin_session(database, ann, Visitor(session="chosen"), NOW)
    assert value != "chosen"
    for chosen in ("chosen", "", digest(value), value + "x", "\udc80"):
        assert find_person(database, chosen, NOW) is None


def test_a_session_is_ended(database: Database, ann: Person) -> None:
    value = begin_session(database, ann, Visitor(), NOW)
    end_session(database, value)
    assert find_person(database, value, NOW) is None


def test_ended_sessions_are_removed(database: Database, ann: Person) -> None:
    begin_session(database, ann, Visitor(), NOW)
    begin_session(database, ann, Visitor(), NOW + LONGEST_UNUSED)
    with database.reading() as connection:
        assert len(connection.execute(select(sessions)).all()) == 1


def test_a_csrf_token_is_of_one_session() -> None:
    assert make_csrf_token("one") == make_csrf_token("one") != make_csrf_token("other")
