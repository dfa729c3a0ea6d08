"""Figures that are taken again and again: always right, and what is settled is read once."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event

from backend.store import metrics_queries
from backend.store.documents import batches
from backend.store.metrics_queries import MetricsReader
from backend.store.sync import run_transitions, runs, schedule, sources, workers
from backend.store.sync.runs import Process
from connectors.connector import Deletion
from indexing.ingestion.ledger import Failed
from tests.support.store import Store, alive, document, store_at

ME = Process("here", 4711, "100")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web", "mail", "wiki") as store:
        yield store


def ran(store: Store, source: str, kind: str, **counts: int) -> None:
    number = run_transitions.begin(store.database, source, kind, ME, alive)
    run_transitions.finish(store.database, number, "done", counts)


def test_sources_runs_batches_and_documents_are_counted(store: Store) -> None:
    store.hold(document("desk:a"), document("desk:b"), document("web:a"))
    store.ledger.save([Failed(source="web", document_id="web:c", item="c", reason="it is locked")])
    ran(store, "desk", "first", documents=2, chunks=4)
    ran(store, "desk", "prune", deleted=1)
    going = run_transitions.begin(store.database, "web", "first", ME, alive)
    runs.enter_stage(store.database, going, "indexing")
    batches.save(store.database, going, [Deletion("web:x")], None)
    sources.set_paused(store.database, "mail", datetime.now(UTC))
    workers.register(store.database, ME, "index")
    found = MetricsReader(store.database).take()
    assert found.sources == {"done": 1, "running": 1, "paused": 1, "never synced": 1}
    assert found.runs == {("first", "done"): 1, ("prune", "done"): 1, ("first", "running"): 1}
    assert found.outcomes == {"documents": 2, "chunks": 4, "deleted": 1}
    now, succeeded = time.time(), {key for key, at in found.successes.items() if at}
    assert succeeded == {("desk", "first"), ("desk", "prune")}
    assert all(0 <= now - found.successes[key] < 60 for key in succeeded)
    assert found.successes["mail", "incremental"] == 0
    assert found.open_batches == {"desk": 0, "mail": 0, "web": 1, "wiki": 0}
    assert 0 < now - found.oldest_batch < 60
    assert found.documents == {"desk": 2, "mail": 0, "web": 1, "wiki": 0}
    assert found.failures == {"desk": 0, "mail": 0, "web": 1, "wiki": 0}
    assert found.workers == {"index": 1}
    schedule.request_run(store.database, "desk", "removal")
    assert MetricsReader(store.database).take().sources["being removed"] == 1


def test_a_run_is_read_again_only_as_long_as_it_may_change(store: Store) -> None:
    for _ in range(3):
        ran(store, "desk", "incremental", documents=1)
    reader = MetricsReader(store.database)
    assert reader.take().outcomes == {"documents": 3}
    going = run_transitions.begin(store.database, "desk", "incremental", ME, alive)
    ran(store, "web", "first", documents=5)
    for documents in (1, 4):
        runs.renew(store.database, going, "indexing", None, {"documents": documents})
        found = reader.take()
        assert found.outcomes == {"documents": 8 + documents}
        assert found.runs == {
            ("incremental", "done"): 3,
            ("incremental", "running"): 1,
            ("first", "done"): 1,
        }
    run_transitions.finish(store.database, going, "failed", {"documents": 6})
    assert reader.take().outcomes == {"documents": 14}
    assert reader.take().runs == MetricsReader(store.database).take().runs
    assert _asked(store, reader, "FROM runs WHERE runs.id >") == [(5,)]


def test_a_run_whose_batches_are_open_may_change_still(store: Store) -> None:
    going = run_transitions.begin(store.database, "desk", "first", ME, alive)
    batches.save(store.database, going, [Deletion("desk:x")], None)
    run_transitions.close(store.database, going, "failed", "the source is away")
    reader = MetricsReader(store.database)
    assert reader.take().outcomes == {}
    with store.database.writing() as connection:
        runs.add_counts(connection, going, {"deleted": 1}, None)
    assert reader.take().outcomes == {"deleted": 1}


def test_documents_are_counted_again_only_where_runs_changed_some(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_queries, "_RECOUNT_SECONDS", 0.0)
    reader = MetricsReader(store.database)
    store.hold(document("desk:a"))
    ran(store, "desk", "first", documents=1)
    assert reader.take().documents["desk"] == 1
    assert _asked(store, reader, "documents.source_id = sources.id") == []
    store.hold(document("desk:b"))
    ran(store, "desk", "incremental", documents=1)
    assert reader.take().documents["desk"] == 2


def _asked(store: Store, reader: MetricsReader, words: str) -> list[tuple[object, ...]]:
    """The values with which statements that hold these words are executed by another look."""
    found: list[tuple[object, ...]] = []

    def note(*given: Any) -> None:
        statement, values = given[2:4]
        if words in " ".join(statement.split()):
            found.append(tuple(values.values() if isinstance(values, dict) else values))

    event.listen(store.database.engine, "before_cursor_execute", note)
    reader.take()
    event.remove(store.database.engine, "before_cursor_execute", note)
    return found
