"""What each transition changes of a run, and of no other."""

import logging
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from backend.store.documents import batches
from backend.store.schema.tables import batches as batch_rows
from backend.store.schema.tables import runs as run_rows
from backend.store.sync import run_transitions, runs, sources
from backend.store.sync.runs import Process, Run, RunEndedError
from connectors.connector import Deletion
from connectors.errors import TemporarilyUnavailableError
from tests.support.store import Store, alive

ME = Process("here", 1, "1")
OTHER = Process("there", 2, "3")
TOMORROW = datetime(2100, 1, 1, tzinfo=UTC)


def begin(store: Store, source: str = "desk", kind: str = "incremental") -> Run:
    return runs.find(
        store.database, run_transitions.begin(store.database, source, kind, ME, alive, accepted=4)
    )


def changes(store: Store, before: Run) -> dict[str, object]:
    """Return what of the run is another now; moments of the present are `now`."""
    after = runs.find(store.database, before.id)
    names = [field.name for field in fields(Run)]
    found = {name: getattr(after, name) for name in names}
    past = before.renewed_at
    return {
        name: "now" if isinstance(value, datetime) and past <= value <= datetime.now(UTC) else value
        for name, value in found.items()
        if value != getattr(before, name)
    }


def is_unchanged(store: Store, before: Run) -> bool:
    return runs.find(store.database, before.id) == before


def test_a_run_begins_under_its_process(store: Store) -> None:
    before = datetime.now(UTC)
    run = begin(store, kind="prune")
    assert (run.source, run.kind, run.state, run.stage) == ("desk", "prune", "running", "starting")
    assert (run.counts, run.accepted, run.holder) == ({}, 4, ME)
    assert before <= run.started_at == run.renewed_at <= datetime.now(UTC)
    assert run.finished_at is None
    assert run.lease_until is None


def test_a_run_begins_only_after_the_one_that_its_caller_knows(store: Store) -> None:
    start = run_transitions.begin
    with pytest.raises(RunEndedError, match=r"^Another worker was quicker\.$") as late:
        start(store.database, "desk", "prune", ME, alive, seen=1)
    assert late.value.state == "running"
    start(store.database, "web", "prune", ME, alive)
    first = start(store.database, "desk", "prune", ME, alive, seen=0)
    run_transitions.close(store.database, first, "done")
    with pytest.raises(RunEndedError):
        start(store.database, "desk", "prune", ME, alive, seen=0)
    assert start(store.database, "desk", "prune", ME, alive, seen=first) > first


def test_a_source_with_a_running_run_is_busy_for_a_minute(store: Store) -> None:
    run = begin(store)
    with pytest.raises(TemporarilyUnavailableError) as busy:
        run_transitions.begin(store.database, "desk", "prune", OTHER, alive)
    assert str(busy.value) == f"{run.description}. Wait until it is done, or stop it."
    assert busy.value.retry_after == timedelta(minutes=1)
    assert is_unchanged(store, run)


def test_who_takes_over_closes_the_run_and_gets_its_batches(store: Store) -> None:
    lost, other = begin(store), begin(store, "web")
    for run in (lost, other):
        batches.save(store.database, run.id, [Deletion("desk:a")], None)
    judged: list[Run] = []

    def is_gone(run: Run) -> bool:
        judged.append(run)
        return True

    taken = run_transitions.begin(store.database, "desk", "prune", OTHER, is_gone)
    assert judged == [lost]
    error = "Its process ended before it was done."
    assert changes(store, lost) == {"state": "interrupted", "error": error, "finished_at": "now"}
    assert is_unchanged(store, other)
    assert _owners_of_batches(store) == [taken, other.id]


@pytest.mark.parametrize("state", ["waiting", "paused"])
def test_a_new_run_replaces_those_that_rest(store: Store, state: str) -> None:
    rests, elsewhere = begin(store), begin(store, "web")
    batches.save(store.database, rests.id, [Deletion("desk:a")], None)
    with store.database.writing() as connection:
        connection.execute(update(run_rows).values(state=state, next_try=TOMORROW))
    rests, elsewhere = runs.find(store.database, rests.id), runs.find(store.database, elsewhere.id)
    number = begin(store).id
    assert changes(store, rests) == {
        "state": "interrupted",
        "error": "Another run continued from there.",
        "finished_at": "now",
        "next_try": None,
    }
    assert is_unchanged(store, elsewhere)
    assert _owners_of_batches(store) == [number]


def _owners_of_batches(store: Store) -> list[int]:
    with store.database.reading() as connection:
        return list(connection.scalars(select(batch_rows.c.run_id).order_by(batch_rows.c.id.asc())))


def test_a_run_waits_and_goes_on_as_the_same_run(store: Store) -> None:
    run = begin(store)
    database = store.database
    runs.renew_lease(database, run.id, TOMORROW)
    runs.mark_fetched(database, run.id)
    runs.enter_stage(database, run.id, "indexing")
    runs.set_total(database, run.id, 3)
    before = runs.find(database, run.id)
    run_transitions.suspend(database, run.id, "The index is away.", TOMORROW)
    rest = {"state": "waiting", "waiting_for": "The index is away.", "next_try": TOMORROW}
    assert changes(store, before) == rest | {"lease_until": None, "renewed_at": "now"}
    with pytest.raises(RunEndedError):
        run_transitions.suspend(database, run.id, "Again.", TOMORROW)
    other = begin(store, "web")
    run_transitions.suspend(database, other.id, "The index is away.", TOMORROW)
    waiting, other = runs.find(database, run.id), runs.find(database, other.id)
    run_transitions.resume(database, run.id, OTHER)
    assert is_unchanged(store, other)
    assert changes(store, waiting) == {
        "state": "running",
        "stage": "starting",
        "holder": OTHER,
        "waiting_for": None,
        "next_try": None,
        "renewed_at": "now",
    }


def test_a_run_is_resumed_once_and_only_where_its_source_has_no_other(store: Store) -> None:
    run, other = begin(store), begin(store, "web")
    run_transitions.suspend(store.database, run.id, "Later.", TOMORROW)
    run_transitions.resume(store.database, run.id, OTHER)
    again = r"^Another process has continued the run\.$"
    with pytest.raises(RunEndedError, match=again) as ended:
        run_transitions.resume(store.database, run.id, ME)
    assert ended.value.state == "running"
    # Two runs of one source, which only a person at the database can bring about.
    source = select(run_rows.c.source_id).where(run_rows.c.id == run.id).scalar_subquery()
    with store.database.writing() as connection:
        rests = update(run_rows).where(run_rows.c.id == run.id)
        connection.execute(rests.values(state="waiting"))
        moves = update(run_rows).where(run_rows.c.id == other.id)
        connection.execute(moves.values(source_id=source))
    with pytest.raises(RunEndedError, match=again):
        run_transitions.resume(store.database, run.id, ME)
    assert runs.find(store.database, run.id).holder == OTHER


@pytest.mark.parametrize("state", ["done", "cancelled", "paused", "needs a decision"])
def test_a_run_that_does_not_wait_is_not_resumed(store: Store, state: runs.RunState) -> None:
    run = begin(store)
    run_transitions.close(store.database, run.id, state)
    ended = runs.find(store.database, run.id)
    with pytest.raises(RunEndedError, match=r"^Another process has continued the run\.$"):
        run_transitions.resume(store.database, run.id, OTHER)
    assert is_unchanged(store, ended)


def test_a_run_without_progress_is_queued_again_with_its_batches(store: Store) -> None:
    run, other = begin(store), begin(store, "web")
    for each in (run, other):
        batches.save(store.database, each.id, [Deletion("desk:a")], None)
    runs.renew(store.database, run.id, "listing", "a.md", {"documents": 1})
    run = runs.find(store.database, run.id)
    run_transitions.requeue(store.database, run.id, "interrupted", "Nothing moved.")
    assert changes(store, run) == {
        "state": "interrupted",
        "error": "Nothing moved.",
        "renewed_at": "now",
        "finished_at": "now",
    }
    waiting = runs.latest(store.database, "desk")["desk"]
    assert waiting.id > other.id
    assert (waiting.source, waiting.kind, waiting.holder) == ("desk", "incremental", ME)
    assert (waiting.state, waiting.stage, waiting.counts) == ("waiting", "starting", {})
    assert (waiting.accepted, waiting.waiting_for) == (4, "Nothing moved.")
    assert waiting.started_at == waiting.renewed_at
    assert waiting.next_try == waiting.started_at + timedelta(minutes=1)
    assert (waiting.error, waiting.finished_at) == (None, None)
    assert _owners_of_batches(store) == [waiting.id, other.id]
    assert is_unchanged(store, other)
    with pytest.raises(RunEndedError, match=r"^Nothing moved\.$"):
        run_transitions.requeue(store.database, run.id, "failed", "Again.")


def test_a_decision_closes_its_run_until_it_is_settled(store: Store) -> None:
    run, other = begin(store, kind="prune"), begin(store, "web", kind="prune")
    counts = {"held": 9, "listed": 1, "missing": 8}
    for each in (run, other):
        run_transitions.require_decision(store.database, each.id, "8 of 9 are missing.", counts)
    assert changes(store, run) == {
        "state": "needs a decision",
        "decision": counts,
        "error": "8 of 9 are missing.",
        "renewed_at": "now",
        "finished_at": "now",
    }
    with pytest.raises(RunEndedError, match="8 of 9"):
        run_transitions.require_decision(store.database, run.id, "Again.", counts)
    run, other = runs.find(store.database, run.id), runs.find(store.database, other.id)
    run_transitions.settle_decisions(store.database, "desk", "Allowed.", kind="incremental")
    assert is_unchanged(store, run)
    run_transitions.settle_decisions(store.database, "desk", "Allowed.", kind="prune")
    assert changes(store, run) == {"state": "decided", "error": "Allowed."}
    assert is_unchanged(store, other)
    run_transitions.settle_decisions(store.database, "web", "Refused.")
    assert changes(store, other) == {"state": "decided", "error": "Refused."}
    run_transitions.settle_decisions(store.database, "web", "Again.")
    assert changes(store, other) == {"state": "decided", "error": "Refused."}


def test_what_is_running_is_no_decision_to_settle(store: Store) -> None:
    run = begin(store)
    run_transitions.settle_decisions(store.database, "desk", "Allowed.")
    assert is_unchanged(store, run)


def test_a_run_is_closed_once_and_keeps_its_counts(store: Store) -> None:
    run, other = begin(store), begin(store, "web")
    runs.renew(store.database, run.id, "indexing", None, {"documents": 3})
    run = runs.find(store.database, run.id)
    assert run_transitions.close(store.database, run.id, "failed", "It broke.") is True
    ended = {"state": "failed", "error": "It broke.", "renewed_at": "now", "finished_at": "now"}
    assert changes(store, run) == ended
    assert run_transitions.close(store.database, run.id, "done") is False
    assert changes(store, run) == ended
    run_transitions.finish(store.database, run.id, "done", {"documents": 9})
    assert changes(store, run) == ended
    assert is_unchanged(store, other)
    run_transitions.finish(store.database, other.id, "done", {"documents": 9}, "One is damaged.")
    assert changes(store, other) == {
        "state": "done",
        "counts": {"documents": 9},
        "error": "One is damaged.",
        "renewed_at": "now",
        "finished_at": "now",
    }


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("paused", "The source was paused. To resume it: quarry sources resume desk."),
        ("cancelled", "The run was cancelled. What it did is kept."),
    ],
)
@pytest.mark.parametrize("waits", ["running", "waiting"])
def test_an_open_run_is_stopped_and_no_closed_one(
    store: Store, state: runs.RunState, error: str, waits: str
) -> None:
    closed = begin(store)
    run_transitions.close(store.database, closed.id, "done")
    run, other = begin(store), begin(store, "web")
    if waits == "waiting":
        run_transitions.suspend(store.database, run.id, "Later.", TOMORROW)
    run, closed = runs.find(store.database, run.id), runs.find(store.database, closed.id)
    run_transitions.stop(store.database, "desk", state)  # type: ignore[arg-type]
    found = changes(store, run)
    assert found.pop("next_try", None) is None
    assert found == {"state": state, "error": error, "finished_at": "now"}
    assert runs.find(store.database, run.id).next_try is None
    assert is_unchanged(store, closed)
    assert is_unchanged(store, other)
    with pytest.raises(RunEndedError) as ended:
        runs.set_activity(store.database, run.id)
    assert (str(ended.value), ended.value.state) == (error, state)


@pytest.mark.parametrize("kind", ["incremental", "prune"])
def test_a_changed_connection_ends_the_run(store: Store, kind: str) -> None:
    run, other = begin(store, kind=kind), begin(store, "web")
    run_transitions.interrupt(store.database, "desk")
    assert changes(store, run) == {
        "state": "interrupted",
        "error": "The connection of desk was changed; a new run uses the new one.",
        "finished_at": "now",
    }
    assert is_unchanged(store, other)


@pytest.mark.parametrize("kind", ["reindex", "removal"])
def test_what_does_not_read_the_source_survives_a_changed_connection(
    store: Store, kind: str
) -> None:
    run = begin(store, kind=kind)
    run_transitions.interrupt(store.database, "desk")
    assert is_unchanged(store, run)


def test_each_transition_is_logged_with_its_reason(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "quarry.runs")
    database = store.database
    run = begin(store).id
    run_transitions.suspend(database, run, "The index is away.", TOMORROW)
    run_transitions.resume(database, run, ME)
    run_transitions.requeue(database, run, "interrupted", "Nothing moved.")
    second = begin(store).id
    run_transitions.require_decision(database, second, "8 are missing.", {"missing": 8})
    third = begin(store).id
    run_transitions.finish(database, third, "done", {"documents": 2, "deleted": 0})
    fourth = begin(store).id
    run_transitions.close(database, fourth, "done")
    fifth = begin(store).id
    run_transitions.stop(database, "desk", "cancelled")
    desk = sources.find(database, "desk").id
    named = {"source": "desk", "source_id": desk, "kind": "incremental"}
    logged = [vars(entry)["fields"] for entry in caplog.records]
    assert all(fields | named == fields for fields in logged)
    assert [(one["run"], one["state"], one.get("reason")) for one in logged] == [
        (run, "running", None),
        (run, "waiting", "The index is away."),
        (run, "running", None),
        (run, "interrupted", "Nothing moved."),
        (second, "running", None),
        (second, "needs a decision", "8 are missing."),
        (third, "running", None),
        (third, "done", None),
        (fourth, "running", None),
        (fourth, "done", None),
        (fifth, "running", None),
        (fifth, "cancelled", "The run was cancelled. What it did is kept."),
    ]
    assert [one["counts"] for one in logged if one["counts"]] == [{"documents": 2}]
    caplog.clear()
    run_transitions.finish(database, 10**6, "done", {})
    assert caplog.messages == []
