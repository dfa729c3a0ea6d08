"""Which workers live, by their own word."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, update

from backend.store.schema.tables import workers
from backend.store.sync import workers as attendance
from backend.store.sync.runs import Process
from tests.support.store import Store, store_at

ME = Process("here", 4711, "100")
OTHER = Process("there", 4711, "100")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url) as store:
        yield store


def registered(store: Store) -> list[tuple[Process, str, str | None]]:
    return [(one.process, one.queue, one.trouble) for one in attendance.list_live(store.database)]


def test_who_has_signed_is_present_until_it_leaves(store: Store) -> None:
    attendance.register(store.database, ME, "index")
    attendance.register(store.database, OTHER, "fetch")
    attendance.register(store.database, ME, "index", trouble="The broker does not answer.")
    assert registered(store) == [
        (OTHER, "fetch", None),
        (ME, "index", "The broker does not answer."),
    ]
    attendance.unregister(store.database, ME)
    assert registered(store) == [(OTHER, "fetch", None)]


def test_who_was_not_heard_of_is_not_present_and_forgotten_after_a_day(store: Store) -> None:
    attendance.register(store.database, ME, "index")
    for ago, rows in ((timedelta(minutes=1), 2), (timedelta(days=2), 1)):
        with store.database.writing() as connection:
            before = datetime.now(UTC) - ago
            connection.execute(
                update(workers).where(workers.c.host == "here").values(seen_at=before)
            )
        attendance.register(store.database, OTHER, "fetch")
        assert [process for process, _, _ in registered(store)] == [OTHER]
        with store.database.reading() as connection:
            assert connection.scalar(select(func.count()).select_from(workers)) == rows
