"""The runs: one of a source at a time, what each reports while it is running, and what became of them."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from backend.store.documents import batches
from backend.store.schema.tables import runs as run_rows
from backend.store.sync import run_transitions, runs, sources
from backend.store.sync.runs import Process, Run, RunEndedError
from connectors.connector import Deletion
from connectors.errors import TemporarilyUnavailableError
from indexing.ingestion.progress import Embedding, Progress, ProgressMeter
from tests.support.store import Store, alive, gone

ME = Process("here", 4711, "100")
TOMORROW = datetime(2100, 1, 1, tzinfo=UTC)


def test_a_run_reports_what_it_does_and_how_it_ended(store: Store) -> None:
    number = run_transitions.begin(store.database, "desk", "sync", ME, alive)
    runs.renew(store.database, number, "indexing", "leave.pdf", {"documents": 3})
    going = runs.latest(store.database)["desk"]
    assert (going.id, going.kind, going.state) == (number, "sync", "running")
    assert (going.stage, going.item, going.counts) == ("indexing", "leave.pdf", {"documents": 3})
    assert going.holder == ME
    assert going.finished_at is None
    run_transitions.finish(store.database, number, "failed", {"documents": 5}, "the server is away")
    ended = runs.latest(store.database)["desk"]
    assert (ended.state, ended.error) == ("failed", "the server is away")
    assert ended.counts == {"documents": 5}
    assert ended.finished_at is not None
    assert ended.started_at <= going.renewed_at <= ended.finished_at


def test_a_second_run_is_shown_who_holds_the_source_since_when(store: Store) -> None:
    run_transitions.begin(store.database, "desk", "sync", ME, alive)
    with pytest.raises(
        TemporarilyUnavailableError,
        match=r"A run of 'desk' \(sync\).*since 20\d\d-.*process 4711 on here",
    ):
        run_transitions.begin(store.database, "desk", "sync", ME, alive)
    run_transitions.begin(store.database, "web", "sync", ME, alive)


def test_a_run_whose_process_is_gone_is_taken_over_and_cannot_go_on(store: Store) -> None:
    first = run_transitions.begin(store.database, "desk", "sync", ME, alive)
    second = run_transitions.begin(store.database, "desk", "sync", ME, gone)
    assert second > first
    with pytest.raises(TemporarilyUnavailableError, match="taken over"):
        runs.renew(store.database, first, "indexing", None, {})
    run_transitions.finish(store.database, first, "done", {})
    newest, oldest = runs.history(store.database, "desk")
    assert (newest.id, newest.state) == (second, "running")
    assert (oldest.id, oldest.state) == (first, "interrupted")
    assert oldest.error == "Its process ended before it was done."


def test_of_many_that_begin_at_once_one_succeeds(store: Store) -> None:
    refused = []

    def begin() -> None:
        try:
            run_transitions.begin(store.database, "desk", "sync", ME, alive)
        except TemporarilyUnavailableError as error:
            refused.append(error)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7


def test_the_database_itself_lets_no_two_runs_of_a_source_go_on(store: Store) -> None:
    first = run_transitions.begin(store.database, "desk", "sync", ME, alive)
    with store.database.reading() as connection:
        row = dict(connection.execute(run_rows.select()).mappings().one())
    with pytest.raises(IntegrityError), store.database.writing() as connection:
        connection.execute(insert(run_rows).values(row | {"id": first + 1}))


def test_history_is_newest_first_and_of_one_source(store: Store) -> None:
    numbers = []
    for _ in range(3):
        numbers.append(run_transitions.begin(store.database, "desk", "sync", ME, alive))
        run_transitions.finish(store.database, numbers[-1], "done", {})
    run_transitions.begin(store.database, "web", "sync", ME, alive)
    assert [run.id for run in runs.history(store.database, "desk", limit=2)] == [
        numbers[2],
        numbers[1],
    ]
    assert runs.latest(store.database).keys() == {"desk", "web"}


def test_a_run_in_vain_is_closed_and_another_waits_in_its_place(store: Store) -> None:
    """A minute, then two; whoever worked on the first finds it closed."""
    first = run_transitions.begin(store.database, "desk", "prune", ME, alive, accepted=7)
    run_transitions.requeue(store.database, first, "interrupted", "Nothing moved.")
    for minutes in (1, 2):
        waiting = runs.latest(store.database)["desk"]
        assert (waiting.kind, waiting.state, waiting.accepted) == ("prune", "waiting", 7)
        assert waiting.waiting_for == "Nothing moved."
        assert waiting.next_try == waiting.started_at + timedelta(minutes=minutes)
        with pytest.raises(RunEndedError, match="Nothing moved"):
            runs.set_activity(store.database, first, item="late")
        with pytest.raises(RunEndedError):
            run_transitions.requeue(store.database, first, "failed", "Again.")
        run_transitions.resume(store.database, waiting.id, ME)
        run_transitions.requeue(store.database, waiting.id, "interrupted", "Nothing moved.")
    done = run_transitions.begin(store.database, "desk", "prune", ME, alive)
    run_transitions.requeue(store.database, done, "failed", "A mistake.")
    latest = runs.latest(store.database)["desk"]
    assert latest.next_try == latest.started_at + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("tries", "minutes"), [(0, 1), (1, 1), (2, 2), (5, 16), (10, 360), (99, 360)]
)
def test_the_wait_doubles_up_to_six_hours(tries: int, minutes: int) -> None:
    assert run_transitions.back_off(tries) == timedelta(minutes=minutes)


def test_beginning_and_end_of_a_run_are_logged_with_its_counts(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "quarry.runs")
    run = run_transitions.begin(store.database, "desk", "prune", ME, alive)
    counts = {"deleted": 3, "amended": 2, "documents": 0}
    runs.report_progress(
        store.database, run, ProgressMeter("desk", "listing").advance(None), counts
    )
    run_transitions.close(store.database, run, "failed", "It broke.")
    desk = sources.find(store.database, "desk").id
    named = {"run": run, "source": "desk", "source_id": desk, "kind": "prune"}
    assert [vars(entry)["fields"] for entry in caplog.records] == [
        {**named, "state": "running", "counts": {}},
        {
            **named,
            "state": "failed",
            "counts": {"deleted": 3, "amended": 2},
            "reason": "It broke.",
        },
    ]
    assert caplog.messages[-1] == f"run {run} of desk: failed"


def test_the_rate_is_of_the_present_stage(store: Store) -> None:
    number = run_transitions.begin(store.database, "desk", "prune", ME, alive)
    embedding = Embedding(item="a.md", done=1, total=2)
    run = runs.find(store.database, number)
    began = run.started_at
    run = replace(
        run,
        stage="listing",
        item="a.md",
        done=6,
        total=4,
        stage_at=began + timedelta(seconds=7),
        embedding=embedding,
    )
    now = began + timedelta(seconds=10)
    expected = Progress(
        source="desk", stage="listing", item="a.md", done=6, total=6, rate=2.0, embedding=embedding
    )
    assert run.progress_at(now) == expected
    assert run.progress_at(began + timedelta(seconds=7)).rate == 0.0
    assert run.progress_at(began + timedelta(seconds=7.5)).rate == 12.0
    assert replace(run, stage_at=None).progress_at(now).rate == pytest.approx(0.6)
    assert replace(run, total=None).progress_at(now).total is None
    assert replace(run, total=9).progress_at(now).total == 9


def test_runs_are_found_by_stage_and_by_state(store: Store) -> None:
    database = store.database
    numbers = []
    for source in ("desk", "web", "desk", "web"):
        numbers.append(run_transitions.begin(database, source, "prune", ME, alive))
        runs.enter_stage(database, numbers[-1], "removing")
        assert runs.any_in_stage(database, "removing")
        assert not runs.any_in_stage(database, "listing")
        run_transitions.close(database, numbers[-1], "failed")
        assert not runs.any_in_stage(database, "removing")
    found = runs.find_last(database, "desk", "failed")
    assert found is not None
    assert found.id == numbers[2]
    assert runs.find_last(database, "desk", "done") is None
    assert runs.latest(database, "web").keys() == {"web"}
    with pytest.raises(LookupError, match=r"^no run 1000000$"):
        runs.find(database, 10**6)


def test_the_last_twenty_runs_are_history(store: Store) -> None:
    for _ in range(21):
        number = run_transitions.begin(store.database, "desk", "sync", ME, alive)
        run_transitions.finish(store.database, number, "done", {})
    assert len(runs.history(store.database, "desk")) == 20


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
    runs.report_progress(database, run, progress("listing", 3, "a.md", embedding), {})
    runs.set_activity(database, run, item="b.md", waiting_for="The model.")
    assert (find(store, run).item, find(store, run).waiting_for) == ("b.md", "The model.")
    before = datetime.now(UTC)
    runs.enter_stage(database, run, "indexing")
    found = find(store, run)
    assert (found.stage, found.done, found.total) == ("indexing", 0, None)
    assert (found.item, found.waiting_for, found.embedding) == (None, None, None)
    assert found.stage_at is not None
    assert before <= found.stage_at <= found.renewed_at <= datetime.now(UTC)
    runs.set_total(database, run, 7)
    runs.enter_stage(database, run, "listing")
    assert find(store, run).total is None
    assert find(store, other) == untouched


def test_what_is_still_to_be_done_counts_from_what_is_done(store: Store) -> None:
    run, other, database = begin(store), begin(store, "web"), store.database
    untouched = find(store, other)
    runs.report_progress(database, run, progress("indexing", 3, "a.md", None), {})
    runs.set_total(database, run, 5)
    assert (find(store, run).done, find(store, run).total) == (3, 8)
    assert find(store, other) == untouched


def test_progress_is_of_the_present_stage_and_counts_are_of_the_run(store: Store) -> None:
    run, database = begin(store), store.database
    embedding = Embedding(item="a.md", done=1, total=2, batch=5)
    runs.report_progress(
        database, run, progress("listing", 3, "a.md", embedding), {"deleted": 2, "amended": 0}
    )
    first = find(store, run)
    assert (first.stage, first.done, first.total, first.item) == ("listing", 3, 9, "a.md")
    assert (first.embedding, first.counts) == (embedding, {"deleted": 2})
    more = {"deleted": 1, "documents": 4}
    runs.report_progress(database, run, progress("listing", 5, None, None), more)
    second = find(store, run)
    assert (second.done, second.item, second.embedding) == (5, "a.md", None)
    assert second.counts == {"deleted": 3, "documents": 4}
    assert second.stage_at == first.stage_at
    assert second.renewed_at > first.renewed_at
    runs.report_progress(database, run, progress("removing", 0, None, None), {})
    third = find(store, run)
    assert third.stage == "removing"
    assert third.stage_at is not None
    assert third.stage_at > second.renewed_at


def test_a_run_that_makes_progress_waits_for_nothing(store: Store) -> None:
    run, database = begin(store), store.database
    runs.set_activity(database, run, waiting_for="The index is away.")
    runs.report_progress(database, run, progress("listing", 1, None, None), {})
    assert find(store, run).waiting_for is None
    other = begin(store, "web")
    for each in (run, other):
        runs.enter_stage(database, each, "indexing")
        batches.save(database, each, [Deletion("a")], None)
    for source in ("desk", "web"):
        held = batches.claim(database, ME, lambda process: process != ME, source)
        assert held is not None
        batches.postpone(database, [(held.number, held.fence)], TOMORROW, "The index is away.")
    postponed = find(store, other)
    assert (postponed.waiting_for, postponed.next_try) == ("The index is away.", TOMORROW)
    runs.report_progress(database, run, progress("listing", 1, None, None), {})
    assert (find(store, run).waiting_for, find(store, run).next_try) == (None, None)
    assert find(store, other) == postponed
    run_transitions.suspend(database, run, "Later.", TOMORROW)
    with database.writing() as connection:
        runs.add_counts(connection, run, {"documents": 2}, done=2)
    found = find(store, run)
    assert (found.state, found.waiting_for, found.next_try) == ("waiting", "Later.", TOMORROW)
    assert (found.counts, found.done) == ({"documents": 2}, 3)


def test_the_lease_holds_until_it_is_renewed(store: Store) -> None:
    run, other = begin(store), begin(store, "web")
    runs.renew_lease(store.database, run, TOMORROW)
    assert find(store, run).lease_until == TOMORROW
    assert find(store, other).lease_until is None


def test_a_source_that_was_read_to_its_end_has_a_total(store: Store) -> None:
    run, other, database = begin(store), begin(store, "web"), store.database
    batches.save(database, run, [Deletion("desk:a"), Deletion("desk:b")], None)
    batches.save(database, other, [Deletion("web:a")], None)
    with database.writing() as connection:
        runs.add_counts(connection, run, {}, done=3)
    runs.set_activity(database, run, waiting_for="The source.")
    assert find(store, run).total is None
    runs.mark_fetched(database, run)
    found = find(store, run)
    assert (found.total, found.waiting_for) == (5, None)
    assert find(store, other).total is None
    idle = begin(store)
    batches.delete_all(database, "desk")
    runs.mark_fetched(database, idle)
    assert find(store, idle).total == 0


def test_what_is_embedded_is_shown_at_the_run_of_its_batch(store: Store) -> None:
    run, other, database = begin(store), begin(store, "web"), store.database
    for each in (run, other):
        runs.enter_stage(database, each, "indexing")
        batches.save(database, each, [Deletion("a")], None)
    held = batches.claim(database, ME, lambda process: process != ME, "desk")
    assert held is not None
    untouched, before = find(store, other), find(store, run)
    embedding = Embedding(item="a.md", done=1, total=2, batch=held.number)
    runs.record_embedding(database, embedding)
    assert find(store, run).embedding == embedding
    assert find(store, run).renewed_at > before.renewed_at
    runs.record_embedding(database, Embedding(item="a.md", done=2, total=2, batch=10**6))
    assert find(store, run).embedding == embedding
    assert find(store, other) == untouched
    run_transitions.close(database, run, "failed")
    runs.record_embedding(database, Embedding(item="b", done=0, total=1, batch=held.number))
    assert find(store, run).embedding == embedding


def test_a_closed_run_reports_nothing_more(store: Store) -> None:
    run, database = begin(store), store.database
    run_transitions.close(database, run, "failed", "It broke.")
    closed = find(store, run)
    reports: list[Callable[[], None]] = [
        partial(runs.renew, database, run, "listing", None, {}),
        partial(runs.enter_stage, database, run, "listing"),
        partial(runs.set_activity, database, run),
        partial(runs.renew_lease, database, run, TOMORROW),
        partial(runs.mark_fetched, database, run),
        partial(runs.report_progress, database, run, progress("x", 1, "x", None), {"a": 1}),
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
            runs.set_activity(store.database, number)
        assert (str(ended.value), ended.value.state) == (why, "interrupted")
        assert ended.value.retry_after == timedelta(minutes=1)
