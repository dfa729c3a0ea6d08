"""A new index version of the index, cut and embedded anew from the kept sections, while the old one is in use.

What is to be done is the difference between the ledger and the new index version, so that it can be stopped at any
moment and gone on with, and what changes meanwhile is taken over by the next pass: a document that was
edited, deleted or given other readers differs in generation, in being there, or in access. When a pass finds
next to nothing, the sources are held still for a moment, the last pass is made, and the index versions are switched.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from heapq import merge
from operator import attrgetter

from connectors.batched import portions
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import Amend, Delete, IndexedDocument, IndexWriter
from indexing.ingestion.batching import BatchSize, weighed
from indexing.ingestion.executor import Plan, Writing
from indexing.ingestion.ledger import Entry, Failed, Ledger, LedgerChange, Restored
from indexing.ingestion.planner import Prepared, Step, restored
from indexing.ingestion.progress import Meter, Tally
from indexing.ingestion.reconciliation import Difference, differences
from indexing.rebuild.events import Building, Missing, Pace, Rebuilding, Rebuilt
from indexing.rebuild.standstill import PATIENCE, GoOn, Standstill, entered

PASS = 50_000
"""Differences of one pass, which are held in memory."""
FEW = 200
"""Differences that are made up for while the sources stand still: seconds of work."""
MOST_MISSING = 0.5
"""Share of the documents that a new index version may lack."""
GONE = "its kept text is gone; the next sync reads it from its source again"
_LAST_PASSES = 5
_PAGE = 500


class _Notes:
    """Takes what a ledger is told. The ledger itself says what it said before, but for what went wrong."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}

    def save(self, changes: Sequence[LedgerChange]) -> None:
        for change in changes:
            if isinstance(change, Failed):
                self.failed[change.document_id] = change.reason

    def unsettle(self, ids: Sequence[str]) -> None:
        del ids


class Reindexing:
    """One run, begun or gone on with. The writer is that of the index version which is being built."""

    def __init__(
        self, embedder: Embedder, writer: IndexWriter, ledger: Ledger, pace: Pace | None = None
    ) -> None:
        self._embedder = embedder
        self._writer = writer
        self._ledger = ledger
        self._pace = pace or Pace()
        self._tally = Tally()
        self._notes = _Notes()
        self._missing: dict[str, tuple[IndexedDocument | None, str]] = {}
        self._total = 0
        self._began = time.monotonic()

    def run(self, standstill: Standstill, switch: Callable[[], None]) -> Iterator[Rebuilding]:
        """Build what is missing, then `switch` while the sources stand still; the last thing told is `Rebuilt`.

        Whatever ends it, it can be run again, and goes on from what was written.

        Raises:
            TemporarilyUnavailableError, ActionRequiredError: the embedder's, the index's or the ledger's.
        """
        while True:
            yield from self._caught_up()
            with ExitStack() as stack:
                go_on = yield from entered(stack, standstill)
                if len(self._compared()[0]) > FEW:
                    continue
                yield from self._last_passes(go_on)
                lacking = self._lacking()
                self._check(lacking)
                switch()
                self.settle(go_on)
                yield self._rebuilt(lacking)
                return

    def settle(self, go_on: GoOn) -> None:
        """Tell the ledger the chunks of each document, which another model may cut into other numbers.

        Only while no source is synced, and after the switch: the ledger speaks of the active index version.
        """
        found = differences(self._told(), self._writer.scan())
        for page in portions((each for each in found if each.is_of_count), _PAGE):
            go_on()
            self._ledger.save([Restored.of(each.held) for each in page if each.held])

    def _caught_up(self) -> Iterator[Building]:
        """Passes, until one had little to do."""
        while True:
            found, left = self._compared()
            yield from self._passed(found, left, self._pace)
            if len(found) <= FEW:
                return

    def _last_passes(self, go_on: GoOn) -> Iterator[Building]:
        self._reconsider()
        for _ in range(_LAST_PASSES):
            found, left = self._compared()
            if not found:
                return
            for step in self._passed(found, left, Pace()):
                go_on()
                yield step
        raise TemporarilyUnavailableError(
            "The documents changed while they were being compared for the last time. What was built is"
            " kept.",
            retry_after=timedelta(seconds=PATIENCE),
        )

    def _reconsider(self) -> None:
        """What was gone may have been read again meanwhile, as the very version that it was."""
        for each, entry in self._missing_entries():
            if entry.kept and self._missing[each][1] == GONE:
                del self._missing[each]

    def _lacking(self) -> tuple[Missing, ...]:
        """What the ledger holds and the new index version cannot have."""
        return tuple(Missing(each, self._missing[each][1]) for each, _ in self._missing_entries())

    def _missing_entries(self) -> Iterator[tuple[str, Entry]]:
        """Of what is missing, as far as the ledger holds it still."""
        for page in portions(sorted(self._missing), _PAGE):
            yield from self._ledger.entries(page).items()

    def _check(self, lacking: Sequence[Missing]) -> None:
        """An index version that has next to nothing is no good; the old one finds documents still."""
        if len(lacking) > MOST_MISSING * self._total:
            raise ActionRequiredError(
                f"{len(lacking):,} of {self._total:,} documents cannot be indexed anew,"
                f" {lacking[0].document_id} for one: {lacking[0].reason}. The index stays as it is. Mend"
                " that, or sync, and reindex again."
            )

    def _passed(self, found: Sequence[Difference], left: int, pace: Pace) -> Iterator[Building]:
        """Make up for these differences, of `left` documents that the new index version has not as they are."""
        yield self._building(left)
        writing = Writing(self._embedder, self._writer, self._notes)
        meter, before = Meter("", "repairing"), self._tally.counts["restored"]
        steps = writing.carry_out_ahead(self._plans(found, pace), meter, self._tally)
        with closing(steps):
            for step in steps:
                done = self._tally.counts["restored"] - before
                yield self._building(max(0, left - done), step.item)
                time.sleep(pace.pause(self._tally.counts["chunks"], self._elapsed))
        self._give_up(found)

    def _compared(self) -> tuple[list[Difference], int]:
        """The first differences, and how many documents the new index version has not as they are."""
        self._total = sum(map(self._ledger.count, self._ledger.sources()))
        found: list[Difference] = []
        left = 0
        for each in differences(self._told(), self._writer.scan()):
            if self._is_to_do(each):
                left += each.told is not None
                if len(found) < PASS:
                    found.append(each)
        return found, left

    def _told(self) -> Iterator[IndexedDocument]:
        sources = sorted(self._ledger.sources())
        return merge(*(self._ledger.scan(source, "") for source in sources), key=attrgetter("id"))

    def _is_to_do(self, difference: Difference) -> bool:
        """Another number of chunks is no difference: another model cuts otherwise."""
        known = self._missing.get(difference.id)
        if known is not None and known[0] == difference.told and difference.held is None:
            return False
        told, held = difference.told, difference.held
        if told is None or held is None or not _same_version(told, held):
            return True
        return bool(told.chunks and held.chunks) and told.access != held.access

    def _plans(self, found: Sequence[Difference], pace: Pace) -> Iterator[Plan]:
        for page in weighed(self._parts(found), BatchSize().characters):
            for parts in _gathered(page, pace.at_once):
                yield Plan(tuple(parts), item=_name(parts[-1]))

    def _parts(self, found: Sequence[Difference]) -> Iterator[Prepared | Step]:
        for difference in found:
            entry, document = self._kept(difference.id)
            if (part := self._part(difference, entry, document)) is not None:
                yield part

    def _kept(self, document_id: str) -> tuple[Entry | None, Document | None]:
        """What the ledger holds of a document at one moment, which several questions do not give."""
        while True:
            entry = self._ledger.entries([document_id]).get(document_id)
            document = self._ledger.document(document_id) if entry else None
            if self._ledger.entries([document_id]).get(document_id) == entry:
                return entry, document

    def _part(
        self, difference: Difference, entry: Entry | None, document: Document | None
    ) -> Prepared | Step | None:
        """What a difference asks of the new index version, by the ledger as it is now."""
        each, held = difference.id, difference.held
        if entry is None or (held is not None and held.generation > entry.generation):
            # An older version can only follow when the newer one is gone: with the next pass.
            return Step((), Delete(each), "deleted") if held else None
        if held is not None and _is_version(held, entry):
            return Step((), Amend(document_id=each, access=entry.access), "amended")
        if document is None:
            self._notes.failed[each] = GONE
            return None
        part = restored(document, entry.generation, self._embedder)
        if isinstance(part, Prepared):
            then = replace(part.then, content_hash=entry.content_hash)
            part = replace(part, then=then)
        return part

    def _give_up(self, found: Sequence[Difference]) -> None:
        """Remember what cannot be had, as the ledger tells it; an older version is not shown for it."""
        failed = [each for each in found if each.id in self._notes.failed]
        for each in found:
            self._missing.pop(each.id, None)
        for each in failed:
            self._missing[each.id] = (each.told, self._notes.failed.pop(each.id))
        if outdated := [Delete(each.id) for each in failed if each.held]:
            self._writer.write(outdated)

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _building(self, left: int, item: str | None = None) -> Building:
        counts, elapsed = self._tally.counts, self._elapsed
        done = counts["restored"]
        return Building(
            documents=max(0, self._total - left - len(self._missing)),
            total=self._total,
            chunks=counts["chunks"],
            rate=counts["chunks"] / elapsed,
            seconds_left=left * elapsed / done if done else None,
            item=item,
        )

    def _rebuilt(self, lacking: tuple[Missing, ...]) -> Rebuilt:
        counts = self._tally.counts
        return Rebuilt(
            documents=counts["restored"],
            chunks=counts["chunks"],
            deleted=counts["deleted"],
            amended=counts["amended"],
            missing=lacking,
            seconds=self._elapsed,
        )


def _gathered(parts: Iterable[Prepared | Step], most: float) -> Iterator[list[Prepared | Step]]:
    """In lists that end with the one that reaches so many chunks."""
    gathered: list[Prepared | Step] = []
    chunks = 0
    for part in parts:
        gathered.append(part)
        chunks += len(part.chunks) if isinstance(part, Prepared) else 0
        if chunks >= most:
            yield gathered
            gathered, chunks = [], 0
    if gathered:
        yield gathered


def _same_version(told: IndexedDocument, held: IndexedDocument) -> bool:
    return (told.generation, told.content_hash) == (held.generation, held.content_hash)


def _is_version(held: IndexedDocument, entry: Entry) -> bool:
    return (held.generation, held.content_hash) == (entry.generation, entry.content_hash)


def _name(part: Prepared | Step) -> str | None:
    match part:
        case Prepared(item=item):
            return item
        case Step(first=Amend(document_id=each) | Delete(document_id=each)):
            return each
        case _:
            return None
