"""The audit is read by what an entry says, on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from backend.store import audit
from backend.store.audit import Actor, AuditFilter
from backend.store.database import Database, open_database
from backend.store.schema.tables import audit as table

DAY = datetime(2026, 3, 1, tzinfo=UTC)
ANN = "user:ann@example.com"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Holds ten actions, one a day: by Ann on even days, a sync on the first five."""
    with closing(open_database(database_url)) as opened:
        for number in range(10):
            actor = Actor(ANN if number % 2 == 0 else "owner")
            action = "sync" if number < 5 else "pause"
            audit.record(opened, action, f"desk{number % 3}", {"number": number}, actor)
            with opened.writing() as connection:
                moment = table.update().where(table.c.id == number + 1)
                connection.execute(moment.values(at=DAY + timedelta(days=number)))
        yield opened


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (AuditFilter(), range(10)),
        (AuditFilter(actor=ANN), [0, 2, 4, 6, 8]),
        (AuditFilter(action="sync"), range(5)),
        (AuditFilter(subject="desk1"), [1, 4, 7]),
        (AuditFilter(actor=ANN, action="sync", subject="desk1"), [4]),
        (AuditFilter(since=DAY + timedelta(days=8)), [8, 9]),
        (AuditFilter(until=DAY + timedelta(days=2)), [0, 1]),
        (AuditFilter(actor="nobody"), []),
    ],
)
def test_entries_are_equal_in_all_that_is_asked_for(
    database: Database, which: AuditFilter, expected: list[int]
) -> None:
    listed = [entry.detail["number"] for entry in audit.list_entries(database, which)]
    assert listed == [*reversed(expected)]


def test_all_are_yielded_page_by_page(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_PAGE", 3)
    which = AuditFilter(actor=ANN)
    assert [*audit.iterate_entries(database, which)] == audit.list_entries(database, which)


def test_actions_are_named_once(database: Database) -> None:
    assert audit.list_actions(database) == ["pause", "sync"]
