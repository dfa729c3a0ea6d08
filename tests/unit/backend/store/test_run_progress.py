"""What a running run reports of itself, and that no other run and no later process is touched by it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from backend.store import batches, run_progress, run_transitions, runs
from backend.store.runs import Process, Run, RunEndedError
from connectors.connector import Deletion
from indexing.ingestion.progress import Embedding, Progress
from tests.support.store import Store, gone

ME = Process("here", 1, "1")
TOMORROW = datetime(2100, 1, 1, tzinfo=UTC)


def begin(store: Store, source: str = "desk") -> int:
    return run_transitions.begin(store.database, source, "incremental", ME, gone)


def progress(stage: str, done: int, item: str | None, embedding: Embedding | None) -> Progress:
    return Progress(
        source="desk", stage=stage, item=item, done=done, total=9, rate=1.0, embedding=embedding
    )


def find(store: Store, run: int) -> Run:
    return runs.find(store.database, run)


def test_a_stage_begins_with_nothing_done(store: Store) -> None:
    run, other = begin(store), begin(store, "web")
    untouched, database = find(store, other), store.database
    embedding = Embedding(item="a.md", done=1, total=2)
    run_progress.report_progress(database, run, progress("listing", 3, "a.md", embedding), {})
    run_progress.set_activity(database, run, item="b.md", waiting_for="The model.")
    assert (find(store, run).item, find(store, run).waiting_for) == ("b.md", "The model.")
    before = datetime.now(UTC)
    run_progress.enter_stage(database, run, "indexing")
    found = find(store, run)
    assert (found.stage, found.done, found.total) == ("indexing", 0, None)
    assert (found.item, found.waiting_for, found.embedding) == (None, None, None)
    assert found.stage_at is not None
    assert before <= found.stage_at <= found.renewed_at <= datetime.now(UTC)
    run_progress.set_total(database, run, 7)
    run_progress.enter_stage(database, run, "listing")
    assert find(store, run).total is None
    assert find(store, other) == untouched


def test_what_is_still_to_be_done_counts_from_what_is_done(store: Store) -> None:
    run, other, database = begin(store), begin(store, "web"), store.database
    untouched = find(store, other)
    run_progress.report_progress(database, run, progress("indexing", 3, "a.md", None), {})
    run_progress.set_total(database, run, 5)
    assert (find(store, run).done, find(store, run).total) == (3, 8)
    assert find(store, other) == untouched


def test_progress_is_of_the_present_stage_and_counts_are_of_the_run(store: Store) -> None:
    run, database = begin(store), store.database
    embedding = Embedding(item="a.md", done=1, total=2, batch=5)
    run_progress.report_progress(
        database, run, progress("listing", 3, "a.md", embedding), {"deleted": 2, "amended": 0}
    )
    first = find(store, run)
    assert (first.stage, first.done, first.total, first.item) == ("listing", 3, 9, "a.md")
    assert (first.embedding, first.counts) == (embedding, {"deleted": 2})
    more = {"deleted": 1, "documents": 4}
    run_progress.report_progress(database, run, progress("listing", 5, None, None), more)
    second = find(store, run)
    assert (second.done, second.item, second.embedding) == (5, "a.md", None)
    assert second.counts == {"deleted": 3, "documents": 4}
    assert second.stage_at == first.stage_at
    assert second.renewed_at > first.renewed_at
    run_progress.report_progress(database, run, progress("removing", 0, None, None), {})
    third = find(store, run)
    assert third.stage == "removing"
    assert third.stage_at is not None
    assert third.stage_at > second.renewed_at


def test_a_run_that_makes_progress_waits_for_nothing(store: Store) -> None:
    run, database = begin(store), store.database
    run_progress.set_activity(database, run, waiting_for="The index is away.")
    run_progress.report_progress(database, run, progress("listing", 1, None, None), {})
    assert find(store, run).waiting_for is None
    other = begin(store, "web")
    for each in (run, other):
        run_progress.enter_stage(database, each, "indexing")
        batches.save(database, each, [Deletion("a")], None)
    for source in ("desk", "web"):
        held = batches.claim(database, ME, lambda process: process != ME, source)
        assert held is not None
        batches.postpone(database, [(held.number, held.fence)], TOMORROW, "The index is away.")
    postponed = find(store, other)
    assert (postponed.waiting_for, postponed.next_try) == ("The index is away.", TOMORROW)
    run_progress.report_progress(database, run, progress("listing", 1, None, None), {})
    assert (find(store, run).waiting_for, find(store, run).next_try) == (None, None)
    assert find(store, other) == postponed
    run_transitions.suspend(database, run, "Later.", TOMORROW)
    with database.writing() as connection:
        run_progress.add_counts(connection, run, {"documents": 2}, done=2)
    found = find(store, run)
    assert (found.state, found.waiting_for, found.next_try) == ("waiting", "Later.", TOMORROW)
    assert (found.counts, found.done) == ({"documents": 2}, 3)


def test_the_lease_holds_until_it_is_renewed(store: Store) -> None:
    run, other = begin(store), begin(store, "web")
    run_progress.renew_lease(store.database, run, TOMORROW)
    assert find(store, run).lease_until == TOMORROW
    assert find(store, other).lease_until is None


def test_a_source_that_was_read_to_its_end_has_a_total(store: Store) -> None:
    run, other, database = begin(store), begin(store, "web"), store.database
    batches.save(database, run, [Deletion("desk:a"), Deletion("desk:b")], None)
    batches.save(database, other, [Deletion("web:a")], None)
    with database.writing() as connection:
        run_progress.add_counts(connection, run, {}, done=3)
    run_progress.set_activity(database, run, waiting_for="The source.")
    assert not find(store, run).is_fetched
    run_progress.mark_fetched(database, run)
    found = find(store, run)
    assert (found.is_fetched, found.total, found.waiting_for) == (True, 5, None)
    assert not find(store, other).is_fetched
    idle = begin(store)
    batches.delete_all(database, "desk")
    run_progress.mark_fetched(database, idle)
    assert find(store, idle).total == 0


def test_what_is_embedded_is_shown_at_the_run_of_its_batch(store: Store) -> None:
    run, other, database = begin(store), begin(store, "web"), store.database
    for each in (run, other):
        run_progress.enter_stage(database, each, "indexing")
        batches.save(database, each, [Deletion("a")], None)
    held = batches.claim(database, ME, lambda process: process != ME, "desk")
    assert held is not None
    untouched, before = find(store, other), find(store, run)
    embedding = Embedding(item="a.md", done=1, total=2, batch=held.number)
    run_progress.record_embedding(database, embedding)
    assert find(store, run).embedding == embedding
    assert find(store, run).renewed_at > before.renewed_at
    run_progress.record_embedding(database, Embedding(item="a.md", done=2, total=2, batch=10**6))
    assert find(store, run).embedding == embedding
    assert find(store, other) == untouched
    run_transitions.close(database, run, "failed")
    run_progress.record_embedding(database, Embedding(item="b", done=0, total=1, batch=held.number))
    assert find(store, run).embedding == embedding


def test_a_closed_run_reports_nothing_more(store: Store) -> None:
    run, database = begin(store), store.database
    run_transitions.close(database, run, "failed", "It broke.")
    closed = find(store, run)
    reports: list[Callable[[], None]] = [
        partial(run_progress.renew, database, run, "listing", None, {}),
        partial(run_progress.enter_stage, database, run, "listing"),
        partial(run_progress.set_activity, database, run),
        partial(run_progress.renew_lease, database, run, TOMORROW),
        partial(run_progress.mark_fetched, database, run),
        partial(run_progress.report_progress, database, run, progress("x", 1, "x", None), {"a": 1}),
    ]
    for report in reports:
        with pytest.raises(RunEndedError, match=r"^It broke\.$") as ended:
            report()
        assert ended.value.state == "failed"
    assert find(store, run) == closed


def test_a_run_that_was_taken_over_is_told_why(store: Store) -> None:
    run = begin(store)
    begin(store)
    why = "Another process has taken over the run, because this one was silent for too long."
    for number in (run, 10**6):
        with pytest.raises(RunEndedError) as ended:
            run_progress.set_activity(store.database, number)
        assert (str(ended.value), ended.value.state) == (why, "interrupted")
        assert ended.value.retry_after == timedelta(minutes=1)
