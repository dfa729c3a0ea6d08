"""The pipeline and the batch worker against a strict ledger in a database and a strict index in memory."""

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from backend.store.database import Database, open_database, sqlite_url
from backend.store.documents import batches
from backend.store.schema import tables
from backend.store.sync import failures, sources
from backend.store.sync.failures import Failure
from connectors.access import EVERYBODY, NOBODY, Access
from connectors.connector import (
    Change,
    Checkpoint,
    Deletion,
    DocumentListing,
    ListingItem,
    Unchanged,
    Unreadable,
)
from connectors.document import Document, Person, Section
from connectors.errors import ActionRequiredError, SourceError, TemporarilyUnavailableError
from connectors.retention import Retention
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import (
    Amend,
    Delete,
    IndexChange,
    IndexedDocument,
    IndexWriter,
    Replace,
    SelectedDocument,
    Selection,
    Written,
)
from indexing.ingestion.batching import BatchSize
from indexing.ingestion.executor import ProgressSteps
from indexing.ingestion.ledger import Removed, Restored
from indexing.ingestion.listings import DeletionNeedsApprovalError, group_listing
from indexing.ingestion.pipeline import Difference, EmptyListing, Pipeline, find_differences
from indexing.ingestion.progress import Progress, Report, RunCounters, UnreadableItem
from tests.support.indexing_run import StrictLedger, index_changes
from tests.support.memory_index_writer import MemoryIndexWriter
from tests.support.store import damage_texts, lose_texts, store_with

HR = Access.to(["group:hr"])
HR_IN_SPACE = Access.all_of([["group:hr"], ["external:7:space"]])


@dataclass(frozen=True)
class CountingEmbedder(HashingEmbedder):
    """Remembers how many texts each call was given; refuses the word `poison`."""

    calls: list[int] = field(default_factory=list)
    seconds: float = 0

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        time.sleep(self.seconds)
        self.calls.append(len(texts))
        if any("poison" in text for text in texts):
            raise ValueError("the model refuses poison")
        vectors = super().embed_passages(texts)
        vectors[["hollow" in text for text in texts]] = np.nan
        return vectors


class StrictIndexWriter(MemoryIndexWriter):
    """Refuses a derived token of which the database does not know the clauses yet."""

    def __init__(self, dimension: int, database: Database) -> None:
        super().__init__(dimension)
        self.database = database

    def write(self, changes: Iterable[IndexChange]) -> Written:
        batch = list(changes)
        with self.database.reading() as connection:
            known = set(connection.scalars(select(tables.conjunctions.c.token)))
        for access in filter(None, map(_written_access, batch)):
            if access.is_conjunction and not access.readers <= known:
                raise ValueError(f"what {access.readers} stands for is not saved")
        return super().write(batch)


def _written_access(change: IndexChange) -> Access | None:
    match change:
        case Replace(chunks=(first, *_)):
            return first.access
        case Amend(access=access):
            return access
        case _:
            return None


class Desk:
    """A source `desk` with its ledger, index and embedder."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.embedder = CountingEmbedder()
        self.writer: MemoryIndexWriter = StrictIndexWriter(self.embedder.dimension, database)
        self.ledger = StrictLedger(database)
        self.size = BatchSize()
        self.listings = 0

    @property
    def pipeline(self) -> Pipeline:
        return self.pipeline_of("desk")

    def pipeline_of(self, source: str) -> Pipeline:
        return Pipeline(source, self.embedder, self.writer, self.ledger, self.size)

    @property
    def checkpoint(self) -> Checkpoint | None:
        return sources.find(self.database, "desk").checkpoint

    @property
    def failures(self) -> dict[str, Failure]:
        return {failure.document_id: failure for failure in failures.list_failures(self.database)}

    def documents(self) -> list[IndexedDocument]:
        """What the ledger holds."""
        return list(self.ledger.scan("desk", ""))

    def index(self, *changes: Change) -> Report:
        return self.run(lambda counters: self.indexing(changes, counters))

    def indexing(self, changes: Iterable[Change], counters: RunCounters) -> ProgressSteps:
        return index_changes(self.database, self.pipeline, changes, counters)

    def index_other_source(self) -> None:
        """A document `web:a` of a source `web`."""
        change = replace(document("web:a"), source="web")
        for _ in index_changes(self.database, self.pipeline_of("web"), [change], RunCounters()):
            pass

    def reconcile(
        self,
        *listed: DocumentListing,
        when_empty: EmptyListing = EmptyListing.REFUSE,
        retention: Retention | None = None,
    ) -> Report:
        self.listings += 1
        number = self.listings
        return self.run(
            lambda counters: self.pipeline.reconcile(
                group_listing(listed), number, counters, when_empty, retention=retention
            )
        )

    def repair(self) -> Report:
        return self.run(self.pipeline.repair)

    def run(self, step: Callable[[RunCounters], Iterable[Progress]]) -> Report:
        counters = RunCounters()
        for progress in step(counters):
            assert progress.source == "desk"
        return counters.to_report()

    def written(self, kind: type[IndexChange]) -> list[str]:
        return [change.document_id for change in self.writer.log if type(change) is kind]

    def agrees(self) -> bool:
        """Whether ledger and index hold the same versions, shown to the same readers."""
        actual = [each for each in self.documents() if each.chunks]
        held = [each for each in self.writer.scan() if each.chunks]
        readers = {
            each: chunk.access
            for each, replace_ in self.writer.held.items()
            for chunk in replace_.chunks
        }
        entries = self.ledger.entries(list(readers))
        return actual == held and all(entries[each].access == readers[each] for each in readers)


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with two sources and nothing in them, to be copied."""
    folder = tmp_path_factory.mktemp("empty")
    store_with(folder, "desk", "web").database.close()
    return folder / "quarry.db"


@contextmanager
def opened_copy(empty_database: Path) -> Iterator[Desk]:
    with TemporaryDirectory() as folder:
        copied = shutil.copy(empty_database, folder)
        with closing(open_database(sqlite_url(Path(copied)))) as database:
            yield Desk(database)


@pytest.fixture
def desk(empty_database: Path) -> Iterator[Desk]:
    with opened_copy(empty_database) as desk:
        yield desk


def document(
    name: str = "desk:a",
    text: str = "Leave is 25 days.",
    version: str = "1",
    access: Access = EVERYBODY,
) -> Document:
    return Document(
        id=name,
        source="desk",
        title="Leave",
        sections=(Section(text=text),) if text else (),
        link="https://desk.test/leave",
        media_type="text/plain",
        access=access,
        version=version,
    )


def unreadable(name: str) -> Unreadable:
    return Unreadable(document_id=name, item="leave.pdf", reason="it is encrypted")


def counts(report: Report) -> dict[str, int]:
    """Return the counts that are not zero."""
    names = "documents chunks embedded unchanged amended deleted restored unreadable_count"
    return {name: value for name in names.split() if (value := getattr(report, name))}


def test_a_new_document_is_embedded_written_and_entered(desk: Desk) -> None:
    report = desk.index(document(), Checkpoint("7"))
    assert counts(report) == {"documents": 1, "chunks": 1, "embedded": 1}
    assert desk.writer.held["desk:a"].generation == 1
    assert desk.ledger.document("desk:a") == document()
    assert desk.checkpoint == Checkpoint("7")
    assert desk.agrees()


def test_a_change_of_text_is_the_next_generation(desk: Desk) -> None:
    desk.index(document())
    report = desk.index(document(text="Leave is 30 days.", version="2"))
    assert counts(report) == {"documents": 1, "chunks": 1, "embedded": 1}
    assert desk.writer.held["desk:a"].generation == 2
    assert desk.writer.held["desk:a"].chunks[0].text == "Leave is 30 days."
    assert desk.ledger.versions(["desk:a"]) == {"desk:a": "2"}


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "Holidays"},
        {"metadata": {"team": "people"}},
        {"link": "https://desk.test/other"},
        {"owners": (Person("Ann"),)},
        {"sections": (Section(text="Leave is 25 days.", link="https://desk.test/leave#1"),)},
    ],
)
def test_everything_that_is_indexed_counts_as_content(
    desk: Desk, changed: dict[str, object]
) -> None:
    desk.index(document())
    assert desk.index(replace(document(), **changed)).documents == 1  # type: ignore[arg-type]


def test_the_same_content_is_noted_and_nothing_is_written(desk: Desk) -> None:
    desk.index(document())
    before = len(desk.writer.log)
    report = desk.index(document(version="2"), Unchanged("desk:b", "9"))
    assert counts(report) == {"unchanged": 2}
    assert len(desk.writer.log) == before
    assert desk.ledger.versions(["desk:a", "desk:b"]) == {"desk:a": "2"}


def test_other_readers_are_amended_without_new_vectors(desk: Desk) -> None:
    desk.index(document())
    report = desk.index(document(version="2", access=HR))
    assert counts(report) == {"amended": 1}
    assert desk.writer.log[-1] == Amend(document_id="desk:a", access=HR, up_to=2)
    assert desk.ledger.document("desk:a") == document(version="2", access=HR)
    assert desk.agrees()


def test_a_deletion_goes_through_index_and_ledger(desk: Desk) -> None:
    desk.index(document())
    assert counts(desk.index(Deletion("desk:a"), Deletion("desk:never was"))) == {"deleted": 1}
    assert desk.writer.held == {}
    assert desk.documents() == []


def numbered(number: int) -> Document:
    """One of several documents with different texts."""
    return document(f"desk:{number}", f"Leave is {number + 10} days.")


def test_documents_of_a_batch_are_embedded_and_written_together(desk: Desk) -> None:
    desk.size = BatchSize(documents=10, first=10)
    desk.index(*map(numbered, range(25)))
    assert sorted(desk.embedder.calls) == [5, 10, 10]
    assert len(desk.ledger.saves) == 3


def test_batches_grow_so_that_the_first_is_embedded_soon(desk: Desk) -> None:
    desk.size = BatchSize(documents=16, first=4)
    desk.index(*map(numbered, range(50)))
    assert sorted(desk.embedder.calls) == [4, 6, 8, 16, 16]


def test_a_batch_ends_by_its_characters_too(desk: Desk) -> None:
    desk.size = BatchSize(characters=40)
    desk.index(*map(numbered, range(5)))
    # Title and text have 5 + 17 characters: two documents reach the forty.
    assert sorted(desk.embedder.calls) == [1, 2, 2]


def test_two_versions_of_a_document_keep_their_order(desk: Desk) -> None:
    desk.index(
        document(version="1"),
        document(text="Leave is 30 days.", version="2"),
        Deletion("desk:a"),
        document(text="Leave is 35 days.", version="3"),
    )
    assert desk.writer.held["desk:a"].chunks[0].text == "Leave is 35 days."
    assert desk.ledger.versions(["desk:a"]) == {"desk:a": "3"}
    assert desk.agrees()


def test_a_next_version_is_planned_only_when_the_one_before_is_saved(desk: Desk) -> None:
    desk.size = BatchSize(documents=1)
    desk.embedder = CountingEmbedder(seconds=0.05)
    versions = [document(text=f"Leave is {number} days.") for number in range(25, 31)]
    desk.index(*versions)
    assert desk.writer.held["desk:a"].generation == 6
    assert desk.agrees()


def test_a_document_without_text_is_held_and_has_no_chunks(desk: Desk) -> None:
    assert counts(desk.index(document(text=""))) == {"documents": 1}
    assert counts(desk.index(document(text=""))) == {"unchanged": 1}
    assert counts(desk.repair()) == {}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (document("desk:bad", text="half a \ud800 character"), "surrogates not allowed"),
        (replace(document("desk:bad"), title="zero \0"), "zero character"),
        (document("desk:bad", text="poison"), "refuses poison"),
        (document("desk:bad", text="hollow"), "returned no valid vector"),
    ],
)
def test_one_bad_document_fails_alone(desk: Desk, bad: Document, reason: str) -> None:
    report = desk.index(document("desk:a"), bad, document("desk:c"), Checkpoint("1"))
    assert counts(report) == {
        "documents": 2,
        "chunks": 2,
        "embedded": report.embedded,
        "unreadable_count": 1,
    }
    assert reason in report.unreadable[0].reason
    assert desk.writer.held.keys() == {"desk:a", "desk:c"}
    assert reason in desk.failures["desk:bad"].reason
    assert desk.checkpoint == Checkpoint("1")


def test_an_id_that_no_database_takes_is_reported_by_an_escaped_name(desk: Desk) -> None:
    report = desk.index(document("desk:\udcff.txt"), Deletion("desk:\udcfe"))
    assert report.unreadable == (
        UnreadableItem("desk:\\udcff.txt", "its name is not valid text"),
        UnreadableItem("desk:\\udcfe", "its name is not valid text"),
    )
    desk.reconcile(DocumentListing("desk:\udcff.txt", EVERYBODY))
    assert desk.failures.keys() == {"desk:\\udcff.txt"}


def test_a_document_that_became_unreadable_stays_findable_and_its_failure_is_counted(
    desk: Desk,
) -> None:
    desk.index(document())
    report = desk.index(unreadable("desk:a"))
    assert report.unreadable == (UnreadableItem("leave.pdf", "it is encrypted"),)
    desk.index(unreadable("desk:a"))
    assert desk.failures["desk:a"].tries == 2
    assert desk.writer.held.keys() == {"desk:a"}


@pytest.mark.parametrize(
    "mended",
    [document(version="2"), document(text="New."), Unchanged("desk:a", "2"), Deletion("desk:a")],
)
def test_a_failure_is_over_when_the_document_is_readable_or_gone(
    desk: Desk, mended: Change
) -> None:
    desk.index(document(), Checkpoint("1"))
    desk.index(unreadable("desk:a"))
    assert desk.failures
    desk.index(mended)
    assert desk.failures == {}


def test_only_the_first_hundred_failures_are_named(desk: Desk) -> None:
    report = desk.index(*(unreadable(f"desk:{number}") for number in range(250)))
    assert (len(report.unreadable), report.unreadable_count) == (100, 250)


@pytest.mark.parametrize(
    "foreign",
    [replace(document(), source="web"), document("web:a"), Deletion("web:a")],
)
def test_what_is_of_another_source_is_refused(desk: Desk, foreign: Change) -> None:
    with pytest.raises(ValueError, match="of 'desk'"):
        desk.index(foreign)


def test_a_failing_source_keeps_what_came_before_and_its_checkpoint(desk: Desk) -> None:
    desk.size = BatchSize(documents=1)

    def changes() -> Iterator[Change]:
        yield document("desk:a")
        yield Checkpoint("1")
        yield document("desk:b")
        yield document("desk:c")
        raise TemporarilyUnavailableError("the server is away", retry_after=timedelta(minutes=1))

    with pytest.raises(TemporarilyUnavailableError, match="away"):
        desk.run(lambda counters: desk.indexing(changes(), counters))
    assert desk.checkpoint == Checkpoint("1")
    assert {"desk:a", "desk:b"} <= {each.id for each in desk.documents()}
    assert desk.agrees()


def test_a_checkpoint_is_never_saved_before_what_it_stands_for(desk: Desk) -> None:
    desk.size = BatchSize(documents=2)
    seen: list[tuple[int, int]] = []

    def look() -> None:
        with desk.database.reading() as connection:
            checkpoint = connection.scalar(select(tables.sources.c.checkpoint))
            indexed = connection.scalar(select(func.count()).select_from(tables.documents)) or 0
            waiting = connection.scalars(select(tables.batches.c.document_ids))
            seen.append((int(checkpoint or 0), indexed + sum(map(len, waiting))))

    numbered = ((document(f"desk:{number}"), Checkpoint(str(number + 1))) for number in range(7))
    for _ in desk.indexing([change for pair in numbered for change in pair], RunCounters()):
        look()
    assert all(checkpoint <= saved for checkpoint, saved in seen)
    assert len(set(seen)) > 1
    assert seen[-1] == (7, 7)


def test_the_source_is_read_while_others_work_but_not_without_bound(desk: Desk) -> None:
    desk.size = BatchSize(documents=1)
    long = "word " * 100_000
    read = 0

    def changes() -> Iterator[Change]:
        nonlocal read
        for number in range(20):
            read = number
            yield document(f"desk:{number}", text=long)

    stream = desk.indexing(changes(), RunCounters())
    next(stream)
    time.sleep(0.2)
    # Half a million characters each: four of them reach the two million that may wait, one waits
    # to be added, and two have been taken: one is embedded, one is chunked.
    assert 1 <= read <= 7
    stream.close()


def test_closing_the_stream_ends_its_threads(desk: Desk) -> None:
    closed = threading.Event()

    def changes() -> Iterator[Change]:
        try:
            for number in range(100_000):
                yield document(f"desk:{number}")
        finally:
            closed.set()

    stream = desk.indexing(changes(), RunCounters())
    next(stream)
    stream.close()
    assert closed.is_set()
    ours = ("reader", "planner", "embedder", "writer")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(ours)]


def test_what_a_slow_source_yielded_is_indexed_while_it_is_waited_for(desk: Desk) -> None:
    held: list[int] = []
    done = threading.Event()

    def changes() -> Iterator[Change]:
        yield document("desk:a")
        assert done.wait(timeout=10)
        yield document("desk:b")

    for progress in desk.indexing(changes(), RunCounters()):
        held.append(len(desk.writer.held))
        if progress.done == 1:
            done.set()
    assert held[0] == 0
    assert held[-1] == 2


def test_progress_counts_to_all_documents(desk: Desk) -> None:
    desk.size = BatchSize(documents=2)
    changes = [document(f"desk:{number}") for number in range(5)]
    progress = list(desk.indexing(changes, RunCounters()))
    done = [each.done for each in progress]
    # Progress is yielded when a batch is started and when one is saved, in either order.
    assert done == sorted(done)
    assert (done[0], set(done)) == (0, {0, 2, 4, 5})
    assert len(done) >= 6
    assert {each.stage for each in progress} == {"indexing"}
    assert {each.item for each in progress} - {None} == {"Leave"}
    assert progress[-1].rate > 0


def test_a_report_times_every_stage(desk: Desk) -> None:
    report = desk.index(document())
    assert report.seconds.keys() == {"read", "chunk", "embed", "write"}
    assert all(seconds >= 0 for seconds in report.seconds.values())


def test_a_listing_amends_access_and_deletes_what_it_lacks(desk: Desk) -> None:
    desk.index(*(document(f"desk:{name}") for name in "abc"), unreadable("desk:d"))
    embedded = list(desk.embedder.calls)
    report = desk.reconcile(DocumentListing("desk:a", HR), DocumentListing("desk:b", EVERYBODY))
    assert counts(report) == {"amended": 1, "deleted": 1}
    assert desk.writer.held.keys() == {"desk:a", "desk:b"}
    assert desk.ledger.entries(["desk:a"])["desk:a"].access == HR
    assert desk.failures == {}
    assert desk.embedder.calls == embedded
    assert desk.agrees()


def test_what_is_listed_and_was_never_read_is_to_be_read_and_what_failed_stays_as_it_is(
    desk: Desk,
) -> None:
    desk.index(document("desk:a"), unreadable("desk:b"))
    listed = [DocumentListing(f"desk:{name}", EVERYBODY) for name in "abc"]
    assert counts(desk.reconcile(*listed)) == {}
    assert {each: trouble.tries for each, trouble in desk.failures.items()} == {
        "desk:b": 1,
        "desk:c": 0,
    }
    desk.index(document("desk:c"))
    assert desk.failures.keys() == {"desk:b"}


def test_a_listing_leaves_other_sources_alone(desk: Desk) -> None:
    desk.index_other_source()
    desk.index(document())
    desk.reconcile(DocumentListing("desk:a", EVERYBODY))
    assert desk.writer.held.keys() == {"desk:a", "web:a"}


def test_a_document_that_nobody_may_read_any_more_is_amended_not_deleted(desk: Desk) -> None:
    desk.index(document())
    assert counts(desk.reconcile(DocumentListing("desk:a", NOBODY))) == {"amended": 1}
    assert desk.writer.held["desk:a"].chunks[0].access == NOBODY


def test_an_empty_listing_is_refused_until_it_is_accepted(desk: Desk) -> None:
    desk.reconcile()
    desk.index(document("desk:a"), document("desk:b"))
    with pytest.raises(
        ActionRequiredError, match=r"but 2 documents are in the index\. Nothing was deleted"
    ):
        desk.reconcile()
    assert len(desk.writer.held) == 2
    assert counts(desk.reconcile(when_empty=EmptyListing.ACCEPT)) == {"deleted": 2}
    assert desk.writer.held == {}


FOR_EVER = Retention(prefixes=("a/",), period=None)
AT_ONCE = Retention(prefixes=("a/",), period=timedelta(0))


def _since(desk: Desk) -> dict[str, datetime | None]:
    entries = desk.ledger.entries([each.id for each in desk.documents()])
    return {each: entry.unlisted_since for each, entry in entries.items()}


def test_what_rolled_out_of_a_source_of_its_latest_stays(desk: Desk) -> None:
    """Sixty of sixty-one documents would be missing of any other source; an empty listing asks nobody either."""
    desk.index(*(document(f"desk:a/{number}") for number in range(61)))
    listed = DocumentListing("desk:a/0", EVERYBODY)
    before = datetime.now(UTC)
    assert counts(desk.reconcile(listed, retention=FOR_EVER)) == {}
    first = _since(desk)
    assert len(first) == 61
    assert first.pop("desk:a/0") is None
    assert all(since is not None and since >= before for since in first.values())
    # Since when is that of the first listing that lacks a document.
    assert counts(desk.reconcile(retention=FOR_EVER)) == {}
    assert first.items() <= _since(desk).items()
    assert len(desk.writer.held) == 61
    assert desk.agrees()


def test_what_is_listed_again_begins_anew(desk: Desk) -> None:
    desk.index(document("desk:a/1"), document("desk:a/2"))
    desk.reconcile(retention=FOR_EVER)
    desk.reconcile(DocumentListing("desk:a/1", EVERYBODY), retention=FOR_EVER)
    since = _since(desk)
    assert since["desk:a/1"] is None
    assert since["desk:a/2"] is not None


def test_what_is_past_its_retention_or_of_no_feed_any_more_is_deleted(desk: Desk) -> None:
    desk.index(document("desk:a/1"), document("desk:a/2"), document("desk:b/1"))
    listed = DocumentListing("desk:a/1", EVERYBODY)
    assert counts(desk.reconcile(listed, retention=FOR_EVER)) == {"deleted": 1}
    assert desk.writer.held.keys() == {"desk:a/1", "desk:a/2"}
    assert counts(desk.reconcile(listed, retention=AT_ONCE)) == {"deleted": 1}
    assert desk.writer.held.keys() == {"desk:a/1"}
    assert desk.agrees()


def test_a_source_of_its_latest_loses_no_feed_of_many_documents_unasked(desk: Desk) -> None:
    """6 of 8 documents are of a feed that the settings name no more; one that rolled out is not counted."""
    desk.index(*(document(f"desk:a/{number}") for number in range(2)))
    desk.index(*(document(f"desk:b/{number}") for number in range(6)))
    listed = DocumentListing("desk:a/1", EVERYBODY)
    with pytest.raises(DeletionNeedsApprovalError) as refused:
        desk.reconcile(listed, retention=FOR_EVER)
    assert (refused.value.guard.held, refused.value.guard.missing) == (8, 6)
    assert len(desk.writer.held) == 8
    desk.reconcile(listed, retention=FOR_EVER, when_empty=EmptyListing.ACCEPT)
    assert desk.writer.held.keys() == {"desk:a/0", "desk:a/1"}


def test_what_rolled_out_is_not_tried_again(desk: Desk) -> None:
    desk.index(document("desk:a/1"), unreadable("desk:a/2"))
    desk.index(unreadable("desk:a/1"))
    assert desk.failures.keys() == {"desk:a/1", "desk:a/2"}
    desk.reconcile(retention=FOR_EVER)
    assert desk.failures == {}
    assert desk.writer.held.keys() == {"desk:a/1"}


def test_a_listing_of_a_source_of_its_latest_that_breaks_off_begins_no_retention(
    desk: Desk,
) -> None:
    desk.index(document("desk:a/1"))

    def listing() -> Iterator[DocumentListing]:
        raise SourceError("there is no feed")
        yield

    with pytest.raises(SourceError):
        desk.run(
            lambda counters: desk.pipeline.reconcile(
                group_listing(listing()), 9, counters, retention=AT_ONCE
            )
        )
    assert _since(desk) == {"desk:a/1": None}


def test_a_listing_that_breaks_off_deletes_nothing(desk: Desk) -> None:
    desk.index(document("desk:a"), document("desk:b"))

    def listing() -> Iterator[DocumentListing]:
        yield DocumentListing("desk:a", EVERYBODY)
        raise TemporarilyUnavailableError("the server is away", retry_after=timedelta(minutes=1))

    with pytest.raises(TemporarilyUnavailableError):
        desk.run(lambda counters: desk.pipeline.reconcile(group_listing(listing()), 9, counters))
    assert desk.writer.held.keys() == {"desk:a", "desk:b"}


def test_what_an_earlier_try_of_a_listing_contained_counts_as_listed(desk: Desk) -> None:
    desk.index(*(document(f"desk:{name}") for name in "abcd"))

    def first_try() -> Iterator[ListingItem]:
        yield DocumentListing("desk:a", HR)
        yield Checkpoint("after a")
        raise TemporarilyUnavailableError("Too many requests.", retry_after=timedelta(hours=1))

    with pytest.raises(TemporarilyUnavailableError):
        desk.run(lambda counters: desk.pipeline.reconcile(group_listing(first_try()), 9, counters))
    assert desk.ledger.entries(["desk:a"])["desk:a"].access == HR
    rest = group_listing([DocumentListing(f"desk:{name}", EVERYBODY) for name in "bc"])
    report = desk.run(lambda counters: desk.pipeline.reconcile(rest, 9, counters))
    assert counts(report) == {"deleted": 1}
    assert desk.writer.held.keys() == {"desk:a", "desk:b", "desk:c"}


def test_a_listing_whose_last_try_found_nothing_more_is_not_empty(desk: Desk) -> None:
    desk.index(document("desk:a"), document("desk:b"))
    desk.ledger.mark_seen("desk", 9, ["desk:a"])
    report = desk.run(lambda counters: desk.pipeline.reconcile([], 9, counters))
    assert counts(report) == {"deleted": 1}


def test_fixed_readers_apply_to_all_documents_of_a_source(desk: Desk) -> None:
    desk.index_other_source()
    desk.index(document("desk:a"), document("desk:b", access=HR))
    report = desk.run(lambda counters: desk.pipeline.set_access(HR, counters))
    assert counts(report) == {"amended": 1}
    assert [each.access for each in desk.documents()] == [HR, HR]
    assert desk.writer.held["web:a"].chunks[0].access == EVERYBODY
    assert counts(desk.run(lambda counters: desk.pipeline.set_access(HR, counters))) == {}


def test_nothing_wrong_is_nothing_to_repair(desk: Desk) -> None:
    desk.index(document("desk:a"), document("desk:b"))
    before = len(desk.writer.log)
    assert counts(desk.repair()) == {}
    assert len(desk.writer.log) == before


def test_a_lost_index_is_made_again_from_what_is_kept(desk: Desk) -> None:
    desk.size = BatchSize(documents=2)
    desk.index(*(document(f"desk:{name}", access=HR) for name in "abcde"), unreadable("desk:a"))
    desk.writer.held.clear()
    report = desk.repair()
    assert counts(report) == {"restored": 5, "chunks": 5, "embedded": 5}
    assert desk.agrees()
    assert desk.failures.keys() == {"desk:a"}
    assert counts(desk.repair()) == {}


def test_what_only_the_index_has_is_deleted(desk: Desk) -> None:
    desk.index(document("desk:a"), document("desk:b"))
    desk.index_other_source()
    desk.ledger.save([Removed("desk:b"), Removed("web:a")])
    desk.writer.held["gone:x"] = replace(desk.writer.held["desk:a"], document_id="gone:x")
    assert counts(desk.repair()) == {"deleted": 2}
    # Documents of another source are left alone: its run may be writing now.
    assert desk.writer.held.keys() == {"desk:a", "web:a"}


def test_lost_contents_are_read_again_from_the_beginning(desk: Desk) -> None:
    desk.index(document("desk:a"), document("desk:b"), Checkpoint("9"))
    lose_texts(desk.database, "desk:a")
    desk.repair()
    assert desk.checkpoint is None
    assert desk.ledger.versions(["desk:a", "desk:b"]) == {"desk:a": "", "desk:b": "1"}
    assert desk.index(document("desk:a")).documents == 1
    assert desk.ledger.document("desk:a") == document("desk:a")


@pytest.mark.parametrize("spoil", [lose_texts, damage_texts])
def test_with_index_and_contents_both_lost_the_source_is_read_once(
    desk: Desk,
    spoil: Callable[[Database, str], None],
) -> None:
    desk.index(document("desk:a"), Checkpoint("9"))
    spoil(desk.database, "desk:a")
    desk.writer.held.clear()
    desk.repair()
    assert desk.checkpoint is None
    desk.index(Checkpoint("10"))
    desk.repair()
    assert desk.checkpoint == Checkpoint("10")
    assert desk.index(document("desk:a")).documents == 1
    assert desk.ledger.document("desk:a") == document("desk:a")


def test_repair_takes_back_access_that_only_the_index_has(desk: Desk) -> None:
    desk.index(document("desk:a", access=HR), document("desk:b"), document("desk:c", text=""))
    desk.writer.write([Amend(document_id="desk:a", access=EVERYBODY)])
    assert not desk.agrees()
    assert counts(desk.repair()) == {"amended": 1}
    assert desk.agrees()
    assert counts(desk.repair()) == {}


def test_repair_restores_and_amends_by_the_ledger_at_once(desk: Desk) -> None:
    desk.index(*(document(f"desk:{n}", access=HR) for n in range(4)))
    drifted = [Amend(document_id=f"desk:{n}", access=NOBODY) for n in (0, 1)]
    desk.writer.write([*drifted, Delete("desk:2")])
    assert counts(desk.repair()) == {"amended": 2, "restored": 1, "chunks": 1, "embedded": 1}
    assert desk.agrees()


def test_a_wrong_number_of_chunks_in_the_ledger_alone_embeds_nothing(desk: Desk) -> None:
    desk.index(document("desk:a"), document("desk:b"))
    right = desk.documents()
    desk.ledger.save([Restored.of(replace(right[0], chunks=7))])
    assert desk.documents() != right
    assert counts(desk.repair()) == {}
    assert desk.documents() == right


def test_chunks_that_the_index_lacks_are_restored(desk: Desk) -> None:
    desk.index(document("desk:a", text="Leave is 25 days. " * 400))
    held = desk.writer.held["desk:a"]
    assert len(held.chunks) > 1
    less = replace(held, chunks=held.chunks[:-1], vectors=held.vectors[:-1])
    desk.writer.held["desk:a"] = less
    assert desk.repair().restored == 1
    assert desk.agrees()


class Crash(Exception):
    """The process ends here."""


@dataclass
class CrashingIndexWriter:
    """Crashes at a chosen call, before or after the index has taken it."""

    inner: MemoryIndexWriter
    calls_left: int
    after: bool

    def write(self, changes: Iterable[IndexChange]) -> Written:
        self.calls_left -= 1
        if self.calls_left == 0 and not self.after:
            raise Crash
        written = self.inner.write(changes)
        if self.calls_left == 0:
            raise Crash
        return written

    def scan(self) -> Iterator[IndexedDocument]:
        return self.inner.scan()

    def select(self, selection: Selection) -> Iterator[SelectedDocument]:
        return self.inner.select(selection)

    def count(self, selections: Sequence[Selection]) -> int:
        return self.inner.count(selections)

    def export(self, after: str = "") -> Iterator[Replace]:
        return self.inner.export(after)


STATES = st.dictionaries(
    st.sampled_from(["desk:a", "desk:b", "desk:c", "desk:d", "desk:e"]),
    st.tuples(
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from([EVERYBODY, HR, HR_IN_SPACE, NOBODY]),
    ),
)


def _sync(desk: Desk, writer: IndexWriter, state: dict[str, tuple[str, Access]]) -> None:
    """Run a whole sync of a source in this state."""
    pipeline, counters = replace(desk.pipeline, writer=writer), RunCounters()
    desk.listings += 1
    wanted = [
        document(each, text=text, version=text, access=access)
        for each, (text, access) in sorted(state.items())
    ]

    def changes() -> Iterator[Change]:
        # Evaluated when the source is read: by then what earlier runs saved is indexed.
        known = desk.ledger.versions([each.id for each in wanted])
        yield from (each for each in wanted if known.get(each.id) != each.version)

    listing = [DocumentListing(each.id, each.access) for each in wanted]
    for _ in pipeline.repair(counters):
        pass
    for _ in index_changes(desk.database, pipeline, changes(), counters):
        pass
    pages = group_listing(listing)
    for _ in pipeline.reconcile(pages, desk.listings, counters, EmptyListing.ACCEPT):
        pass


@pytest.mark.soak("slow")
@settings(max_examples=20, deadline=None)
@given(states=st.lists(STATES, min_size=1, max_size=6), data=st.data())
def test_whatever_crashes_between_the_next_run_makes_it_right(
    empty_database: Path, states: list[dict[str, tuple[str, Access]]], data: st.DataObject
) -> None:
    with opened_copy(empty_database) as desk:
        desk.size = BatchSize(documents=2)
        for state in states:
            crash = data.draw(st.integers(1, 5))
            try:
                _sync(
                    desk, CrashingIndexWriter(desk.writer, crash, data.draw(st.booleans())), state
                )
            except Crash:
                continue
        _sync(desk, desk.writer, states[-1])
        assert batches.count(desk.database, "desk") == 0
        assert desk.agrees()
        shown = {
            each: (held.chunks[0].text, held.chunks[0].access)
            for each, held in desk.writer.held.items()
        }
        assert shown == states[-1]


def test_access_that_a_crash_left_only_in_the_index_is_reverted(desk: Desk) -> None:
    _sync(desk, desk.writer, {"desk:a": ("one", HR)})
    crashing = CrashingIndexWriter(desk.writer, calls_left=1, after=True)
    with pytest.raises(Crash):
        _sync(desk, crashing, {"desk:a": ("one", EVERYBODY)})
    assert desk.writer.held["desk:a"].chunks[0].access == EVERYBODY
    # The source has reverted the change meanwhile: it now agrees with the ledger.
    _sync(desk, desk.writer, {"desk:a": ("one", HR)})
    assert desk.writer.held["desk:a"].chunks[0].access == HR
    assert desk.ledger.access_pending("desk") == []


def test_an_index_ahead_of_the_ledger_stops_the_run_before_the_ledger_is_written(
    desk: Desk,
) -> None:
    desk.index(document())
    desk.writer.held["desk:a"] = replace(desk.writer.held["desk:a"], generation=9)
    with pytest.raises(TemporarilyUnavailableError, match="desk:a"):
        desk.index(document(text="New.", version="2"), Checkpoint("2"))
    assert desk.ledger.versions(["desk:a"]) == {"desk:a": "1"}
    assert counts(desk.repair()) == {"restored": 1, "chunks": 1, "embedded": 1}
    assert desk.index().documents == 1
    assert desk.ledger.versions(["desk:a"]) == {"desk:a": "2"}
    assert desk.agrees()


def test_a_listing_cannot_touch_another_source(desk: Desk) -> None:
    desk.index_other_source()
    with pytest.raises(ValueError, match="not an id of 'desk'"):
        desk.reconcile(DocumentListing("web:a", NOBODY))
    assert desk.ledger.entries(["web:a"])["web:a"].access == EVERYBODY


def test_clearing_a_source_leaves_nothing_of_it(desk: Desk) -> None:
    desk.index(document("desk:a"), unreadable("desk:b"))
    assert counts(desk.run(desk.pipeline.clear)) == {"deleted": 1}
    assert desk.writer.held == {}
    assert desk.documents() == []
    assert desk.failures == {}
    assert desk.written(Delete) == ["desk:a", "desk:b"]
    assert desk.written(Replace) == ["desk:a"]


Documents: TypeAlias = dict[str, tuple[int, int, str, Access]]

SIDES = st.dictionaries(
    st.text(max_size=2),
    st.tuples(
        st.integers(1, 3),
        st.integers(0, 2),
        st.sampled_from(["h1", "h2"]),
        st.sampled_from([EVERYBODY, NOBODY]),
    ),
    max_size=12,
)

ONE = IndexedDocument("desk:a", 4, 2, "h", EVERYBODY)


def side(documents: Documents) -> dict[str, IndexedDocument]:
    return {each: IndexedDocument(each, *documents[each]) for each in sorted(documents)}


def is_difference(listed: IndexedDocument | None, held: IndexedDocument | None) -> bool:
    if listed is None or held is None:
        return listed != held and not (listed and listed.chunks == 0)
    if listed.chunks == held.chunks == 0:
        return (listed.generation, listed.content_hash) != (held.generation, held.content_hash)
    return listed != held


@given(listed=SIDES, held=SIDES)
def test_differences_are_what_a_comparison_in_memory_finds(
    listed: Documents, held: Documents
) -> None:
    left, right = side(listed), side(held)
    expected = [
        Difference(each, left.get(each), right.get(each))
        for each in sorted({*left, *right})
        if is_difference(left.get(each), right.get(each))
    ]
    assert list(find_differences(iter(left.values()), iter(right.values()))) == expected


def test_the_next_generation_is_above_both() -> None:
    one = IndexedDocument("desk:a", 4, 1, "h")
    two = IndexedDocument("desk:a", 7, 1, "h")
    assert Difference("desk:a", one, two).next_generation == 8
    assert Difference("desk:a", one, None).next_generation == 5


@pytest.mark.parametrize(
    ("held", "of_access", "of_count"),
    [
        (replace(ONE, access=NOBODY), True, False),
        (replace(ONE, chunks=3), False, True),
        (replace(ONE, access=NOBODY, chunks=3), False, False),
        (replace(ONE, generation=5), False, False),
        (replace(ONE, content_hash="other", access=NOBODY), False, False),
        (ONE, False, False),
        (None, False, False),
    ],
)
def test_a_difference_says_what_it_is_of(
    held: IndexedDocument | None, *, of_access: bool, of_count: bool
) -> None:
    difference = Difference("desk:a", ONE, held)
    assert (difference.is_access_only, difference.is_chunk_count_only) == (of_access, of_count)


def test_a_stream_out_of_order_is_refused_rather_than_believed() -> None:
    a, b = (IndexedDocument(each, 1, 1, "h") for each in "ab")
    with pytest.raises(ValueError, match="not in ascending order"):
        list(find_differences(iter([a, b]), iter([b, a])))
