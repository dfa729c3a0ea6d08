"""When which run begins by itself."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from backend.store.sync import failures, run_transitions, schedule, sources
from backend.store.sync.runs import Process, Run
from backend.store.sync.schedule import Due
from indexing.ingestion.ledger import Failed
from tests.support.store import Store, alive, gone, store_at

ME = Process("here", 1, "1")
MINUTE = timedelta(minutes=1)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk") as store:
        yield store


def due(
    store: Store, after: timedelta = timedelta(0), is_gone: Callable[[Run], bool] = alive
) -> Due | None:
    found = schedule.list_due(store.database, datetime.now(UTC) + after, is_gone)
    return found[0] if found else None


def kind_due(store: Store, after: timedelta = timedelta(0)) -> str | None:
    found = due(store, after)
    return None if found is None else found.kind


def read(store: Store, *kinds: str) -> None:
    schedule.record_end(store.database, "desk", kinds, datetime.now(UTC))


def test_a_new_source_is_due_and_after_its_reading_each_kind_in_its_time(store: Store) -> None:
    assert kind_due(store) == "first"
    read(store, "incremental", "permissions", "prune")
    assert kind_due(store) is None
    assert kind_due(store, 14 * MINUTE) is None
    assert kind_due(store, 16 * MINUTE) == "incremental"
    read(store, "incremental")
    assert kind_due(store, 16 * MINUTE) == "permissions"
    starts = schedule.read_plans(store.database, "desk")["desk"].starts
    assert starts["prune"] is not None
    assert 359 * MINUTE < starts["prune"] - datetime.now(UTC) <= 360 * MINUTE


def test_a_source_is_unread_until_its_first_content_sync_has_ended(store: Store) -> None:
    assert schedule.list_unread_sources(store.database) == ["desk"]
    now = datetime.now(UTC)
    schedule.record_end(store.database, "desk", ("prune",), now)
    assert schedule.list_unread_sources(store.database) == ["desk"]
    schedule.record_end(store.database, "desk", ("incremental",), now)
    assert schedule.list_unread_sources(store.database) == []


def test_an_interval_can_be_set_and_switched_off(store: Store) -> None:
    read(store, "incremental", "permissions", "prune")
    schedule.set_interval(store.database, "desk", "prune", 2 * MINUTE)
    schedule.set_interval(store.database, "desk", "incremental", timedelta(0))
    assert kind_due(store, 3 * MINUTE) == "prune"
    assert schedule.read_plans(store.database, "desk")["desk"].starts["incremental"] is None
    schedule.set_interval(store.database, "desk", "prune", None)
    assert kind_due(store, 3 * MINUTE) is None


def test_what_was_asked_for_comes_first_and_once(store: Store) -> None:
    read(store, "incremental", "permissions", "prune")
    schedule.request_run(store.database, "desk", "prune", accepted=12)
    asked = due(store)
    assert asked is not None
    assert (asked.kind, asked.accepted) == ("prune", 12)
    read(store, "prune")
    assert due(store) is None


def test_what_is_asked_for_while_it_runs_is_done_once_more(store: Store) -> None:
    began = datetime.now(UTC) - MINUTE
    read(store, "incremental", "permissions", "prune")
    schedule.request_run(store.database, "desk", "incremental")
    schedule.record_end(store.database, "desk", ["incremental"], began)
    assert kind_due(store) == "incremental"


def test_nothing_is_due_while_a_run_goes_on_and_all_that_broke_off_is(store: Store) -> None:
    run = run_transitions.begin(store.database, "desk", "permissions", ME, alive)
    assert due(store) is None
    taken_over = due(store, is_gone=gone)
    assert taken_over is not None
    assert (taken_over.kind, taken_over.seen) == ("permissions", run)
    run_transitions.close(store.database, run, "interrupted")
    assert kind_due(store) == "permissions"


def test_a_run_that_waits_is_due_at_its_time_as_the_same_run(store: Store) -> None:
    run = run_transitions.begin(store.database, "desk", "incremental", ME, alive)
    run_transitions.suspend(
        store.database, run, "Too many requests.", datetime.now(UTC) + 5 * MINUTE
    )
    assert due(store) is None
    waited = due(store, 6 * MINUTE)
    assert waited is not None
    assert (waited.kind, waited.run) == ("incremental", run)


def test_failed_documents_make_a_retry_due(store: Store) -> None:
    """After a quarter of an hour; after the second try, half an hour."""
    read(store, "incremental", "permissions", "prune")
    for kind in ("incremental", "permissions", "prune"):
        schedule.set_interval(store.database, "desk", kind, timedelta(0))
    failed = Failed(source="desk", document_id="desk:a", item="a", reason="it is broken")
    store.ledger.save([failed])
    assert kind_due(store, 14 * MINUTE) is None
    assert kind_due(store, 16 * MINUTE) == "retry"
    store.ledger.save([failed])
    assert kind_due(store, 29 * MINUTE) is None
    assert kind_due(store, 31 * MINUTE) == "retry"


@pytest.mark.parametrize(
    ("tries", "minutes"), [(1, 15), (2, 30), (3, 60), (7, 960), (8, 1440), (1000, 1440)]
)
def test_each_try_waits_twice_as_long_up_to_a_day(tries: int, minutes: int) -> None:
    assert failures.back_off(tries) == minutes * MINUTE


def test_a_removal_that_waits_is_due_at_its_time_as_the_same_run(store: Store) -> None:
    schedule.request_run(store.database, "desk", "removal")
    assert kind_due(store) == "removal"
    run = run_transitions.begin(store.database, "desk", "removal", ME, alive)
    run_transitions.suspend(
        store.database, run, "the index is away", datetime.now(UTC) + 5 * MINUTE
    )
    assert due(store) is None
    later = due(store, 6 * MINUTE)
    assert later is not None
    assert (later.kind, later.run) == ("removal", run)


def test_one_source_can_be_asked_about_alone(store: Store) -> None:
    now = datetime.now(UTC)
    assert [one.source for one in schedule.list_due(store.database, now, alive, "desk")] == ["desk"]
    assert schedule.list_due(store.database, now, alive, "web") == []


def test_a_source_with_readers_in_its_settings_is_asked_for_them_by_no_schedule(
    store: Store,
) -> None:
    settings = {"url": "https://example.com/", "readers": ["public"]}
    sources.add(store.database, "site", "web", settings)
    schedule.record_end(store.database, "site", ["incremental", "prune"], datetime.now(UTC))
    schedule.set_interval(store.database, "site", "permissions", MINUTE)
    found = schedule.list_due(store.database, datetime.now(UTC) + 300 * MINUTE, alive, "site")
    assert found == []
    plan = schedule.read_plans(store.database, "site")["site"]
    assert plan.every == {"incremental": 360 * MINUTE, "prune": 1440 * MINUTE}
    schedule.request_run(store.database, "site", "permissions")
    (due,) = schedule.list_due(store.database, datetime.now(UTC), alive, "site")
    assert due.kind == "permissions"
