"""A whole run: what it does, how it ends, and who else may run."""

import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from backend.access.readers import resolve_readers
from backend.sources.status import find_decision
from backend.store.database import Database
from backend.store.documents import batches, documents
from backend.store.schema.tables import sources as source_rows
from backend.store.sync import failures, listings, run_transitions, runs, sources
from backend.store.sync.runs import Process, Run
from backend.store.sync.sources import Source
from backend.sync.due_work import Engine
from backend.sync.foreground_run import sync
from backend.sync.run_lease import SILENCE_LIMIT, is_gone, this_process
from connectors.access import Access, Readers
from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Deletion,
    DocumentCount,
    DocumentListing,
    KnownVersions,
    ListingItem,
    ReaderGroup,
    Unreadable,
)
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.sources.folder.connector import FolderConnector, FolderSettings
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import Filters
from indexing.ingestion.batching import BatchSize
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.ledger import Failed
from indexing.ingestion.listings import group_listing
from indexing.ingestion.pipeline import EmptyListing, Pipeline
from indexing.ingestion.progress import Progress, Report, RunCounters
from indexing.local import open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.support.memory_index_writer import MemoryIndexWriter
from tests.support.stepped_embedder import SteppedEmbedder
from tests.support.store import (
    Store,
    document,
    gone,
    source_service,
    store_at,
    store_with,
)

EMBEDDER = HashingEmbedder()


def nothing(number: int) -> None:
    del number


@dataclass
class Shelf:
    """A source that yields the documents on it that are not known; `before` may yield instead."""

    documents: list[Document] = field(default_factory=list)
    before: Callable[[int], Change | None] = nothing
    source: str = "desk"
    asked: list[Checkpoint | None] = field(default_factory=list)

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        self.asked.append(since)
        held = known([each.id for each in self.documents])
        for number, each in enumerate(self.documents):
            if change := self.before(number):
                yield change
            elif held.get(each.id) != each.version:
                yield each
            yield Checkpoint(str(number))

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        del since
        for each in self.documents:
            yield DocumentListing(each.id, each.access)

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        there = {each.id: each for each in self.documents}
        for each in document_ids:
            yield there.get(each, Deletion(each))

    def check(self) -> Iterator[Check]:
        yield from ()


def shelf(count: int) -> Shelf:
    return Shelf([document(f"desk:{number}") for number in range(count)])


@dataclass
class Channels(Shelf):
    """A shelf whose documents name channels; these have members."""

    members: dict[str, set[str]] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)

    def groups(self, since: Checkpoint | None) -> Iterator[ReaderGroup]:
        del since
        self.events.append("groups")
        for token, members in self.members.items():
            yield ReaderGroup(token, frozenset(members))

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        self.events.append("changes")
        return super().changes(since, known)

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        self.events.append("listing")
        return super().listing(since)


@dataclass(frozen=True)
class Room:
    store: Store
    writer: MemoryIndexWriter
    pipeline: Pipeline

    def sync(self, connector: Shelf, when_empty: EmptyListing = EmptyListing.REFUSE) -> Report:
        source = sources.find(self.store.database, "desk")
        return report_of(sync(self.store.database, source, connector, self.pipeline, when_empty))

    def last(self) -> Run:
        return runs.latest(self.store.database)["desk"]


@dataclass(frozen=True)
class Elsewhere:
    """The same room in another process. Implements `backend.sync.due_work.Home`."""

    room: Room

    @property
    def database(self) -> Database:
        return self.room.store.database

    def connector(self, source: Source) -> Shelf:
        raise AssertionError(f"nothing is read here, of {source.name}")

    def pipeline(self, source: Source) -> Pipeline:
        raise AssertionError(f"nothing is read here, of {source.name}")

    def batch_worker(self) -> BatchWorker:
        return BatchWorker(EMBEDDER, self.room.writer, self.room.store.ledger)


@pytest.fixture
def room(database_url: str) -> Iterator[Room]:
    writer = MemoryIndexWriter(EMBEDDER.dimension)
    size = BatchSize(documents=2)
    with store_at(database_url, "desk") as store:
        yield Room(store, writer, Pipeline("desk", EMBEDDER, writer, store.ledger, size))


def report_of(steps: Iterator[Progress | Report]) -> Report:
    *progress, report = steps
    assert all(isinstance(step, Progress) for step in progress)
    assert isinstance(report, Report)
    return report


def readable_by(room: Room, *tokens: str) -> list[str]:
    asker = resolve_readers(room.store.database, Readers.of(*tokens))
    return [one.id for one in documents.list_readable(room.store.database, asker, "", 10)]


def test_who_joins_or_leaves_a_channel_changes_no_document(room: Room) -> None:
    number = sources.find(room.store.database, "desk").id
    plans, board = f"external:{number}:plans", f"external:{number}:board"
    source = Channels(
        [
            document("desk:a", access=Access.to([plans])),
            document("desk:b", access=Access.all_of([[plans], [board]])),
        ],
        members={plans: {"user:ann@x.de", "user:bob@x.de"}, board: {"user:bob@x.de"}},
    )
    # At first before the documents, so that they have readers as soon as they are indexed.
    first = room.sync(source)
    assert (first.documents, first.has_other_members) == (2, False)
    assert source.events == ["groups", "changes", "groups", "listing"]
    assert readable_by(room, "user:ann@x.de") == ["desk:a"]
    assert readable_by(room, "user:bob@x.de") == ["desk:a", "desk:b"]
    source.members = {plans: {"user:cy@x.de", "user:ann@x.de"}, board: {"user:ann@x.de"}}
    written = len(room.writer.log)
    report = room.sync(source)
    assert (report.amended, report.documents, len(room.writer.log)) == (0, 0, written)
    assert report.has_other_members
    assert source.events[4:] == ["changes", "groups", "listing"]
    assert readable_by(room, "user:ann@x.de") == ["desk:a", "desk:b"]
    assert readable_by(room, "user:bob@x.de") == []
    assert readable_by(room, "user:cy@x.de") == ["desk:a"]
    assert readable_by(room) == []
    for members, is_other in (
        ({plans: {"user:cy@x.de", "user:ann@x.de"}, board: {"user:ann@x.de"}}, False),
        ({plans: {"user:ann@x.de"}, board: {"user:ann@x.de"}}, True),
        ({plans: {"user:ann@x.de", "user:di@x.de"}, board: {"user:ann@x.de"}}, True),
        ({plans: {"user:ann@x.de", "user:di@x.de"}}, True),
        ({plans: {"user:ann@x.de", "user:di@x.de"}}, False),
    ):
        source.members = members
        assert room.sync(source).has_other_members is is_other


def test_a_run_indexes_reports_and_is_closed(room: Room) -> None:
    report = room.sync(shelf(5))
    assert (report.documents, report.embedded, report.unreadable_count) == (5, 5, 0)
    assert (room.last().state, room.last().error) == ("done", None)
    counted = {name: count for name, count in room.last().counts.items() if count}
    assert counted == {"documents": 5, "chunks": 5, "embedded": 5}
    assert len(room.writer.held) == 5


def test_the_next_run_goes_on_from_the_last_checkpoint_and_embeds_nothing(room: Room) -> None:
    desk = shelf(5)
    room.sync(desk)
    report = room.sync(desk)
    assert desk.asked == [None, Checkpoint("4")]
    assert (report.documents, report.embedded, report.deleted) == (0, 0, 0)


def test_what_left_the_source_is_deleted_and_changed_access_amended(room: Room) -> None:
    desk = shelf(5)
    room.sync(desk)
    hr = Access.to(["group:hr"])
    desk.documents = [replace(desk.documents[0], access=hr), *desk.documents[1:4]]
    report = room.sync(desk)
    assert (report.amended, report.deleted, report.embedded) == (1, 1, 0)
    assert [each.readers for each in documents.list_documents(room.store.database)] == [
        ("group:hr",),
        *[("public",)] * 3,
    ]


@pytest.mark.parametrize(
    "error",
    [
        TemporarilyUnavailableError("the server is away", retry_after=timedelta(minutes=5)),
        ActionRequiredError("log in again"),
    ],
)
def test_a_source_that_fails_closes_the_run_with_its_words(room: Room, error: Exception) -> None:
    def fail_at_three(number: int) -> Change | None:
        if number == 3:
            raise error
        return None

    desk = replace(shelf(5), before=fail_at_three)
    with pytest.raises(type(error), match=str(error)):
        room.sync(desk)
    assert (room.last().state, room.last().error) == ("failed", str(error))
    desk.before = nothing
    assert room.sync(desk).deleted == 0
    assert len(room.writer.held) == 5
    assert desk.asked[1] is not None


def test_an_interrupt_leaves_a_state_to_go_on_from(room: Room) -> None:
    def interrupt_at_three(number: int) -> Change | None:
        if number == 3:
            raise KeyboardInterrupt
        return None

    desk = replace(shelf(5), before=interrupt_at_three)
    with pytest.raises(KeyboardInterrupt):
        room.sync(desk)
    assert room.last().state == "interrupted"
    desk.before = nothing
    room.sync(desk)
    assert (room.last().state, len(room.writer.held)) == ("done", 5)


def test_a_run_that_nobody_follows_to_its_end_is_closed(room: Room) -> None:
    source = sources.find(room.store.database, "desk")
    steps = sync(room.store.database, source, shelf(50), room.pipeline)
    next(steps)
    assert room.last().state == "running"
    del steps
    assert room.last().state == "interrupted"


@dataclass
class CountingShelf(Shelf):
    """A shelf that says how much is on it."""

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        yield DocumentCount(len(self.documents))
        yield from super().changes(since, known)


def test_a_first_sync_knows_from_the_start_how_much_there_is(room: Room) -> None:
    source = sources.find(room.store.database, "desk")
    actual = list(
        sync(room.store.database, source, CountingShelf(shelf(6).documents), room.pipeline)
    )
    indexing = [one for one in actual if isinstance(one, Progress) and one.stage == "indexing"]
    assert {one.total for one in indexing} == {6}
    assert (indexing[-1].done, indexing[-1].seconds_left) == (6, 0)


def test_a_first_sync_that_goes_on_counts_only_what_is_left(room: Room) -> None:
    room.store.hold(document("desk:0"), document("desk:1"))
    room.store.ledger.save(
        [Failed(source="desk", document_id="desk:2", item="c", reason="no", version="1")]
    )
    source = sources.find(room.store.database, "desk")
    steps = sync(room.store.database, source, CountingShelf(shelf(6).documents), room.pipeline)
    assert next(one.total for one in steps if isinstance(one, Progress) and one.total) == 3


def test_once_a_source_is_read_it_is_known_how_much_there_is_to_index(room: Room) -> None:
    source = sources.find(room.store.database, "desk")
    actual = list(sync(room.store.database, source, shelf(6), room.pipeline))
    indexing = [one for one in actual if isinstance(one, Progress) and one.stage == "indexing"]
    assert (indexing[-1].done, indexing[-1].total) == (6, 6)
    # The second sync reads no document again.
    again = room.sync(shelf(6))
    assert again.documents == 0


def test_a_run_reports_what_is_embedded(room: Room) -> None:
    source = sources.find(room.store.database, "desk")
    embedder = SteppedEmbedder()
    steps = sync(room.store.database, source, shelf(1), replace(room.pipeline, embedder=embedder))
    next(one for one in steps if isinstance(one, Progress) and one.embedding)
    embedding = room.last().embedding
    assert embedding is not None
    assert (embedding.item, embedding.done, embedding.total) == ("About desk:0", 0, 1)
    embedder.proceed()
    assert report_of(steps).documents == 1


class InterruptedEmbedder(HashingEmbedder):
    """An embedder during whose work the person presses Ctrl-C."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        del texts
        raise KeyboardInterrupt


def test_after_an_interruption_a_failure_is_counted_and_named_once(room: Room) -> None:
    bad = Unreadable(document_id="desk:1", item="leave.pdf", reason="it is locked")
    desk = replace(shelf(5), before=lambda number: bad if number == 1 else None)
    with pytest.raises(KeyboardInterrupt):
        replace(room, pipeline=replace(room.pipeline, embedder=InterruptedEmbedder())).sync(desk)
    assert batches.count(room.store.database, "desk")
    with room.store.database.writing() as connection:
        # The source had not come to a checkpoint yet, so that it is read from the beginning.
        connection.execute(update(source_rows).values(checkpoint=None))
    report = room.sync(desk)
    assert report.unreadable_count == 1
    assert [one.item for one in report.unreadable] == ["leave.pdf"]
    (failure,) = failures.list_failures(room.store.database)
    assert failure.tries == 1


def test_a_failing_document_is_named_and_the_run_is_done(room: Room) -> None:
    bad = Unreadable(document_id="desk:1", item="leave.pdf", reason="it is encrypted")
    desk = replace(shelf(3), before=lambda number: bad if number == 1 else None)
    assert room.sync(desk).unreadable[0].item == "leave.pdf"
    assert room.sync(desk).unreadable_count == 1
    (failure,) = failures.list_failures(room.store.database)
    assert (failure.item, failure.tries) == ("leave.pdf", 2)
    desk.before = nothing
    room.sync(desk)
    assert list(failures.list_failures(room.store.database)) == []


def test_an_empty_listing_needs_a_decision(room: Room) -> None:
    room.sync(shelf(3))
    with pytest.raises(ActionRequiredError, match="lists no documents"):
        room.sync(shelf(0))
    assert room.last().state == "needs a decision"
    assert room.last().decision == {"held": 3, "listed": 0, "missing": 3}
    assert room.sync(shelf(0), EmptyListing.ACCEPT).deleted == 3
    assert find_decision(room.store.database, "desk") is None


def test_a_sync_deletes_what_was_accepted_and_asks_again_for_more(room: Room) -> None:
    room.sync(shelf(12))
    service = source_service(room.store.database)
    with pytest.raises(ActionRequiredError, match="10 of the 12"):
        room.sync(shelf(2))
    service.accept("desk")
    with pytest.raises(ActionRequiredError, match="11 of the 12"):
        room.sync(shelf(1))
    service.accept("desk")
    assert room.sync(shelf(1)).deleted == 11
    assert (room.last().state, find_decision(room.store.database, "desk")) == ("done", None)


def test_a_second_sync_is_refused_while_the_first_goes_on(room: Room) -> None:
    source = sources.find(room.store.database, "desk")
    first = sync(room.store.database, source, shelf(50), room.pipeline)
    next(first)
    with pytest.raises(TemporarilyUnavailableError, match=f"process {os.getpid()}"):
        room.sync(shelf(50))
    assert report_of(first).documents == 50
    assert room.sync(shelf(50)).documents == 0


def test_what_others_indexed_for_a_run_is_in_its_report(room: Room) -> None:
    """As when a server runs beside the command."""
    source = sources.find(room.store.database, "desk")
    steps = sync(room.store.database, source, shelf(40), room.pipeline)
    next(steps)
    engine = Engine(lambda: Elsewhere(room))
    others = threading.Thread(target=engine.index_due)
    others.start()
    assert report_of(steps).documents == 40
    others.join()
    assert (room.last().counts["documents"], len(room.writer.held)) == (40, 40)


def test_a_run_that_was_taken_over_stops_before_it_writes_on(room: Room) -> None:
    source = sources.find(room.store.database, "desk")
    first = sync(room.store.database, source, shelf(50), room.pipeline)
    next(first)
    run_transitions.begin(room.store.database, "desk", "sync", Process("other", 1, ""), gone)
    time.sleep(1.0)  # so long a run goes on before it says again what it does
    with pytest.raises(TemporarilyUnavailableError, match="taken over"):
        list(first)


def _sync_for_ever(folder: Path) -> None:
    """Index six documents, then wait for a source that does not go on."""
    store = _opened(folder)
    pipeline = _pipeline(store, folder)

    def wait_at_six(number: int) -> Change | None:
        if number == 6:
            time.sleep(600)
        return None

    desk = replace(shelf(9), before=wait_at_six)
    for _ in sync(store.database, sources.find(store.database, "desk"), desk, pipeline):
        pass


def _opened(folder: Path) -> Store:
    from_scratch = not (folder / "quarry.db").exists()
    return store_with(folder, *(["desk"] if from_scratch else []))


def _pipeline(store: Store, folder: Path) -> Pipeline:
    writer = open_writer(folder / "index", EMBEDDER.identity)
    return Pipeline("desk", EMBEDDER, writer, store.ledger, BatchSize(documents=2))


@pytest.mark.soak("slow")
def test_a_killed_run_is_taken_over_and_ended_by_the_next(tmp_path: Path) -> None:
    store = _opened(tmp_path)
    process = multiprocessing.get_context("spawn").Process(
        target=_sync_for_ever, args=(tmp_path,), daemon=True
    )
    process.start()
    end = time.monotonic() + 60
    while documents.count_by_source(store.database).get("desk") != 6 and time.monotonic() < end:
        time.sleep(0.05)
    pipeline = _pipeline(store, tmp_path)
    source = sources.find(store.database, "desk")
    with pytest.raises(TemporarilyUnavailableError, match=f"process {process.pid}"):
        report_of(sync(store.database, source, shelf(9), pipeline))
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(timeout=60)
    report = report_of(sync(store.database, source, shelf(9), pipeline))
    assert report.documents == 3
    assert [run.state for run in runs.history(store.database, "desk")] == ["done", "interrupted"]
    entries = [each.id for each in store.ledger.scan("desk", "")]
    assert entries == [each.id for each in pipeline.writer.scan()]


@dataclass
class PagedShelf(Shelf):
    """A shelf that can be listed from any of its documents on."""

    listed_since: list[Checkpoint | None] = field(default_factory=list)

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        self.listed_since.append(since)
        for each in self.documents:
            if since is None or each.id > since.value:
                yield DocumentListing(each.id, each.access)
                yield Checkpoint(each.id)


def _die_while_listing(folder: Path) -> None:
    """Apply two pages of a listing; a kill ends the process before the third."""
    store = _opened(folder)
    run = run_transitions.begin(store.database, "desk", "prune", this_process(), is_gone)
    listing = listings.resume(store.database, run)

    def items() -> Iterator[ListingItem]:
        for number, item in enumerate(PagedShelf(shelf(9).documents).listing(listing.since)):
            if number == 10:
                os.kill(os.getpid(), signal.SIGKILL)
            yield item

    pages = group_listing(items(), size=2)
    for _ in _pipeline(store, folder).reconcile(pages, listing.number, RunCounters()):
        pass


@pytest.mark.soak("slow")
def test_a_listing_whose_process_is_killed_goes_on_and_deletes_only_what_is_missing(
    tmp_path: Path,
) -> None:
    store = _opened(tmp_path)
    source = sources.find(store.database, "desk")
    report_of(sync(store.database, source, shelf(9), _pipeline(store, tmp_path)))
    process = multiprocessing.get_context("spawn").Process(
        target=_die_while_listing, args=(tmp_path,), daemon=True
    )
    process.start()
    process.join(timeout=60)
    assert process.exitcode == -signal.SIGKILL
    desk = PagedShelf(shelf(8).documents)
    source = sources.find(store.database, "desk")
    report = report_of(sync(store.database, source, desk, _pipeline(store, tmp_path)))
    (reached,) = desk.listed_since
    assert reached is not None
    assert "desk:1" <= reached.value <= "desk:4"
    assert report.deleted == 1
    assert [each.id for each in store.ledger.scan("desk", "")] == [one.id for one in desk.documents]


def test_a_folder_is_kept_in_step(tmp_path: Path) -> None:
    store = store_with(tmp_path, "desk")
    pipeline = _pipeline(store, tmp_path)
    root = tmp_path / "files"
    root.mkdir()
    for name in ("leave", "travel", "pay", "parking"):
        (root / f"{name}.md").write_text(f"# {name}\n\nAll about {name}.\n")
    connector = FolderConnector(
        "desk", sources.find(store.database, "desk").id, FolderSettings(path=root)
    )

    def run() -> Report:
        source = sources.find(store.database, "desk")
        return report_of(sync(store.database, source, connector, pipeline))

    assert run().documents == 4
    assert run().embedded == 0
    (root / "leave.md").write_text("# leave\n\nLeave is 30 days.\n")
    (root / "travel.md").rename(root / "journeys.md")
    (root / "pay.md").unlink()
    (root / "access.yaml").write_text(
        "rules:\n  - match: parking.md\n    readers: [group:drivers]\n"
        "  - match: '**'\n    readers: [public]\n"
    )
    report = run()
    assert (report.documents, report.deleted, report.amended) == (2, 2, 1)
    (rule,) = connector.groups(None)
    assert isinstance(rule, ReaderGroup)
    names = {each.id: each.readers for each in documents.list_documents(store.database)}
    assert names == {
        "desk:journeys.md": ("public",),
        "desk:leave.md": ("public",),
        "desk:parking.md": (rule.token,),
    }
    shutil.rmtree(tmp_path / "index")
    pipeline = _pipeline(store, tmp_path)
    again = run()
    assert (again.restored, again.documents) == (3, 0)
    index = open_index(tmp_path / "index", EMBEDDER.identity)
    facets = index.facets(Filters(), Readers.of(), Deadline.after(10))
    assert facets.sources == {"desk": 2}


def test_processes_are_distinguished(room: Room) -> None:
    run_transitions.begin(room.store.database, "desk", "sync", this_process(), is_gone)
    mine = room.last()
    assert not is_gone(mine)
    # The number was given to another process since.
    assert is_gone(replace(mine, holder=replace(mine.holder, started="1")))
    assert is_gone(replace(mine, holder=replace(mine.holder, number=2**22 + 1)))
    elsewhere = replace(mine, holder=Process("elsewhere", 1, "1"))
    assert not is_gone(elsewhere)
    assert is_gone(replace(elsewhere, renewed_at=datetime.now(UTC) - SILENCE_LIMIT - timedelta(1)))
