"""What a person says about a source, and what they are told of it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from backend.store import audit, batches, failures, runs, schedule
from backend.store.database import Database
from backend.store.runs import Process, Run
from backend.sync import source_control
from backend.sync.process_identity import this_process
from connectors.connector import Deletion
from connectors.errors import ActionRequiredError
from indexing.ingestion.ledger import Failed
from tests.support.store import Store, document, store_at


def alive(run: Run) -> bool:
    del run
    return False


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web") as store:
        yield store


def begun(store: Store, kind: str = "incremental") -> int:
    run = runs.begin(store.database, "desk", kind, this_process(), alive)
    runs.enter(store.database, run, "indexing")
    return run


def test_a_source_that_was_never_read_says_so_and_when_it_will_be(store: Store) -> None:
    told = source_control.status(store.database, "desk")
    assert (told.state, told.last, told.rate, told.documents) == ("never synced", None, None, 0)
    assert told.next_starts["incremental"] is not None
    assert told.next_starts["incremental"] <= datetime.now(UTC)
    # Before it was read there is nothing to compare a listing with.
    assert told.next_starts["prune"] is None


def test_a_run_says_all_that_can_be_asked_of_it(store: Store) -> None:
    run = begun(store)
    store.hold(document("desk:a"), document("desk:b"))
    batches.save(store.database, run, [Deletion("desk:x")], None)
    runs.tell(store.database, run, "indexing", "leave.pdf", {"documents": 2})
    runs.note(store.database, run, "leave.pdf", "the index, to take in what was read")
    told = source_control.status(store.database, "desk")
    assert told.last is not None
    assert (told.state, told.last.kind, told.last.id, told.last.stage) == (
        "running",
        "incremental",
        run,
        "indexing",
    )
    assert (told.last.item, told.last.counts) == ("leave.pdf", {"documents": 2})
    assert told.last.waiting_for == "the index, to take in what was read"
    assert told.rate is not None
    assert told.rate > 0
    assert told.last.started_at is not None
    assert (told.open_batches, told.documents) == (1, 2)


def test_a_run_whose_process_has_died_is_not_said_to_go_on(store: Store) -> None:
    here = this_process()
    runs.begin(store.database, "desk", "prune", Process(here.host, here.number, "0"), alive)
    assert source_control.status(store.database, "desk").state == "interrupted"


def test_a_paused_source_begins_nothing_until_it_is_resumed(store: Store) -> None:
    begun(store)
    source_control.pause(store.database, "desk")
    told = source_control.status(store.database, "desk")
    assert told.state == "paused"
    assert set(told.next_starts.values()) == {None}
    for request in (
        lambda: source_control.request(store.database, "desk", "prune"),
        lambda: source_control.retry(store.database, "desk"),
        lambda: source_control.accept(store.database, "desk"),
    ):
        with pytest.raises(ActionRequiredError, match="quarry sources resume desk"):
            request()
    source_control.resume(store.database, "desk")
    (due, _) = schedule.due(store.database, datetime.now(UTC), alive)
    assert due.source in {"desk", "web"}
    assert source_control.status(store.database, "desk").connected.paused_at is None


def test_a_run_that_waits_can_be_cancelled_and_is_next_due_as_usual(store: Store) -> None:
    run = begun(store)
    later = datetime.now(UTC) + timedelta(hours=3)
    runs.wait(store.database, run, "Too many requests.", later)
    told = source_control.status(store.database, "desk")
    assert told.last is not None
    assert (told.state, told.last.waiting_for, told.last.next_try) == (
        "waiting",
        "Too many requests.",
        later,
    )
    source_control.cancel(store.database, "desk")
    told = source_control.status(store.database, "desk")
    assert told.state == "cancelled"
    next_start = told.next_starts["incremental"]
    assert next_start is not None
    assert next_start > datetime.now(UTC) + timedelta(minutes=14)
    with pytest.raises(ActionRequiredError, match="No run of 'desk'"):
        source_control.cancel(store.database, "desk")


def test_only_what_failed_can_be_tried_again(store: Store) -> None:
    with pytest.raises(ActionRequiredError, match="No such document"):
        source_control.retry(store.database, "desk")
    store.ledger.save(
        [Failed(source="desk", document_id=f"desk:{name}", item=name, reason="") for name in "ab"]
    )
    now = datetime.now(UTC)
    assert failures.due(store.database, "desk", now, 10) == []
    assert source_control.retry(store.database, "desk", ["desk:a", "desk:none"]) == 1
    assert failures.due(store.database, "desk", datetime.now(UTC), 10) == ["desk:a"]
    assert source_control.status(store.database, "desk").failures == 2


def test_a_decision_stands_until_it_is_accepted_or_a_listing_was_taken_over(store: Store) -> None:
    with pytest.raises(ActionRequiredError, match="Nothing is to be decided"):
        source_control.accept(store.database, "desk")
    schedule.note(store.database, "desk", ["incremental"], datetime.now(UTC))
    numbers = {"held": 100, "listed": 10, "missing": 90}
    runs.ask(store.database, begun(store, "prune"), "Much is missing.", numbers)
    told = source_control.status(store.database, "desk")
    assert told.last is not None
    assert (told.state, told.decision, told.last.error) == (
        "needs a decision",
        numbers,
        "Much is missing.",
    )
    runs.close(store.database, begun(store), "done")
    assert source_control.status(store.database, "desk").decision == numbers
    assert source_control.accept(store.database, "desk") == numbers
    (due,) = [
        each
        for each in schedule.due(store.database, datetime.now(UTC), alive)
        if each.source == "desk" and each.kind == "prune"
    ]
    assert due.accepted == 90
    schedule.note(store.database, "desk", ["prune"], datetime.now(UTC))
    assert source_control.status(store.database, "desk").decision is None


@pytest.mark.parametrize(
    "say",
    [
        source_control.pause,
        source_control.resume,
        source_control.cancel,
        source_control.delete,
        source_control.accept,
        source_control.retry,
        source_control.status,
        lambda database, name: source_control.request(database, name, "prune"),
    ],
)
def test_a_source_that_is_not_there_is_named(
    store: Store, say: Callable[[Database, str], object]
) -> None:
    with pytest.raises(ActionRequiredError, match="no source named 'attic'"):
        say(store.database, "attic")


def test_a_kind_of_run_that_is_none_is_a_mistake(store: Store) -> None:
    with pytest.raises(ValueError, match="'tidy'"):
        source_control.request(store.database, "desk", "tidy")


def test_who_said_what_is_kept(store: Store) -> None:
    source_control.pause(store.database, "desk")
    source_control.resume(store.database, "desk")
    source_control.request(store.database, "desk", "prune")
    told = [(each.action, each.actor) for each in audit.listing(store.database, "desk")]
    assert told == [("request", "owner"), ("resume", "owner"), ("pause", "owner")]


def test_a_source_is_rescheduled_and_that_is_kept_in_mind(store: Store) -> None:
    every = {"incremental": timedelta(hours=1), "prune": timedelta(0)}
    source_control.reschedule(store.database, "desk", every)
    told = source_control.status(store.database, "desk")
    assert told.every == every | {"permissions": timedelta(minutes=15)}
    source_control.reschedule(store.database, "desk", {"incremental": None})
    assert source_control.status(store.database, "desk").every["incremental"] == timedelta(
        minutes=15
    )
    entries = audit.listing(store.database, "desk")
    assert [each.detail for each in entries if each.action == "reschedule"] == [
        {"incremental": None},
        {"incremental": 3_600, "prune": 0},
    ]


def test_only_what_runs_by_itself_has_an_interval(store: Store) -> None:
    with pytest.raises(ValueError, match="'retry' have no interval"):
        source_control.reschedule(store.database, "desk", {"retry": timedelta(hours=1)})
