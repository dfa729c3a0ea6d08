"""The failures."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.store.documents import batches
from backend.store.sync import failures, run_transitions, runs, schedule, sources
from backend.store.sync.runs import Process, Run
from connectors.connector import Unreadable
from indexing.ingestion.ledger import BatchFinished, Failed, VersionSeen
from tests.support.store import Store, source_service, store_at

_ME = Process("here", 1, "1")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web", "idle") as store:
        yield store


def failed(name: str, reason: str = "no", version: str | None = None) -> Failed:
    return Failed(
        source=name.partition(":")[0],
        document_id=name,
        item=f"{name}.pdf",
        reason=reason,
        link=f"https://desk.test/{name}",
        version=version,
    )


def test_a_failure_counts_its_tries_and_reports_the_last_reason(store: Store) -> None:
    store.ledger.save([failed("desk:a", "it is locked")])
    store.ledger.save([failed("desk:a", "it is encrypted"), failed("desk:b", "it is empty")])
    first, second = failures.list_failures(store.database)
    assert (first.item, first.reason, first.tries) == ("desk:a.pdf", "it is encrypted", 2)
    assert (first.source, first.document_id) == ("desk", "desk:a")
    assert first.link == "https://desk.test/desk:a"
    assert first.first_at < first.last_at
    assert (second.reason, second.tries) == ("it is empty", 1)


def test_failures_of_all_sources_are_listed_and_counted(store: Store) -> None:
    store.ledger.save([failed(f"desk:{number:04}", "no") for number in range(1_100)])
    store.ledger.save([failed("web:a", "no"), VersionSeen("desk:0007", "2")])
    assert len(list(failures.list_failures(store.database))) == 1_100
    assert failures.count_by_source(store.database) == {"desk": 1_099, "web": 1}


def test_what_is_unreadable_for_good_is_not_due_until_someone_asks(store: Store) -> None:
    store.ledger.save([failed("desk:a", version="7"), failed("desk:b")])
    later = datetime.now(UTC) + timedelta(days=30)
    assert failures.list_due(store.database, "desk", later, 10) == ["desk:b"]
    first, second = failures.list_failures(store.database)
    assert (first.waits_for_change, first.next_try) == (True, None)
    assert not second.waits_for_change

    failures.retry_now(store.database, "desk", ["desk:a"])
    assert failures.list_due(store.database, "desk", datetime.now(UTC), 10) == ["desk:a"]
    store.ledger.save([failed("desk:a", version="7")])
    (first, _) = failures.list_failures(store.database)
    assert (first.waits_for_change, first.tries) == (True, 2)


def test_failures_for_good_alone_let_no_run_start(store: Store) -> None:
    store.ledger.save([failed("desk:a", version="7")])
    assert schedule.read_plans(store.database, "desk")["desk"].starts["retry"] is None


def test_other_settings_may_mend_what_is_unreadable_for_good(store: Store, tmp_path: Path) -> None:
    store.ledger.save([failed("desk:a", version="7"), failed("web:a", version="7")])
    service, folder = source_service(store.database), {"path": str(tmp_path)}
    service.edit("desk", folder, None)
    assert store.ledger.versions(["desk:a", "web:a"]) == {"web:a": "7"}
    now = datetime.now(UTC)
    assert failures.list_due(store.database, "desk", now, 10) == ["desk:a"]
    sources.edit(store.database, "web", service.get("desk").settings)
    service.edit("web", folder, None)
    assert store.ledger.versions(["web:a"]) == {"web:a": "7"}


def test_a_document_that_fails_twice_in_a_run_is_counted_once(store: Store) -> None:
    """As after an interruption, where the run finds it in an open batch and in the source."""
    for _ in range(2):
        run = _begin(store)
        for _ in range(2):
            _fail_in(store, run, "desk:a")
        assert runs.find(store.database, run).counts["unreadable"] == 1
    (failure,) = failures.list_failures(store.database)
    assert failure.tries == 2


def _begin(store: Store) -> int:
    def gone(run: Run) -> bool:
        del run
        return True

    run = run_transitions.begin(store.database, "desk", "incremental", _ME, gone)
    runs.enter_stage(store.database, run, "indexing")
    return run


def _fail_in(store: Store, run: int, name: str) -> None:
    bad = Unreadable(document_id=name, item=name, reason="no")
    batches.save(store.database, run, [bad], None)
    held = batches.claim(store.database, _ME, lambda _: False, "desk")
    assert held is not None
    done = BatchFinished(batch=held.number, fence=held.fence, counts={}, item=None)
    store.ledger.save([failed(name), done])
