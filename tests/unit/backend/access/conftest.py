"""A database with nothing in it, on SQLite and on PostgreSQL."""

from collections.abc import Iterator

import pytest

from backend.store.database import Database, open_database


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = open_database(database_url)
    yield database
    database.close()
