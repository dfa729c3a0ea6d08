"""Databases for tests: each new and up to date, also where it was given out before."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import make_url

from tests.support.databases import Databases

pytestmark = pytest.mark.smoke


@contextmanager
def connected(url: str) -> "Iterator[psycopg.Connection[tuple[object, ...]]]":
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def count(url: str, table: str) -> int:
    with connected(url) as connection:
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert found is not None
    return int(str(found[0]))


def test_what_one_test_wrote_no_other_finds(postgresql: Databases) -> None:
    seen = []
    for _ in range(2):
        with postgresql.new() as url:
            seen.append(url)
            assert count(url, "sources") == 0
            with connected(url) as connection:
                connection.execute("DELETE FROM web_rules")
                connection.execute("INSERT INTO groups (name, origin) VALUES ('hr', '')")
                (number,) = connection.execute("SELECT max(id) FROM groups").fetchone() or (None,)
                assert number == 1
    assert seen[0] != seen[1]
    with postgresql.new() as url:
        assert count(url, "web_rules") == 1
        assert count(url, "groups") == 0


def test_who_holds_on_to_a_database_finds_it_no_more(postgresql: Databases) -> None:
    with postgresql.new() as url:
        late = psycopg.connect(
            make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        )
    with pytest.raises(psycopg.OperationalError):
        late.execute("SELECT 1")
    late.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"), connected(url):
        pass


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE groups ADD COLUMN note text",
        "DROP TABLE web_rules",
        "CREATE INDEX groups_by_name ON groups (name)",
        "ALTER TABLE groups ALTER COLUMN origin DROP NOT NULL",
    ],
)
def test_a_database_of_other_tables_is_given_to_nobody(postgresql: Databases, change: str) -> None:
    with postgresql.new() as url:
        kept = url
        with connected(url) as connection:
            connection.execute(change)
    with postgresql.new() as url, connected(url) as connection:
        assert url != kept
        connection.execute("SELECT id, name, origin FROM groups")
        assert count(url, "web_rules") == 1
        with pytest.raises(psycopg.errors.NotNullViolation):
            connection.execute("INSERT INTO groups (name) VALUES ('hr')")
        found = connection.execute("SELECT 1 FROM pg_indexes WHERE indexname = 'groups_by_name'")
        assert found.fetchone() is None
