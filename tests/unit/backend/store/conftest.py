from collections.abc import Iterator

import pytest

from tests.support.store import Store, store_at


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """On each database, with two sources."""
    with store_at(database_url, "desk", "web") as store:
        yield store
