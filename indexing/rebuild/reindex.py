"""Builds a new index version from the kept sections, while the old one is in use.

What is to be done is the difference between the ledger and the new index version. So a rebuild can be stopped
at any time and continued, and each pass takes over what changed during the one before: a document that was
edited, deleted or given other readers differs in generation, presence or access. When a pass finds next to
nothing, all syncs are paused for a moment, the last pass is made, and the index versions are switched.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from heapq import merge
from operator import attrgetter

from connectors.access import Access
from connectors.batched import batched
from connectors.document import Document
from connectors.errors import ConflictError, TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import (
    Amend,
    Delete,
    IndexedDocument,
    IndexWriter,
    SelectedDocument,
)
from indexing.ingestion.batching import BatchSize, group_by_characters
from indexing.ingestion.executor import Executor, Plan
from indexing.ingestion.ledger import (
    Entry,
    Failed,
    Ledger,
    LedgerChange,
    Restored,
    SetAssignment,
)
from indexing.ingestion.pipeline import Difference, find_differences
from indexing.ingestion.planner import EmbedStep, Step, WriteStep, plan_restore
from indexing.ingestion.progress import ProgressMeter, RunCounters
from indexing.rebuild.events import (
    RETRY_SECONDS,
    KeepAlive,
    MissingDocument,
    RateLimit,
    RebuildEvent,
    RebuildProgress,
    RebuildResult,
    SyncPause,
    enter_sync_pause,
)

MAX_DIFFERENCES = 50_000
"""Differences of one pass, which are held in memory."""
MAX_LAST_DIFFERENCES = 200
"""Differences that are left for the pass while syncs are paused: seconds of work."""
MAX_MISSING = 0.5
"""Share of the documents that a new index version may lack."""
CONTENT_GONE = "its kept text is gone; the next sync reads it from its source again"
_LAST_PASSES = 5
_PAGE_SIZE = 500


class _FailureRecorder:
    """A ledger writer that keeps failures and changes nothing: the ledger describes the old index version."""

    def __init__(self, ledger: Ledger) -> None:
        self.failed: dict[str, str] = {}
        self._ledger = ledger

    def save(self, changes: Sequence[LedgerChange]) -> None:
        for change in changes:
            if isinstance(change, Failed):
                self.failed[change.document_id] = change.reason

    def save_conjunctions(self, granted: Collection[Access]) -> None:
        """Do nothing: what is indexed again comes from the ledger, which has saved them."""
        del granted

    def mark_access_pending(self, ids: Sequence[str]) -> None:
        del ids

    def assign_sets(self, documents: Sequence[SelectedDocument]) -> SetAssignment:
        return self._ledger.assign_sets(documents)

    def sets_version(self) -> int:
        return self._ledger.sets_version()


class Reindexer:
    """One rebuild, started or continued. The writer is that of the new index version."""

    def __init__(
        self,
        embedder: Embedder,
        writer: IndexWriter,
        ledger: Ledger,
        rate_limit: RateLimit | None = None,
    ) -> None:
        self._embedder = embedder
        self._writer = writer
        self._ledger = ledger
        self._rate_limit = rate_limit or RateLimit()
        self._counters = RunCounters()
        self._recorder = _FailureRecorder(ledger)
        self._missing: dict[str, tuple[IndexedDocument | None, str]] = {}
        """Documents that cannot be indexed: the version that failed, and why."""
        self._total = 0
        self._began = time.monotonic()

    def run(self, pause: SyncPause, switch: Callable[[], None]) -> Iterator[RebuildEvent]:
        """Build what is missing, then `switch` while syncs are paused. The last event is the result.

        Whatever ends it, it can be run again and continues from what was written.

        Raises:
            TemporarilyUnavailableError, ActionRequiredError: of the embedder, the index or the ledger.
        """
        while True:
            yield from self._catch_up()
            with ExitStack() as stack:
                keep_alive = yield from enter_sync_pause(stack, pause)
                if len(self._compare()[0]) > MAX_LAST_DIFFERENCES:
                    continue
                yield from self._finish_passes(keep_alive)
                missing = self._list_missing()
                self._check(missing)
                switch()
                self.update_chunk_counts(keep_alive)
                yield self._to_result(missing)
                return

    def update_chunk_counts(self, keep_alive: KeepAlive) -> None:
        """Save the number of chunks of each document, which differs between embedding models.

        Called only while syncs are paused, and after the switch: the ledger describes the active index
        version.
        """
        found = find_differences(self._scan_ledger(), self._writer.scan())
        for page in batched((each for each in found if each.is_chunk_count_only), _PAGE_SIZE):
            keep_alive()
            self._ledger.save([Restored.of(each.actual) for each in page if each.actual])

    def _catch_up(self) -> Iterator[RebuildProgress]:
        """Make passes until one had little to do."""
        while True:
            found, left = self._compare()
            yield from self._make_pass(found, left, self._rate_limit)
            if len(found) <= MAX_LAST_DIFFERENCES:
                return

    def _finish_passes(self, keep_alive: KeepAlive) -> Iterator[RebuildProgress]:
        self._forget_recovered()
        for _ in range(_LAST_PASSES):
            found, left = self._compare()
            if not found:
                return
            for progress in self._make_pass(found, left, RateLimit()):
                keep_alive()
                yield progress
        raise TemporarilyUnavailableError(
            "The documents changed during the last comparison. What was built is kept.",
            retry_after=timedelta(seconds=RETRY_SECONDS),
        )

    def _forget_recovered(self) -> None:
        """Try again what was gone and has since been read again, as the very same version."""
        for each, entry in self._missing_entries():
            if entry.kept and self._missing[each][1] == CONTENT_GONE:
                del self._missing[each]

    def _list_missing(self) -> tuple[MissingDocument, ...]:
        """List what the ledger holds and the new index version cannot have."""
        return tuple(
            MissingDocument(each, self._missing[each][1]) for each, _ in self._missing_entries()
        )

    def _missing_entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield the ledger entries of missing documents that the ledger still holds."""
        for page in batched(sorted(self._missing), _PAGE_SIZE):
            yield from self._ledger.entries(page).items()

    def _check(self, missing: Sequence[MissingDocument]) -> None:
        """Refuse an index version that lacks most documents; the old one still finds them."""
        if len(missing) > MAX_MISSING * self._total:
            raise ConflictError(
                f"{len(missing):,} of {self._total:,} documents cannot be indexed again, for example"
                f" {missing[0].document_id}: {missing[0].reason}. The index was not switched. Fix the cause,"
                " or sync, and reindex again."
            )

    def _make_pass(
        self, found: Sequence[Difference], left: int, rate_limit: RateLimit
    ) -> Iterator[RebuildProgress]:
        """Correct these differences, of `left` documents that are missing or outdated."""
        yield self._to_progress(left)
        executor = Executor(self._embedder, self._writer, self._recorder)
        meter, before = ProgressMeter("", "repairing"), self._counters.counts["restored"]
        steps = executor.run_pipelined(self._plan(found, rate_limit), meter, self._counters)
        with closing(steps):
            for step in steps:
                done = self._counters.counts["restored"] - before
                yield self._to_progress(max(0, left - done), step.item)
                chunks = self._counters.counts["chunks"]
                time.sleep(rate_limit.seconds_to_wait(chunks, self._elapsed))
        self._record_missing(found)

    def _compare(self) -> tuple[list[Difference], int]:
        """Return the first differences, and how many documents are missing or outdated."""
        self._total = sum(map(self._ledger.count, self._ledger.sources()))
        found: list[Difference] = []
        left = 0
        for each in find_differences(self._scan_ledger(), self._writer.scan()):
            if self._needs_work(each):
                left += each.expected is not None
                if len(found) < MAX_DIFFERENCES:
                    found.append(each)
        return found, left

    def _scan_ledger(self) -> Iterator[IndexedDocument]:
        sources = sorted(self._ledger.sources())
        return merge(*(self._ledger.scan(source, "") for source in sources), key=attrgetter("id"))

    def _needs_work(self, difference: Difference) -> bool:
        """Ignore the number of chunks, which differs between models, and what is known to be missing."""
        expected, actual = difference.expected, difference.actual
        known = self._missing.get(difference.id)
        if known is not None and known[0] == expected and actual is None:
            return False
        if expected is None or actual is None or not _is_same_version(actual, expected):
            return True
        return bool(expected.chunks and actual.chunks) and expected.access != actual.access

    def _plan(self, found: Sequence[Difference], rate_limit: RateLimit) -> Iterator[Plan]:
        for page in group_by_characters(self._plan_steps(found), BatchSize().characters):
            for steps in _group_by_chunks(page, rate_limit.batch_chunks):
                yield Plan(tuple(steps), item=_describe(steps[-1]))

    def _plan_steps(self, found: Sequence[Difference]) -> Iterator[Step]:
        for difference in found:
            entry, document = self._read_consistently(difference.id)
            if (step := self._plan_step(difference, entry, document)) is not None:
                yield step

    def _read_consistently(self, document_id: str) -> tuple[Entry | None, Document | None]:
        """Read entry and document of one moment, which two queries do not guarantee."""
        while True:
            entry = self._ledger.entries([document_id]).get(document_id)
            document = self._ledger.document(document_id) if entry else None
            if self._ledger.entries([document_id]).get(document_id) == entry:
                return entry, document

    def _plan_step(
        self, difference: Difference, entry: Entry | None, document: Document | None
    ) -> Step | None:
        """Decide what a difference requires, by the ledger as it is now."""
        each, actual = difference.id, difference.actual
        if entry is None or (actual is not None and actual.generation > entry.generation):
            # An older version can follow only when the newer one is gone: with the next pass.
            return WriteStep((), Delete(each), "deleted") if actual else None
        if actual is not None and _is_same_version(actual, entry):
            return WriteStep((), Amend(document_id=each, access=entry.access), "amended")
        if document is None:
            self._recorder.failed[each] = CONTENT_GONE
            return None
        step = plan_restore(document, entry.generation, self._embedder)
        if isinstance(step, EmbedStep):
            change = replace(step.ledger_change, content_hash=entry.content_hash)
            step = replace(step, ledger_change=change)
        return step

    def _record_missing(self, found: Sequence[Difference]) -> None:
        """Remember what failed, and delete older versions of it: they must not be shown in its place."""
        failed = [each for each in found if each.id in self._recorder.failed]
        for each in found:
            self._missing.pop(each.id, None)
        for each in failed:
            self._missing[each.id] = (each.expected, self._recorder.failed.pop(each.id))
        if outdated := [Delete(each.id) for each in failed if each.actual]:
            self._writer.write(outdated)

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _to_progress(self, left: int, item: str | None = None) -> RebuildProgress:
        counts, elapsed = self._counters.counts, self._elapsed
        done = counts["restored"]
        return RebuildProgress(
            documents=max(0, self._total - left - len(self._missing)),
            total=self._total,
            chunks=counts["chunks"],
            rate=counts["chunks"] / elapsed,
            seconds_left=left * elapsed / done if done else None,
            item=item,
        )

    def _to_result(self, missing: tuple[MissingDocument, ...]) -> RebuildResult:
        counts = self._counters.counts
        return RebuildResult(
            documents=counts["restored"],
            chunks=counts["chunks"],
            deleted=counts["deleted"],
            amended=counts["amended"],
            missing=missing,
            seconds=self._elapsed,
        )


def _group_by_chunks(steps: Iterable[Step], max_chunks: float) -> Iterator[list[Step]]:
    """Group the steps into lists that end with the step that reaches so many chunks."""
    group: list[Step] = []
    chunks = 0
    for step in steps:
        group.append(step)
        chunks += len(step.chunks) if isinstance(step, EmbedStep) else 0
        if chunks >= max_chunks:
            yield group
            group, chunks = [], 0
    if group:
        yield group


def _is_same_version(indexed: IndexedDocument, other: IndexedDocument | Entry) -> bool:
    return (indexed.generation, indexed.content_hash) == (other.generation, other.content_hash)


def _describe(step: Step) -> str | None:
    match step:
        case EmbedStep(item=item):
            return item
        case WriteStep(index_change=Amend(document_id=each) | Delete(document_id=each)):
            return each
        case _:
            return None
