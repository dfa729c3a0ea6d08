"""The steps of a run for one source: repair, read in batches, apply a listing, delete.

The index is always written before the ledger. After a crash between the two, the index is ahead: the worker
that takes the batch over carries it out again, and `repair` corrects what is not repeated. It compares ledger
and index, which also differ after a folder was lost.
"""

import enum
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice

from connectors.access import Access
from connectors.batched import batched
from connectors.connector import Change, Checkpoint, DocumentCount
from connectors.document import Document
from connectors.retention import Retention
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import Amend, Delete, IndexedDocument, IndexWriter
from indexing.ingestion.batching import (
    Batch,
    BatchSize,
    Idle,
    group_by_characters,
    group_changes,
    read_ahead,
)
from indexing.ingestion.executor import Executor, Plan, ProgressSteps
from indexing.ingestion.ledger import (
    AccessAmended,
    CheckpointReset,
    ContentLost,
    Entry,
    Ledger,
    Removed,
    Restored,
    Unlisted,
    Unread,
)
from indexing.ingestion.listings import DeletionGuard, ListingPage
from indexing.ingestion.planner import (
    EmbedStep,
    Step,
    WriteStep,
    check_owner,
    plan_restore,
    validate_change,
)
from indexing.ingestion.progress import Outcome, ProgressMeter, RunCounters

_PAGE_SIZE = 500
_MAX_DIFFERENCES = 10_000
"""Differences that are held in memory at a time."""
_NO_LISTING = -1


@dataclass(frozen=True, slots=True)
class Difference:
    """A document of which two inventories contain different versions."""

    id: str
    expected: IndexedDocument | None
    """In the inventory that is right: the ledger, or the index that is copied."""
    actual: IndexedDocument | None
    """In the index that is to be brought in line."""

    @property
    def next_generation(self) -> int:
        return 1 + max(side.generation for side in (self.expected, self.actual) if side)

    @property
    def is_access_only(self) -> bool:
        """Whether both contain the same version, with different readers."""
        return _differ_only_in(self.expected, self.actual, "access")

    @property
    def is_chunk_count_only(self) -> bool:
        """Whether both contain the same version, with different numbers of chunks."""
        return _differ_only_in(self.expected, self.actual, "chunks")


class EmptyListing(enum.Enum):
    """What to do when a source that had documents lists none."""

    REFUSE = enum.auto()
    """An unmounted disk or a revoked permission looks the same."""
    ACCEPT = enum.auto()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The steps for one source. Only one process may run them at a time."""

    source: str
    embedder: Embedder
    writer: IndexWriter
    ledger: Ledger
    size: BatchSize = field(default_factory=BatchSize)

    @property
    def _executor(self) -> Executor:
        return Executor(self.embedder, self.writer, self.ledger)

    def read_batches(self, changes: Iterable[Change]) -> Generator[Batch, None, None]:
        """Yield the changes in batches, read in a thread of its own; an empty batch if the source is slow.

        Raises:
            ValueError: a change of another source.
            TemporarilyUnavailableError, ActionRequiredError: of the source.
        """
        with closing(read_ahead(changes)) as stream:
            yield from group_changes(self._validate(stream), self.size)

    def reconcile(
        self,
        listing: Iterable[ListingPage],
        number: int,
        counters: RunCounters,
        when_empty: EmptyListing = EmptyListing.REFUSE,
        accepted: int = 0,
        retention: Retention | None = None,
    ) -> ProgressSteps:
        """Apply the access of the listing, then delete what it does not contain and the source's retention does not
        keep. Nothing is embedded.

        Nothing is deleted unless the listing is complete.

        Args:
            listing: from where its last try ended.
            number: differs from that of every other listing of the source. What earlier tries of this one
                contained counts as listed.
            accepted: how many missing documents a person has approved.
            retention: of a source that only shows its latest.

        Raises:
            ValueError: the listing contains a document of another source.
            DeletionNeedsApprovalError: see `indexing.ingestion.listings`.
        """
        held = self.ledger.count(self.source)
        limit = held if when_empty is EmptyListing.ACCEPT else accepted
        yield from self.sync_access(listing, number, counters, limit, retention)
        yield from self._delete_unlisted(
            self.ledger.unseen(self.source, number), counters, retention
        )

    def sync_access(
        self,
        listing: Iterable[ListingPage],
        number: int,
        counters: RunCounters,
        accepted: int = 0,
        retention: Retention | None = None,
    ) -> ProgressSteps:
        """Apply the access of the listing as it is read, and delete nothing. See `reconcile`.

        Listed documents that were never read, such as those one may see only now, are marked to be read.
        Access is applied even if too many documents are missing: a revoked permission may not wait for an
        approval.

        What a retention covers is not missing: the latest of a source is no list of all, and what is deleted of it
        was ordered by the settings.
        """
        held = self.ledger.count(self.source)
        left = max(0, held - self.ledger.count_seen(self.source, number))
        meter = ProgressMeter(self.source, "listing", total=left)
        for page in listing:
            self._apply_listing(page, number, counters)
            last = page.documents[-1].document_id if page.documents else None
            yield meter.advance(last, len(page.documents))
        listed = self.ledger.count_seen(self.source, number)
        missing = self._count_missing(number, retention)
        DeletionGuard(source=self.source, held=held, listed=listed, missing=missing).check(accepted)

    def set_access(self, access: Access, counters: RunCounters) -> ProgressSteps:
        """Let these readers, and no others, read all documents of the source. The source is not asked."""
        meter = ProgressMeter(self.source, "amending", total=self.ledger.count(self.source))
        ids = (document.id for document in self.ledger.scan(self.source, ""))
        return self._change_access(ids, lambda _: access, meter, counters)

    def derive_access(
        self, derive: Callable[[str], Access], counters: RunCounters
    ) -> ProgressSteps:
        """Give documents of the source the group or scope that their ids say, where they name none yet.

        The source is not asked. What a document's id says does not change.
        """
        meter = ProgressMeter(self.source, "amending")
        ids = self.ledger.list_ungrouped(self.source)
        return self._change_access(ids, derive, meter, counters)

    def _change_access(
        self,
        ids: Iterable[str],
        derive: Callable[[str], Access],
        meter: ProgressMeter,
        counters: RunCounters,
    ) -> ProgressSteps:
        for page in batched(ids, _PAGE_SIZE):
            entries = self.ledger.entries(page)
            wanted = {each: derive(each) for each in entries}
            steps = (
                _amend_access(each, wanted[each], "amended")
                for each, entry in entries.items()
                if entry.access != wanted[each]
            )
            self._executor.run(Plan(tuple(steps)), counters)
            yield meter.advance(page[-1], len(page))

    def repair(self, counters: RunCounters) -> ProgressSteps:
        """Bring the index in line with the ledger, from the kept sections, without the source.

        Documents that are only in the index are deleted, including those of sources that no longer exist.
        Where kept sections are gone, the source will be read again from the beginning.
        """
        meter = ProgressMeter(self.source, "repairing")
        self._apply_pending_access()
        for page in batched(self.ledger.lost_contents(self.source), _PAGE_SIZE):
            self.ledger.save([*map(ContentLost, page), CheckpointReset(self.source)])
        after = ""
        while found := list(islice(self._find_differences(after), _MAX_DIFFERENCES)):
            plans = self._plan_repairs(found, counters)
            yield from self._executor.run_pipelined(plans, meter, counters)
            after = found[-1].id

    def clear(self, counters: RunCounters) -> ProgressSteps:
        """Delete all documents and failures of the source, from the index and the ledger."""
        yield from self._delete(self.ledger.unseen(self.source, _NO_LISTING), counters)

    def _validate(self, stream: Iterable[Change | Idle]) -> Iterator[Change | Idle]:
        for change in stream:
            match change:
                case Idle() | Checkpoint() | DocumentCount():
                    yield change
                case Document(source=source) if source != self.source:
                    raise ValueError(f"{change.id!r} is of {source!r}, not of {self.source!r}")
                case _:
                    yield validate_change(change, self.source)

    def _apply_listing(self, page: ListingPage, number: int, counters: RunCounters) -> None:
        access = {
            check_owner(listed.document_id, self.source): listed.access for listed in page.documents
        }
        entries = self.ledger.entries(list(access))
        amended = (
            _amend_access(each, access[each], "amended")
            for each, entry in entries.items()
            if entry.access != access[each]
        )
        unread = (WriteStep((Unread(self.source, each),)) for each in access if each not in entries)
        self._executor.run(Plan((*amended, *unread)), counters)
        self.ledger.mark_seen(self.source, number, list(access), page.reached)

    def _count_missing(self, number: int, retention: Retention | None) -> int:
        """Count the documents that the listing did not contain and no retention covers, without failures."""
        prefix = f"{self.source}:"
        unseen = (
            each
            for each in self.ledger.unseen(self.source, number)
            if retention is None or not retention.covers(each.removeprefix(prefix))
        )
        return sum(len(self.ledger.entries(page)) for page in batched(unseen, _PAGE_SIZE))

    def _delete(self, ids: Iterable[str], counters: RunCounters) -> ProgressSteps:
        meter = ProgressMeter(self.source, "removing")
        for page in batched(ids, _PAGE_SIZE):
            held = self.ledger.entries(page)
            steps = (
                WriteStep((Removed(each),), Delete(each), "deleted" if each in held else None)
                for each in page
            )
            self._executor.run(Plan(tuple(steps)), counters)
            yield meter.advance(page[-1], len(page))

    def _delete_unlisted(
        self, ids: Iterable[str], counters: RunCounters, retention: Retention | None
    ) -> ProgressSteps:
        """Delete what the listing did not contain, but for documents that the retention keeps."""
        if retention is None:
            yield from self._delete(ids, counters)
            return
        for page in batched(ids, _PAGE_SIZE):
            kept = self._list_kept(page, retention)
            self._executor.run(Plan(tuple(WriteStep((Unlisted(one),)) for one in kept)), counters)
            yield from self._delete((one for one in page if one not in kept), counters)

    def _list_kept(self, page: Sequence[str], retention: Retention) -> list[str]:
        now, prefix = datetime.now(UTC), f"{self.source}:"
        return [
            each
            for each, entry in self.ledger.entries(page).items()
            if retention.keeps(
                each.removeprefix(prefix),
                now - entry.unlisted_since if entry.unlisted_since else timedelta(0),
            )
        ]

    def _apply_pending_access(self) -> None:
        """Write the ledger's access where a crash left the index with that of a change it did not save."""
        for page in batched(self.ledger.access_pending(self.source), _PAGE_SIZE):
            entries = self.ledger.entries(page)
            steps = (_amend_access(each, entry.access, None) for each, entry in entries.items())
            self._executor.run(Plan(tuple(steps)), RunCounters())

    def _find_differences(self, after: str) -> Iterator[Difference]:
        known = self.ledger.sources() - {self.source}
        indexed = (
            document
            for document in self.writer.scan()
            if document.id > after and _source_of(document.id) not in known
        )
        return find_differences(self.ledger.scan(self.source, after), indexed)

    def _plan_repairs(self, found: Sequence[Difference], counters: RunCounters) -> Iterator[Plan]:
        for page in batched(found, _PAGE_SIZE):
            for parts in group_by_characters(self._plan_page(page, counters), self.size.characters):
                yield Plan(tuple(parts), item=page[-1].id)

    def _plan_page(self, page: Sequence[Difference], counters: RunCounters) -> Iterator[Step]:
        """Plan by the ledger as it is now: it may have changed since the differences were found."""
        entries = self.ledger.entries([difference.id for difference in page])
        others = self.ledger.sources() - {self.source}
        for difference in page:
            entry = entries.get(difference.id)
            if entry is not None:
                yield from self._plan_repair(difference, entry, counters)
            elif _source_of(difference.id) not in others:
                yield WriteStep((Removed(difference.id),), Delete(difference.id), "deleted")

    def _plan_repair(
        self, difference: Difference, entry: Entry, counters: RunCounters
    ) -> Iterator[Step]:
        if difference.is_access_only:
            yield _amend_access(difference.id, entry.access, "amended")
            return
        document = self.ledger.document(difference.id)
        if document is not None:
            with counters.timed("chunk"):
                step = plan_restore(document, difference.next_generation, self.embedder)
            yield _correct_chunk_count(difference, step) or step
        elif entry.kept:
            yield WriteStep((ContentLost(difference.id), CheckpointReset(self.source)))


def _correct_chunk_count(difference: Difference, step: Step) -> WriteStep | None:
    """Save the index's number of chunks where the index is right and the ledger is not.

    This happens when a change of the embedding model was interrupted at its very end.
    """
    actual = difference.actual
    if actual is None or not difference.is_chunk_count_only or not isinstance(step, EmbedStep):
        return None
    if len(step.chunks) != actual.chunks:
        return None
    return WriteStep((Restored.of(actual),))


def _amend_access(document: str, access: Access, outcome: Outcome | None) -> WriteStep:
    amend = Amend(document_id=document, access=access)
    return WriteStep((AccessAmended(document, access),), amend, outcome)


def _source_of(document: str) -> str:
    """Return the part before the first colon, which no source name contains."""
    return document.partition(":")[0]


def find_differences(
    expected: Iterator[IndexedDocument], actual: Iterator[IndexedDocument]
) -> Iterator[Difference]:
    """Merge two streams in ascending order of ids, in constant memory.

    A document without chunks may be missing from the actual stream; that is no difference.

    Raises:
        ValueError: a stream is not in order.
    """
    expected, actual = _check_order(expected), _check_order(actual)
    left, right = next(expected, None), next(actual, None)
    while left or right:
        if right is None or (left is not None and left.id < right.id):
            if left is not None and left.chunks:
                yield Difference(left.id, left, None)
            left = next(expected, None)
        elif left is None or right.id < left.id:
            yield Difference(right.id, None, right)
            right = next(actual, None)
        else:
            if left != right and not _are_empty(left, right):
                yield Difference(left.id, left, right)
            left, right = next(expected, None), next(actual, None)


def _are_empty(left: IndexedDocument, right: IndexedDocument) -> bool:
    return left.chunks == right.chunks == 0 and _differ_only_in(left, right, "access")


def _differ_only_in(
    left: IndexedDocument | None, right: IndexedDocument | None, field: str
) -> bool:
    if left is None or right is None or left == right:
        return False
    value = getattr(right, field)
    return replace(left, **{field: value}) == right


def _check_order(documents: Iterator[IndexedDocument]) -> Iterator[IndexedDocument]:
    before: str | None = None
    for document in documents:
        if before is not None and document.id <= before:
            raise ValueError(f"ids are not in ascending order: {document.id!r} after {before!r}")
        before = document.id
        yield document
