"""The runs: one of a source at a time, and what became of them."""

import logging
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from backend.store import run_progress, run_transitions, runs
from backend.store.runs import Process, RunEndedError
from backend.store.tables import runs as run_rows
from connectors.errors import TemporarilyUnavailableError
from indexing.ingestion.progress import Embedding, Progress, ProgressMeter
from tests.support.store import Store, alive, gone

ME = Process("here", 4711, "100")


def test_a_run_reports_what_it_does_and_how_it_ended(store: Store) -> None:
    number = run_transitions.begin(store.database, "desk", "sync", ME, alive)
    run_progress.renew(store.database, number, "indexing", "leave.pdf", {"documents": 3})
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
        run_progress.renew(store.database, first, "indexing", None, {})
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
            run_progress.set_activity(store.database, first, item="late")
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
    run_progress.report_progress(
        store.database, run, ProgressMeter("desk", "listing").advance(None), counts
    )
    run_transitions.close(store.database, run, "failed", "It broke.")
    prefix = f"run={run} source=desk kind=prune"
    assert caplog.messages == [
        f"{prefix} state=running",
        f"{prefix} state=failed deleted=3 amended=2: It broke.",
    ]


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
        run_progress.enter_stage(database, numbers[-1], "removing")
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
