"""The service for sources: actions, their audit entries, and the present state of a source."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from backend.sources.service import SourceService
from backend.store import audit
from backend.store.documents import batches
from backend.store.sync import failures, listings, run_transitions, runs, schedule, sources, workers
from backend.store.sync.runs import Process, Run
from backend.store.sync.sources import Source
from backend.sync.run_lease import this_process
from connectors.connector import Deletion
from connectors.errors import ConflictError, NotFoundError
from indexing.ingestion.ledger import Failed
from indexing.ingestion.pipeline import EmptyListing
from indexing.ingestion.progress import ProgressMeter
from tests.support.document_sets import define, folder, source, tag
from tests.support.store import Store, alive, document, source_service, store_at


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web") as store:
        yield store


def begun(store: Store, kind: str = "incremental") -> int:
    run = run_transitions.begin(store.database, "desk", kind, this_process(), alive)
    runs.enter_stage(store.database, run, "indexing")
    return run


def test_a_source_that_was_never_read_says_so_and_when_it_will_be(store: Store) -> None:
    status = source_service(store.database).status("desk")
    assert (status.state, status.run, status.rate, status.documents) == (
        "never synced",
        None,
        None,
        0,
    )
    assert status.next_starts["incremental"] is not None
    assert status.next_starts["incremental"] <= datetime.now(UTC)
    # Before it was read there is nothing to compare a listing with.
    assert status.next_starts["prune"] is None


def test_a_run_says_all_that_can_be_asked_of_it(store: Store) -> None:
    run = begun(store)
    store.hold(document("desk:a"), document("desk:b"))
    batches.save(store.database, run, [Deletion("desk:x")], None)
    progress = ProgressMeter("desk", "indexing").advance("leave.pdf", 2)
    runs.report_progress(store.database, run, progress, {"documents": 2})
    runs.set_activity(store.database, run, "leave.pdf", "the index, to take in what was read")
    status = source_service(store.database).status("desk")
    assert status.run is not None
    assert (status.state, status.run.kind, status.run.id, status.run.stage) == (
        "running",
        "incremental",
        run,
        "indexing",
    )
    assert (status.run.item, status.run.counts) == ("leave.pdf", {"documents": 2})
    assert status.run.waiting_for == "the index, to take in what was read"
    assert status.rate is not None
    assert status.rate > 0
    assert status.run.started_at is not None
    assert (status.open_batches, status.documents) == (1, 2)


def test_a_run_whose_process_has_died_is_not_said_to_go_on(store: Store) -> None:
    here = this_process()
    run_transitions.begin(
        store.database, "desk", "prune", Process(here.host, here.number, "0"), alive
    )
    assert source_service(store.database).status("desk").state == "interrupted"


def test_a_paused_source_begins_nothing_until_it_is_resumed(store: Store) -> None:
    begun(store)
    source_service(store.database).pause("desk")
    status = source_service(store.database).status("desk")
    assert status.state == "paused"
    assert set(status.next_starts.values()) == {None}
    for action in (SourceService.prune, SourceService.retry, SourceService.accept):
        with pytest.raises(ConflictError, match="quarry sources resume desk"):
            action(source_service(store.database), "desk")
    source_service(store.database).resume("desk")
    (due, _) = schedule.list_due(store.database, datetime.now(UTC), alive)
    assert due.source in {"desk", "web"}
    assert source_service(store.database).status("desk").paused_at is None


def test_a_run_that_waits_can_be_cancelled_and_is_next_due_as_usual(store: Store) -> None:
    run = begun(store)
    later = datetime.now(UTC) + timedelta(hours=3)
    run_transitions.suspend(store.database, run, "Too many requests.", later)
    status = source_service(store.database).status("desk")
    assert status.run is not None
    assert (status.state, status.run.waiting_for, status.run.next_try) == (
        "waiting",
        "Too many requests.",
        later,
    )
    source_service(store.database).cancel("desk")
    status = source_service(store.database).status("desk")
    assert status.state == "cancelled"
    next_start = status.next_starts["incremental"]
    assert next_start is not None
    assert next_start > datetime.now(UTC) + timedelta(minutes=14)
    with pytest.raises(ConflictError, match="'desk' has no current run"):
        source_service(store.database).cancel("desk")


def test_only_what_failed_can_be_tried_again(store: Store) -> None:
    with pytest.raises(ConflictError, match="'desk' has no failed documents"):
        source_service(store.database).retry("desk")
    store.ledger.save(
        [Failed(source="desk", document_id=f"desk:{name}", item=name, reason="") for name in "ab"]
    )
    now = datetime.now(UTC)
    assert failures.list_due(store.database, "desk", now, 10) == []
    with pytest.raises(ConflictError, match="No such document of 'desk'"):
        source_service(store.database).retry("desk", ["desk:none"])
    assert (
        source_service(store.database).retry("desk", ["desk:a", "desk:none"]).told.startswith("1 ")
    )
    assert failures.list_due(store.database, "desk", datetime.now(UTC), 10) == ["desk:a"]
    assert source_service(store.database).status("desk").failures == 2


def test_a_decision_stands_until_it_is_accepted(store: Store) -> None:
    with pytest.raises(ConflictError, match="no run that waits for a decision"):
        source_service(store.database).accept("desk")
    schedule.record_end(store.database, "desk", ["incremental"], datetime.now(UTC))
    numbers = {"held": 100, "listed": 10, "missing": 90}
    run_transitions.require_decision(
        store.database, begun(store, "prune"), "Much is missing.", numbers
    )
    status = source_service(store.database).status("desk")
    assert status.run is not None
    assert (status.state, status.decision, status.run.error) == (
        "needs a decision",
        numbers,
        "Much is missing.",
    )
    run_transitions.close(store.database, begun(store), "done")
    assert source_service(store.database).status("desk").decision == numbers
    assert (
        source_service(store.database)
        .accept("desk")
        .told.startswith("90 documents of desk will be deleted")
    )
    assert _due_check(store).accepted == 90
    status = source_service(store.database).status("desk")
    assert (status.decision, status.state) == (None, "done")


def _due_check(store: Store) -> schedule.Due:
    (due,) = [
        each
        for each in schedule.list_due(store.database, datetime.now(UTC), alive)
        if each.source == "desk" and each.kind == "prune"
    ]
    return due


def _undecided(store: Store, missing: int) -> None:
    schedule.record_end(store.database, "desk", ["incremental"], datetime.now(UTC))
    numbers = {"held": 100, "listed": 100 - missing, "missing": missing}
    run_transitions.require_decision(store.database, begun(store, "prune"), "Gone.", numbers)


def test_a_decision_is_settled_by_kind_and_not_by_a_run_that_failed_or_was_cancelled(
    store: Store,
) -> None:
    _undecided(store, 90)
    service = source_service(store.database)
    run_transitions.close(store.database, begun(store, "prune"), "failed", "It does not answer.")
    schedule.record_end(store.database, "desk", ["prune"], datetime.now(UTC))
    assert service.status("desk").decision is not None
    begun(store, "prune")
    service.cancel("desk")
    assert service.status("desk").decision is not None
    run_transitions.settle_decisions(store.database, "desk", "Listed again.", "permissions")
    assert service.status("desk").decision is not None
    run_transitions.settle_decisions(store.database, "desk", "Listed again.")
    assert service.status("desk").decision is None


def test_what_is_kept_is_looked_for_again_and_not_asked_about_meanwhile(store: Store) -> None:
    _undecided(store, 80)
    _undecided(store, 90)
    assert "are kept" in source_service(store.database).keep("desk").told
    assert _due_check(store).accepted is None
    status = source_service(store.database).status("desk")
    assert (status.state, status.decision) == ("decided", None)
    with pytest.raises(ConflictError, match="no run that waits for a decision"):
        source_service(store.database).accept("desk")


def test_nothing_is_accepted_that_was_not_shown(store: Store) -> None:
    _undecided(store, 80)
    _undecided(store, 90)
    with pytest.raises(ConflictError, match="By now 90 documents of 'desk' are missing, not 80"):
        source_service(store.database).accept("desk", 80)
    assert source_service(store.database).status("desk").decision is not None
    source_service(store.database).accept("desk", 90)
    assert _due_check(store).accepted == 90


def test_a_decision_of_a_permission_sync_is_carried_out_by_a_deletion_check(store: Store) -> None:
    """A permission sync itself deletes nothing."""
    schedule.record_end(store.database, "desk", ["incremental"], datetime.now(UTC))
    numbers = {"held": 100, "listed": 10, "missing": 90}
    run = begun(store, "permissions")
    run_transitions.require_decision(store.database, run, "Gone.", numbers)
    source_service(store.database).accept("desk")
    assert _due_check(store).accepted == 90


def test_the_sets_that_lose_rules_with_a_source_are_in_the_audit(store: Store) -> None:
    for name, *rules in (("Rules", source("desk"), folder("desk", "x")), ("Others", tag("k=v"))):
        define(store.database, name, *rules)
    source_service(store.database).delete("desk")
    (entry, *_) = audit.list_entries(store.database)
    assert (entry.action, entry.detail) == ("delete", {"sets_losing_rules": ["Rules"]})


@pytest.mark.parametrize(
    "say",
    [
        SourceService.pause,
        SourceService.resume,
        SourceService.cancel,
        SourceService.delete,
        SourceService.accept,
        SourceService.retry,
        SourceService.status,
        SourceService.prune,
    ],
)
def test_a_source_that_is_not_there_is_named(
    store: Store, say: Callable[[SourceService, str], object]
) -> None:
    with pytest.raises(NotFoundError, match="no source named 'attic'"):
        say(source_service(store.database), "attic")


def test_who_said_what_is_kept(store: Store) -> None:
    source_service(store.database).pause("desk")
    source_service(store.database).resume("desk")
    source_service(store.database).prune("desk")
    entries = audit.list_entries(store.database, audit.AuditFilter(subject="desk"))
    assert [(each.action, each.actor) for each in entries] == [
        ("prune", "owner"),
        ("resume", "owner"),
        ("pause", "owner"),
    ]


def test_a_source_is_rescheduled_and_that_is_kept_in_mind(store: Store) -> None:
    every = {"incremental": timedelta(hours=1), "prune": timedelta(0)}
    source_service(store.database).reschedule("desk", every)
    status = source_service(store.database).status("desk")
    assert status.intervals == {"incremental": 3_600, "permissions": 900, "prune": 0}
    source_service(store.database).reschedule("desk", {"incremental": None})
    assert source_service(store.database).status("desk").intervals["incremental"] == 900
    entries = audit.list_entries(store.database, audit.AuditFilter(subject="desk"))
    assert [each.detail for each in entries if each.action == "reschedule"] == [
        {"before": {"incremental": 3_600}, "after": {"incremental": 900}},
        {
            "before": {"incremental": 900, "prune": 21_600},
            "after": {"incremental": 3_600, "prune": 0},
        },
    ]


def test_the_audit_holds_the_settings_of_a_source_before_and_after(store: Store) -> None:
    service = source_service(store.database)
    service.add("mbox", {"path": "/srv/plans", "readers": ["user:ann@example.com"]}, name="plans")
    service.edit("plans", {"path": "/srv/plans", "readers": ["public"]}, None)
    service.edit("plans", {"path": "/srv/plans", "readers": ["public"]}, None)
    same, edited, added = audit.list_entries(
        store.database, audit.AuditFilter(subject="plans"), limit=3
    )
    assert (added.action, added.detail["kind"]) == ("add", "mbox")
    settings = added.detail["settings"]
    assert isinstance(settings, dict)
    assert (settings["path"], settings["readers"]) == ("/srv/plans", ["user:ann@example.com"])
    assert edited.detail == {
        "changed": ["settings"],
        "before": {"readers": ["user:ann@example.com"]},
        "after": {"readers": ["public"]},
    }
    assert same.detail == {"changed": ["settings"]}


def test_only_what_runs_by_itself_has_an_interval(store: Store) -> None:
    with pytest.raises(ValueError, match="'retry' have no interval"):
        source_service(store.database).reschedule("desk", {"retry": timedelta(hours=1)})


def test_an_action_that_fails_leaves_nothing_but_the_refusal_in_the_audit(store: Store) -> None:
    service = source_service(store.database)
    service.pause("desk")
    with pytest.raises(ConflictError):
        service.sync("desk")
    refused, paused = audit.list_entries(store.database, audit.AuditFilter(subject="desk"))
    assert (refused.action, refused.outcome, paused.outcome) == ("sync", "refused", "done")
    assert "is paused" in str(refused.detail["refused"])


@dataclass(frozen=True)
class Server:
    """Implements `backend.sources.service.Syncs`: what it is told to do is all that it does."""

    processes: Sequence[Process] = ()
    own: list[str] = field(default_factory=list)

    def running(self, source: str) -> str | None:
        return f"own of {source}" if source in self.own else None

    def other_servers(self) -> Sequence[Process]:
        return self.processes

    def follow(self, run: Run) -> str:
        return f"run {run.id}"

    def begin(self, source: Source, when_empty: EmptyListing) -> str:
        return f"begun of {source.name}: {when_empty.name}"


def list_syncs(store: Store) -> list[tuple[str, str]]:
    entries = audit.list_entries(store.database, audit.AuditFilter(action="sync"))
    return [(entry.subject, entry.outcome) for entry in entries]


def test_a_sync_is_begun_and_recorded_where_no_process_works_on_the_source(store: Store) -> None:
    service = source_service(store.database)
    begun_here = service.follow_or_begin("desk", EmptyListing.ACCEPT, Server())
    assert begun_here == "begun of desk: ACCEPT"
    assert list_syncs(store) == [("desk", "done")]
    sources.set_paused(store.database, "desk", datetime.now(UTC))
    with pytest.raises(ConflictError, match="is paused"):
        service.follow_or_begin("desk", EmptyListing.REFUSE, Server())
    assert list_syncs(store) == [("desk", "refused"), ("desk", "done")]


def test_a_sync_of_the_same_server_is_followed_and_not_recorded_again(store: Store) -> None:
    service, run = source_service(store.database), begun(store)
    refuse = EmptyListing.REFUSE
    assert service.follow_or_begin("desk", refuse, Server([this_process()])) == f"run {run}"
    assert service.follow_or_begin("desk", refuse, Server(own=["desk"])) == "own of desk"
    assert list_syncs(store) == []


def test_a_sync_that_cannot_be_followed_is_named_and_none_is_recorded(store: Store) -> None:
    service = source_service(store.database)
    begun(store)
    elsewhere = pytest.raises(ConflictError, match=r"has been running since .* Wait until it is")
    with elsewhere:
        service.follow_or_begin("desk", EmptyListing.REFUSE, Server())
    with elsewhere:
        service.record_sync("desk", EmptyListing.REFUSE)
    assert list_syncs(store) == []


def test_an_action_is_one_transaction_with_its_audit_entry(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "record", Mock(side_effect=RuntimeError))
    with pytest.raises(RuntimeError):
        source_service(store.database).pause("desk")
    assert source_service(store.database).status("desk").paused_at is None


def test_who_asks_for_something_while_no_worker_runs_is_reported(store: Store) -> None:
    service = source_service(store.database)
    for ask in (service.sync, service.prune, service.permissions, service.delete):
        assert "No worker is running. Start `quarry serve`" in ask("desk").told
    workers.register(store.database, this_process(), "serve")
    assert "worker" not in service.sync("web").told


def test_a_missing_queue_is_named(store: Store) -> None:
    for queue in ("fetch", "index", "beat"):
        workers.register(store.database, Process("far", len(queue), queue), queue)
    message = source_service(store.database).prune("desk").told
    assert message.endswith("Start quarry worker --queue light.")


def test_what_was_saved_is_tried_at_once_unless_the_source_is_paused(store: Store) -> None:
    service = source_service(store.database)
    for name in ("desk", "web"):
        for kind in ("incremental", "permissions", "prune"):
            schedule.record_end(store.database, name, [kind], datetime.now(UTC))
    service.pause("web")
    for name in ("desk", "web"):
        service.edit(name, {"path": "/tmp"}, None)
    due = schedule.list_due(store.database, datetime.now(UTC), alive)
    assert [(one.source, one.kind) for one in due] == [("desk", "incremental")]


def test_readers_in_the_settings_are_compared_with_nothing_and_applied_when_they_change(
    store: Store,
) -> None:
    site = {"url": "https://example.com/", "readers": ["public"]}
    sources.add(store.database, "site", "web", site)
    schedule.record_end(store.database, "site", ["incremental", "prune"], datetime.now(UTC))
    service = source_service(store.database)
    refused = pytest.raises(ConflictError, match="settings of 'site' say who may read it")
    with refused:
        service.permissions("site")
    with refused:
        service.reschedule("site", {"permissions": timedelta(hours=1)})
    status = service.status("site")
    assert status.has_fixed_readers
    assert "permissions" not in status.intervals
    assert status.next_starts["permissions"] is None
    service.edit("site", site | {"readers": ["group:staff"]}, None)
    assert [one.kind for one in schedule.list_due(store.database, datetime.now(UTC), alive)][
        -1:
    ] == ["permissions"]


def test_it_is_known_since_when_permissions_are_compared(store: Store) -> None:
    service = source_service(store.database)
    assert service.status("desk").permissions_compared_at is None
    run, before = begun(store, "permissions"), datetime.now(UTC)
    listings.resume(store.database, run)
    assert service.status("desk").permissions_compared_at is None
    listings.finish(store.database, "desk")
    compared_at = service.status("desk").permissions_compared_at
    assert compared_at is not None
    assert before <= compared_at <= datetime.now(UTC)
    assert not service.status("desk").has_fixed_readers
