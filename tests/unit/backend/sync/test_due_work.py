"""Due work is done by the worker that comes first; what it waits for is reported."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from backend.access.readers import resolve_readers
from backend.sources.service import SourceService
from backend.store.database import Database
from backend.store.documents import batches, document_set_jobs, document_sets
from backend.store.schema import tables
from backend.store.sync import failures, listings, run_transitions, runs, schedule, sources
from backend.store.sync.runs import Process, Run
from backend.store.sync.sources import Source
from backend.sync import wakeup_messages
from backend.sync.due_work import Engine
from backend.sync.run_lease import StallLimit, StoppedError, this_process
from backend.sync.run_steps import MOST_OPEN
from backend.sync.wakeup_messages import WakeupMessage
from backend.sync.worker_threads import WorkerThreads
from connectors.access import EVERYBODY, NOBODY, Access, Readers
from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Deletion,
    DocumentListing,
    KnownVersions,
    ListingItem,
    ReaderGroup,
    Unreadable,
)
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.ingestion.batching import BatchSize
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.pipeline import Pipeline
from tests.support.document_sets import define, folder, single
from tests.support.document_sets import members as members_of
from tests.support.memory_index_writer import MemoryIndexWriter
from tests.support.store import Store, alive, document, kept_texts, source_service, store_at

EMBEDDER = HashingEmbedder()
SOON = 30.0


def at_once(seconds: float) -> bool:
    del seconds
    return True


def nobody(process: Process) -> bool:
    del process
    return False


def nothing(number: int) -> None:
    del number


@dataclass
class Shelf:
    """A source whose documents are those on it; `before` may do something else at one of them.

    It cannot be listed where `refusal` says why. Where it has a `budget`, it lists so many at a time.
    """

    source: str
    documents: list[Document] = field(default_factory=list)
    before: Callable[[int], Change | None] = nothing
    again_asked: list[str] = field(default_factory=list)
    refusal: str = ""
    budget: int | None = None
    listed: list[str] = field(default_factory=list)

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        del since
        held = known([each.id for each in self.documents])
        for number, each in enumerate(self.documents):
            if change := self.before(number):
                yield change
            elif held.get(each.id) != each.version:
                yield each
            yield Checkpoint(str(number))

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        there = {each.id: each for each in self.documents}
        for each in document_ids:
            self.again_asked.append(each)
            yield there.get(each, Deletion(each))

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        if self.refusal:
            raise ActionRequiredError(self.refusal)
        after = since.value if since else ""
        for number, each in enumerate(one for one in self.documents if one.id > after):
            if self.budget is not None and number >= self.budget:
                raise TemporarilyUnavailableError("Too many requests.", timedelta(hours=1))
            self.listed.append(each.id)
            yield DocumentListing(each.id, each.access)
            if self.budget is not None:
                yield Checkpoint(each.id)

    def check(self) -> Iterator[Check]:
        yield from ()


@dataclass
class Office:
    """Implements `backend.sync.due_work.Home`."""

    store: Store
    writer: MemoryIndexWriter
    shelves: dict[str, Shelf]

    @property
    def database(self) -> Database:
        return self.store.database

    def connector(self, source: Source) -> Shelf:
        return self.shelves[source.name]

    def pipeline(self, source: Source) -> Pipeline:
        size = BatchSize(documents=2)
        return Pipeline(source.name, EMBEDDER, self.writer, self.store.ledger, size)

    def batch_worker(self) -> BatchWorker:
        return BatchWorker(EMBEDDER, self.writer, self.store.ledger)

    def engine(self, still: float = 900.0) -> Engine:
        """Gives up what does not move for so many seconds."""
        return Engine(lambda: self, bound=StallLimit(still=timedelta(seconds=still)))

    def latest(self, source: str = "desk") -> Run:
        return runs.latest(self.database)[source]

    def state(self, source: str = "desk") -> str | None:
        run = runs.latest(self.database).get(source)
        return None if run is None else run.state

    def agrees(self) -> bool:
        entries = [
            each for name in sorted(self.shelves) for each in self.store.ledger.scan(name, "")
        ]
        return entries == list(self.writer.scan())

    def fill(self, source: str, count: int) -> None:
        self.shelves[source].documents = [
            document(f"{source}:{number:04}") for number in range(count)
        ]


@pytest.fixture
def office(database_url: str) -> Iterator[Office]:
    with store_at(database_url, "desk", "web") as store:
        sources.set_paused(store.database, "web", datetime.now(UTC))
        writer = MemoryIndexWriter(EMBEDDER.dimension)
        yield Office(store, writer, {name: Shelf(name) for name in ("desk", "web")})


def worked(office: Office, until: Callable[[], bool]) -> None:
    """Let the workers work until then."""
    engine = office.engine()
    workers = WorkerThreads(engine, at_once, pause=0.1)
    workers.start()
    end = time.monotonic() + SOON
    while not until() and time.monotonic() < end:
        time.sleep(0.02)
    assert workers.stop(SOON)
    assert until()


def done(office: Office, *kinds: str) -> Callable[[], bool]:
    def is_done() -> bool:
        history = runs.history(office.database, "desk")
        return [run.kind for run in reversed(history) if run.state == "done"] == list(kinds)

    return is_done


def due_again(office: Office, kind: str) -> None:
    schedule.request_run(office.database, "desk", kind)


def test_a_new_source_is_read_without_being_asked_for(office: Office) -> None:
    office.fill("desk", 7)
    worked(office, done(office, "first"))
    run = office.latest()
    assert {name: count for name, count in run.counts.items() if count} == {
        "documents": 7,
        "chunks": 7,
        "embedded": 7,
    }
    assert office.agrees()
    assert batches.count(office.database, "desk") == 0
    starts = schedule.read_plans(office.database, "desk")["desk"].starts
    assert all(starts[kind] for kind in ("incremental", "permissions", "prune"))


def test_two_sources_are_read_at_once(office: Office) -> None:
    office.fill("desk", 20)
    office.fill("web", 20)
    source_service(office.database).resume("web")
    ledger = office.store.ledger
    worked(office, lambda: ledger.count("desk") == ledger.count("web") == 20)


def test_reading_never_gets_far_ahead_of_indexing_and_says_what_it_waits_for(
    office: Office,
) -> None:
    office.fill("desk", 100)
    engine = office.engine()
    reader = threading.Thread(target=engine.fetch_due)
    reader.start()
    wait_for(lambda: _latest_waits_for(office, "batches"))
    assert batches.count(office.database, "desk") == MOST_OPEN
    while reader.is_alive():
        engine.index_due()
    reader.join()
    assert office.store.ledger.count("desk") == 100


def _latest_waits_for(office: Office, what: str) -> bool:
    run = runs.latest(office.database).get("desk")
    return run is not None and what in (run.waiting_for or "")


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_left_the_source_is_found_by_a_prune_and_new_readers_by_a_permissions_run(
    office: Office,
) -> None:
    office.fill("desk", 5)
    worked(office, done(office, "first"))
    first, _, *rest = office.shelves["desk"].documents
    hr = Access.to(["group:hr"])
    office.shelves["desk"].documents = [replace(first, access=hr), *rest]
    due_again(office, "permissions")
    worked(office, done(office, "first", "permissions"))
    assert office.writer.held[first.id].chunks[0].access == hr
    assert office.store.ledger.count("desk") == 5
    due_again(office, "prune")
    worked(office, done(office, "first", "permissions", "prune"))
    assert office.store.ledger.count("desk") == 4
    assert office.agrees()


@dataclass
class Channels(Shelf):
    """A shelf whose documents name channels; these have members."""

    members: dict[str, set[str]] = field(default_factory=dict)

    def groups(self, since: Checkpoint | None) -> Iterator[ReaderGroup]:
        del since
        for token, members in self.members.items():
            yield ReaderGroup(token, frozenset(members))


def test_a_permissions_run_brings_members_and_changes_no_document(office: Office) -> None:
    plans = f"external:{sources.find(office.database, 'desk').id}:plans"
    shelf = Channels("desk", [document("desk:a", access=Access.to([plans]))])
    office.shelves["desk"] = shelf
    ann, bob = Readers.of("user:ann@x.de"), Readers.of("user:bob@x.de")

    def members() -> list[Readers]:
        held = ((each, resolve_readers(office.database, each)) for each in (ann, bob))
        return [each for each, readers in held if plans in readers.tokens]

    shelf.members = {plans: {"user:ann@x.de"}}
    worked(office, done(office, "first"))
    assert members() == [ann]
    shelf.members = {plans: {"user:bob@x.de"}}
    written = len(office.writer.log)
    due_again(office, "permissions")
    worked(office, done(office, "first", "permissions"))
    assert members() == [bob]
    assert len(office.writer.log) == written


def test_a_channel_that_is_new_in_a_content_sync_gets_its_members_soon(office: Office) -> None:
    desk = sources.find(office.database, "desk").id
    plans, board = f"external:{desk}:plans", f"external:{desk}:board"
    shelf = Channels("desk", [document("desk:a", access=Access.to([plans]))])
    shelf.members = {plans: {"user:ann@x.de"}}
    office.shelves["desk"] = shelf
    worked(office, done(office, "first"))
    shelf.documents.append(document("desk:b", access=Access.all_of([[plans], [board]])))
    shelf.members[board] = {"user:ann@x.de"}
    due_again(office, "incremental")
    worked(office, done(office, "first", "incremental", "permissions"))
    assert board in resolve_readers(office.database, Readers.of("user:ann@x.de")).tokens
    due_again(office, "incremental")
    worked(office, done(office, "first", "incremental", "permissions", "incremental"))


@dataclass
class ChannelsById(Channels):
    """The channel of a document is in its id."""

    asked: list[str] = field(default_factory=list)

    def groups(self, since: Checkpoint | None) -> Iterator[ReaderGroup]:
        self.asked.append("groups")
        yield from super().groups(since)

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        self.asked.append("documents")
        yield from super().listing(since)

    def derive_access(self, document_id: str) -> Access:
        (token,) = self.members
        return Access.to([token]) if document_id.startswith("desk:") else NOBODY


def test_where_ids_say_the_channel_a_permissions_run_asks_for_members_alone(office: Office) -> None:
    plans = f"external:{sources.find(office.database, 'desk').id}:plans"
    shelf = ChannelsById("desk", [document("desk:a", access=Access.to([plans]))])
    shelf.members = {plans: {"user:ann@x.de"}}
    office.shelves["desk"] = shelf
    worked(office, done(office, "first"))
    assert shelf.asked == ["groups"]
    due_again(office, "permissions")
    worked(office, done(office, "first", "permissions"))
    assert shelf.asked == ["groups", "groups"]
    due_again(office, "prune")
    worked(office, done(office, "first", "permissions", "prune"))
    assert shelf.asked == ["groups", "groups", "documents"]


def test_a_listing_that_shrank_too_much_waits_for_a_person(office: Office) -> None:
    """60 of 100 are missing: more than fifty, and more than a fifth."""
    office.fill("desk", 100)
    worked(office, done(office, "first"))
    office.fill("desk", 40)
    due_again(office, "prune")
    worked(office, lambda: office.state() == "needs a decision")
    assert office.store.ledger.count("desk") == 100
    status = source_service(office.database).status("desk")
    assert status.decision == {"held": 100, "listed": 40, "missing": 60}
    assert source_service(office.database).accept("desk").told.count("60 documents") == 1
    office.fill("desk", 30)
    worked(office, lambda: office.latest().accepted == 60 and office.state() != "running")
    assert office.latest().state == "needs a decision"
    source_service(office.database).accept("desk")
    worked(office, done(office, "first", "prune"))
    assert office.store.ledger.count("desk") == 30
    assert source_service(office.database).status("desk").decision is None


def test_a_deletion_check_that_fails_leaves_the_decision_and_one_that_succeeds_settles_it(
    office: Office,
) -> None:
    office.fill("desk", 100)
    worked(office, done(office, "first"))
    office.fill("desk", 40)
    due_again(office, "prune")
    worked(office, lambda: office.state() == "needs a decision")
    office.shelves["desk"].refusal = "The token has expired."
    due_again(office, "prune")
    worked(office, lambda: office.state() == "failed")
    service = source_service(office.database)
    assert service.status("desk").decision == {"held": 100, "listed": 40, "missing": 60}
    office.shelves["desk"].refusal = ""
    office.fill("desk", 100)
    due_again(office, "prune")
    worked(office, lambda: office.state() == "done")
    assert service.status("desk").decision is None


def test_a_listing_goes_on_where_its_last_try_ended_also_in_another_run(office: Office) -> None:
    office.fill("desk", 8)
    worked(office, done(office, "first"))
    shelf, engine, hr = office.shelves["desk"], office.engine(), Access.to(["group:hr"])
    shelf.documents = [replace(one, access=hr) for one in shelf.documents[:7]]
    shelf.budget = 3
    due_again(office, "prune")
    assert engine.light_due()
    assert office.state() == "waiting"
    # What it has listed may be read by the new readers; what it has not reached is not missing.
    assert office.store.ledger.entries(["desk:0002"])["desk:0002"].access == hr
    assert office.store.ledger.count("desk") == 8
    # A document that is new since lies before the place that the listing has reached.
    shelf.documents.insert(1, document("desk:0000b"))
    schedule.record_end(office.database, "desk", ["prune"], datetime.now(UTC))
    due_again(office, "incremental")
    worked(office, lambda: office.latest().kind == "incremental" and office.state() == "done")
    for _ in range(2):
        due_again(office, "prune")
        assert engine.light_due()
    assert office.state() == "done"
    assert shelf.listed == [f"desk:{number:04}" for number in range(7)]
    held = [each.id for each in office.store.ledger.scan("desk", "")]
    assert held == ["desk:0000", "desk:0000b", *(f"desk:{number:04}" for number in range(1, 7))]
    assert office.agrees()


def test_a_listing_whose_process_was_killed_goes_on_where_it_was(office: Office) -> None:
    office.fill("desk", 6)
    worked(office, done(office, "first"))
    shelf, killed = office.shelves["desk"], Process("elsewhere", 1, "1")
    shelf.budget = 6
    run = run_transitions.begin(office.database, "desk", "prune", killed, alive)
    listing = listings.resume(office.database, run)
    seen = ["desk:0000", "desk:0001"]
    office.store.ledger.mark_seen("desk", listing.number, seen, Checkpoint(seen[-1]))
    expired = update(tables.runs).values(lease_until=datetime.now(UTC) - timedelta(minutes=1))
    with office.database.writing() as connection:
        connection.execute(expired.where(tables.runs.c.id == run))
    assert office.engine().light_due()
    assert (office.latest().kind, office.state()) == ("prune", "done")
    assert shelf.listed == [f"desk:{number:04}" for number in range(2, 6)]
    assert office.store.ledger.count("desk") == 6


def test_other_readers_in_the_settings_reach_all_documents_before_anything_is_read_again(
    office: Office,
) -> None:
    ann, bo = ({"path": "/mail", "owner": f"{name}@example.com"} for name in ("ann", "bo"))
    sources.add(office.database, "mail", "mbox", ann)
    office.shelves["mail"] = shelf = Shelf("mail")
    office.fill("mail", 5)
    sources.set_paused(office.database, "desk", datetime.now(UTC))
    worked(office, lambda: office.state("mail") == "done")
    assert shelf.listed == []
    source_service(office.database).edit("mail", bo, None)
    shelf.refusal = "The disk is not mounted."
    assert office.engine().light_due("mail")
    assert (office.latest("mail").kind, office.state("mail")) == ("permissions", "done")
    held = [office.writer.held[f"mail:{number:04}"] for number in range(5)]
    assert {one.chunks[0].access for one in held} == {Access.to(["user:bo@example.com"])}
    assert office.agrees()


def test_what_was_read_for_the_former_readers_is_indexed_before_there_are_others(
    office: Office,
) -> None:
    settings = {"path": "/mail", "owner": "bo@example.com"}
    sources.add(office.database, "mail", "mbox", settings)
    office.shelves["mail"] = Shelf("mail")
    begun = run_transitions.begin(office.database, "mail", "first", this_process(), alive)
    batches.save(office.database, begun, [document("mail:0001")], None)
    run_transitions.close(office.database, begun, "interrupted")
    schedule.request_run(office.database, "mail", "permissions")
    sources.set_paused(office.database, "desk", datetime.now(UTC))
    worked(office, lambda: _is_done(office, "mail", "permissions"))
    readers = office.store.ledger.entries(["mail:0001"])["mail:0001"].access
    assert readers == Access.to(["user:bo@example.com"])


def _is_done(office: Office, source: str, kind: str) -> bool:
    history = runs.history(office.database, source)
    return any((run.kind, run.state) == (kind, "done") for run in history)


def test_who_asks_during_a_listing_gets_one_that_begins_later(office: Office) -> None:
    office.fill("desk", 4)
    worked(office, done(office, "first"))
    shelf, engine = office.shelves["desk"], office.engine()
    shelf.budget = 2
    due_again(office, "permissions")
    assert engine.light_due()
    due_again(office, "permissions")
    assert engine.light_due()
    assert office.state() == "done"
    shelf.budget = None
    assert engine.light_due()
    ids = [f"desk:{number:04}" for number in range(4)]
    assert shelf.listed == [*ids, *ids]
    assert not engine.light_due()


def test_what_was_asked_for_does_not_ask_a_source_again_that_wants_to_be_waited_for(
    office: Office,
) -> None:
    office.fill("desk", 4)
    worked(office, done(office, "first"))
    office.shelves["desk"].budget = 2
    due_again(office, "permissions")
    assert office.engine().light_due()
    assert not office.engine().light_due()


@pytest.mark.parametrize(("held", "left"), [(100, 50), (1000, 800), (60, 30)])
def test_what_shrank_within_the_limit_is_pruned(office: Office, held: int, left: int) -> None:
    """Fifty may go, or a fifth, whichever is more; of fewer than a hundred, half."""
    office.store.hold(*(document(f"desk:{number:04}") for number in range(held)))
    for each in office.store.ledger.scan("desk", ""):
        assert each.chunks == 2
    office.fill("desk", left)
    schedule.record_end(office.database, "desk", ["incremental"], datetime.now(UTC))
    due_again(office, "prune")
    assert office.engine().light_due()
    assert (office.latest().state, office.store.ledger.count("desk")) == ("done", left)


def test_a_source_that_wants_us_to_wait_is_waited_for_by_its_own_word(office: Office) -> None:
    office.fill("desk", 6)

    def busy(number: int) -> Change | None:
        if number == 4:
            raise TemporarilyUnavailableError(
                "Too many requests.", retry_after=timedelta(minutes=7)
            )
        return None

    office.shelves["desk"].before = busy
    worked(office, lambda: office.state() == "waiting")
    run = office.latest()
    assert run.waiting_for == "Too many requests."
    assert run.next_try is not None
    assert timedelta(minutes=6) < run.next_try - datetime.now(UTC) <= timedelta(minutes=7)
    assert not office.engine().fetch_due()
    office.shelves["desk"].before = nothing
    due_again(office, "incremental")
    worked(office, lambda: office.state() == "done")
    assert office.store.ledger.count("desk") == 6


def test_a_run_that_waited_goes_on_as_the_same_run(office: Office) -> None:
    office.fill("desk", 6)

    def busy(number: int) -> Change | None:
        if number == 4:
            office.shelves["desk"].before = nothing
            raise TemporarilyUnavailableError("Too many requests.", retry_after=timedelta(0))
        return None

    office.shelves["desk"].before = busy
    worked(office, done(office, "first"))
    assert len(runs.history(office.database, "desk")) == 1
    assert office.store.ledger.count("desk") == 6


def test_what_a_person_must_mend_fails_the_run_with_its_words(office: Office) -> None:
    office.fill("desk", 3)

    def expired(number: int) -> Change | None:
        del number
        raise ActionRequiredError("The token has expired: make another.")

    office.shelves["desk"].before = expired
    worked(office, lambda: office.state() == "failed")
    assert office.latest().error == "The token has expired: make another."
    assert not office.engine().fetch_due()


def test_what_only_a_listing_has_is_read_as_well(office: Office) -> None:
    office.fill("desk", 3)
    shelf = office.shelves["desk"]
    worked(office, done(office, "first"))
    # It was moved here, or may be seen only now: no change of it is reported.
    office.fill("desk", 4)
    shelf.before = lambda number: Checkpoint("x") if number == 3 else None
    source_service(office.database).prune("desk")
    worked(office, done(office, "first", "prune", "retry"))
    assert shelf.again_asked == ["desk:0003"]
    assert office.store.ledger.count("desk") == 4
    assert list(failures.list_failures(office.database)) == []
    assert office.agrees()


def test_a_failed_document_is_tried_again_by_itself_later_each_time(office: Office) -> None:
    office.fill("desk", 3)
    bad = Unreadable(document_id="desk:0001", item="leave.pdf", reason="it is encrypted")
    office.shelves["desk"].before = lambda number: bad if number == 1 else None
    worked(office, done(office, "first"))
    (failure,) = failures.list_failures(office.database)
    assert failure.next_try == failure.last_at + timedelta(minutes=15)
    office.shelves["desk"].before = nothing
    assert source_service(office.database).retry("desk").told.startswith("1 document ")
    worked(office, done(office, "first", "retry"))
    assert office.shelves["desk"].again_asked == ["desk:0001"]
    assert list(failures.list_failures(office.database)) == []
    assert office.store.ledger.count("desk") == 3


@pytest.mark.parametrize("stop", [SourceService.pause, SourceService.cancel])
def test_what_goes_on_is_stopped_within_seconds_and_gone_on_with(
    office: Office, stop: Callable[[SourceService, str], object]
) -> None:
    office.fill("desk", 40)
    slow = threading.Event()

    def wait(number: int) -> Change | None:
        if number == 20:
            slow.wait(SOON)
        return None

    office.shelves["desk"].before = wait
    engine = office.engine()
    workers = WorkerThreads(engine, at_once, pause=0.1)
    workers.start()
    wait_for(lambda: office.store.ledger.count("desk") == 20)
    stop(source_service(office.database), "desk")
    slow.set()
    state = {"pause": "paused", "cancel": "cancelled"}[stop.__name__]
    wait_for(lambda: office.state() == state)
    assert workers.stop(SOON)
    assert office.store.ledger.count("desk") < 40
    assert not office.engine().fetch_due()
    source_service(office.database).resume("desk")
    due_again(office, "incremental")
    worked(office, lambda: office.state() == "done")
    assert office.store.ledger.count("desk") == 40
    assert office.agrees()


def test_where_more_is_due_than_one_can_do_the_others_are_reported(office: Office) -> None:
    reported: list[str] = []
    engine = replace(office.engine(), more=lambda: reported.append("more"))
    assert engine.fetch_due()
    assert reported == []
    sources.set_paused(office.database, "web", None)
    due_again(office, "incremental")
    assert engine.fetch_due()
    assert reported == ["more"]
    assert engine.fetch_due()
    assert reported == ["more"]


def test_those_who_rest_long_are_stopped_at_once(office: Office) -> None:
    sources.set_paused(office.database, "desk", datetime.now(UTC))
    workers = WorkerThreads(office.engine(), at_once, pause=3600.0)
    workers.start()
    assert workers.stop(SOON)


def test_a_deleted_source_leaves_nothing(office: Office) -> None:
    office.fill("desk", 5)
    worked(office, done(office, "first"))
    define(office.database, "Desks", single("desk:0001"))

    def count() -> int | None:
        (found,) = document_sets.list_sets(office.database)
        return found.progress.documents if found.progress.is_applied else None

    worked(office, lambda: count() == 1)
    source_service(office.database).delete("desk")
    assert source_service(office.database).status("desk").state == "being removed"
    worked(office, lambda: [each.name for each in sources.list_sources(office.database)] == ["web"])
    assert office.writer.held == {}
    assert kept_texts(office.database) == 0
    worked(office, lambda: count() == 0)


def test_a_run_whose_process_died_is_begun_again_at_once(office: Office) -> None:
    office.fill("desk", 5)
    worked(office, done(office, "first"))
    here = this_process()
    run_transitions.begin(office.database, "desk", "incremental", replace(here, started="0"), alive)
    assert not done(office, "first", "incremental")()
    worked(office, done(office, "first", "incremental"))
    states = [run.state for run in runs.history(office.database, "desk")]
    assert states == ["done", "interrupted", "done"]


def test_an_index_that_is_away_is_waited_for_and_named(office: Office) -> None:
    office.fill("desk", 4)
    write, away = office.writer.write, threading.Event()
    away.set()

    def refused(changes: object) -> object:
        if away.is_set():
            raise TemporarilyUnavailableError(
                "The index does not answer.", retry_after=timedelta(seconds=0.2)
            )
        return write(changes)  # type: ignore[arg-type]

    office.writer.write = refused  # type: ignore[method-assign, assignment]
    engine = office.engine()
    workers = WorkerThreads(engine, at_once, pause=0.1)
    workers.start()
    wait_for(lambda: _latest_waits_for(office, "The index does not answer."))
    away.clear()
    wait_for(lambda: office.state() == "done")
    assert workers.stop(SOON)
    assert office.agrees()
    assert office.latest().waiting_for is None


def test_a_worker_that_is_to_stop_gives_back_what_it_holds(office: Office) -> None:
    office.fill("desk", 40)
    engine = office.engine()
    reader = threading.Thread(target=_until_stopped, args=(engine.fetch_due,))
    reader.start()
    wait_for(lambda: batches.count(office.database, "desk") == MOST_OPEN)
    engine.stopping.set()
    with pytest.raises(StoppedError):
        engine.index_due()
    reader.join(SOON)
    assert office.latest().state == "interrupted"
    assert batches.is_idle(office.database, "desk", nobody)


def _until_stopped(due: Callable[[], bool]) -> None:
    with pytest.raises(StoppedError):
        due()


# What stands still.

STILL = 0.6
"""Seconds: less than the second after which a slow source is saved as far as it was read."""


@contextmanager
def working(engine: Engine) -> Iterator[WorkerThreads]:
    workers = WorkerThreads(engine, at_once, pause=0.1)
    workers.start()
    try:
        yield workers
    finally:
        assert workers.stop(SOON)


def test_a_source_that_says_nothing_any_more_is_given_up_with_its_reason(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the index is given up as well, and what it held is tried again later.
    monkeypatch.setattr(batches, "back_off", lambda tries: timedelta(seconds=0.1 * tries))
    office.fill("desk", 6)
    back = threading.Event()

    def hang(number: int) -> Change | None:
        if number == 4:
            back.wait(SOON)
        return None

    office.shelves["desk"].before = hang
    with working(office.engine(STILL)):
        wait_for(lambda: office.state() == "waiting")
        waiting, given_up = runs.history(office.database, "desk")
        office.shelves["desk"].before = nothing
        back.set()
    reason = (
        f"Nothing moved for {STILL} seconds while the source was read, after 'About desk:0003'."
    )
    assert (given_up.state, given_up.error) == ("interrupted", reason)
    assert waiting.waiting_for == reason
    status = source_service(office.database).status("desk")
    assert status.run is not None
    assert (status.run.waiting_for, status.run.next_try) == (reason, waiting.next_try)
    assert waiting.next_try is not None
    assert timedelta(seconds=50) < waiting.next_try - waiting.started_at <= timedelta(minutes=1)
    assert not office.engine().fetch_due()
    source_service(office.database).sync("desk")
    worked(office, lambda: office.state() == "done")
    assert office.store.ledger.count("desk") == 6
    assert office.agrees()


def test_who_comes_back_late_writes_nothing(office: Office) -> None:
    """The listing hangs until another run has begun; then it names a reader that nobody else heard of."""
    office.fill("desk", 2)
    worked(office, done(office, "first"))
    hanging, back = threading.Event(), threading.Event()
    shelf = office.shelves["desk"]
    listing = shelf.listing

    def late(since: Checkpoint | None) -> Iterator[ListingItem]:
        del since
        hanging.set()
        back.wait(SOON)
        yield DocumentListing("desk:0000", Access.to(["user:mallory@example.com"]))

    shelf.listing = late  # type: ignore[method-assign]
    due_again(office, "permissions")
    thread = threading.Thread(target=office.engine(STILL).light_due)
    thread.start()
    wait_for(lambda: office.state() == "waiting")
    assert hanging.is_set()
    shelf.listing = listing  # type: ignore[method-assign]
    due_again(office, "permissions")
    assert office.engine().light_due()
    back.set()
    thread.join(SOON)
    assert [run.state for run in runs.history(office.database, "desk")][:1] == ["done"]
    assert office.writer.held["desk:0000"].chunks[0].access == EVERYBODY
    assert office.agrees()


@pytest.mark.soak("slow")
def test_an_index_that_hangs_holds_up_neither_its_batch_nor_the_other_threads(
    office: Office, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread that indexes is left behind, another takes its place; what it held is tried again later."""
    office.fill("desk", 6)
    monkeypatch.setattr(batches, "back_off", lambda tries: timedelta(seconds=0.1 * tries))
    write, hung, back = office.writer.write, threading.Event(), threading.Event()

    def hang(changes: object) -> object:
        if not hung.is_set():
            hung.set()
            back.wait(SOON)
        return write(changes)  # type: ignore[arg-type]

    office.writer.write = hang  # type: ignore[method-assign, assignment]
    # Seconds enough that a busy machine does not pass for a source that hangs, which would be tried after a minute.
    with working(office.engine(3.0)):
        wait_for(lambda: office.state() == "done")
        assert office.agrees()
        back.set()
    assert "The index worker is hung" in caplog.text
    assert office.store.ledger.count("desk") == 6
    assert office.agrees()


def test_a_mistake_in_the_program_waits_longer_each_time_and_is_reported(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.fill("desk", 2)
    monkeypatch.setattr(random, "uniform", max)
    write = office.writer.write

    def broken(changes: object) -> object:
        del changes
        raise KeyError("tags")

    office.writer.write = broken  # type: ignore[method-assign, assignment]
    engine = office.engine()
    reader = threading.Thread(target=engine.fetch_due)
    reader.start()
    wait_for(lambda: batches.count(office.database, "desk") == 1)
    for seconds in (13, 26, 52):  # ten, doubled each time, three tenths more
        before = datetime.now(UTC)
        with pytest.raises(KeyError):
            engine.index_due()
        run = office.latest()
        assert run.waiting_for == "Internal error (KeyError: 'tags'). See the log."
        assert run.next_try is not None
        assert 0 <= (run.next_try - before).total_seconds() - seconds < 5
        assert not engine.index_due()
        with office.database.writing() as connection:
            connection.execute(update(tables.batches).values(next_try=None))
    office.writer.write = write  # type: ignore[method-assign]
    while reader.is_alive():
        engine.index_due()
    assert office.latest().state == "done"
    assert office.agrees()


def test_a_mistake_while_a_source_is_read_is_reported_and_tried_again_later(office: Office) -> None:
    office.fill("desk", 2)

    def broken(number: int) -> Change | None:
        raise KeyError(number)

    office.shelves["desk"].before = broken
    with pytest.raises(KeyError):
        office.engine().fetch_due()
    waiting, failed = runs.history(office.database, "desk")
    assert failed.state == "failed"
    assert failed.error == waiting.waiting_for
    assert str(failed.error).startswith("Internal error (KeyError: 0)")
    assert not office.engine().fetch_due()


def test_who_waits_for_the_index_does_not_stand_still(office: Office) -> None:
    office.fill("desk", 60)
    still = 2.5  # seconds, in which a busy machine too comes to wait again
    engine = office.engine(still)
    reader = threading.Thread(target=engine.fetch_due)
    reader.start()
    wait_for(lambda: _latest_waits_for(office, "batches"))
    time.sleep(1.4 * still)
    assert office.state() == "running"
    while reader.is_alive():
        engine.index_due()
    assert office.latest().state == "done"


def test_one_source_alone_is_done_if_it_is_due(office: Office) -> None:
    office.fill("desk", 1)
    engine = office.engine()
    assert not engine.fetch_due("web")
    assert not engine.light_due("desk")
    reader = threading.Thread(target=engine.fetch_due, args=("desk",))
    reader.start()
    while reader.is_alive():
        engine.index_due()
    assert office.latest().state == "done"
    assert not engine.fetch_due("desk")


def test_indexing_along_ends_with_the_reading(office: Office) -> None:
    office.fill("desk", 20)
    engine = office.engine()
    reader = threading.Thread(target=engine.fetch_due)
    reader.start()
    wait_for(lambda: batches.count(office.database, "desk") > 0)
    assert engine.index_due(along=True)
    reader.join(SOON)
    assert office.latest().state == "done"


def test_what_is_due_is_reported_by_queue_and_source(office: Office) -> None:
    desk = sources.find(office.database, "desk")
    assert wakeup_messages.list_due(office.database) == [WakeupMessage("fetch", desk.id)]
    office.fill("desk", 1)
    engine = office.engine()
    reader = threading.Thread(target=engine.fetch_due)
    reader.start()
    wait_for(lambda: batches.count(office.database, "desk") > 0)
    assert wakeup_messages.list_due(office.database) == [WakeupMessage("index", desk.id)]
    while reader.is_alive():
        engine.index_due()
    assert wakeup_messages.list_due(office.database) == []
    due_again(office, "prune")
    assert wakeup_messages.list_due(office.database) == [WakeupMessage("light", desk.id)]
    source_service(office.database).pause("desk")
    assert wakeup_messages.list_due(office.database) == []


def test_workers_tell_documents_the_sets_that_were_changed(office: Office) -> None:
    office.fill("desk", 3)
    worked(office, lambda: len(office.writer.held) == 3)
    found = define(office.database, "a", folder("desk", "none"), single("desk:0001"))
    worked(office, lambda: not document_set_jobs.is_due(office.database))
    assert members_of(office.writer, found) == {"desk:0001"}


def test_a_worker_that_stops_leaves_a_set_to_another(office: Office) -> None:
    office.fill("desk", 3)
    worked(office, lambda: len(office.writer.held) == 3)
    found = define(office.database, "a", single("desk:0001"))
    engine = office.engine()
    engine.stopping.set()
    with pytest.raises(StoppedError):
        engine.sets_due()
    assert members_of(office.writer, found) == set()
    engine.stopping.clear()
    assert engine.sets_due()
    assert not engine.sets_due()
    assert members_of(office.writer, found) == {"desk:0001"}
