"""From what a source yields to what can be found, with the ledger in step.

The index is always written before the ledger. A crash in between leaves the index ahead; the next
run repeats the step, since the ledger has neither the version nor the checkpoint, and `repair`
puts right what is not repeated.
"""

import enum
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

from connectors.batched import portions
from connectors.connector import Change, Checkpoint, Listed
from connectors.document import Access, Document
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import Amend, Delete, IndexWriter
from indexing.ingestion.batching import Batch, BatchSize, batches, weighed
from indexing.ingestion.deletion_guard import Shrinkage
from indexing.ingestion.executor import Plan, Progresses, Writing
from indexing.ingestion.ledger import (
    Amended,
    Entry,
    Ledger,
    Lost,
    Reached,
    Removed,
    Restored,
    Unread,
)
from indexing.ingestion.planner import Prepared, Step, owned, restored, sound
from indexing.ingestion.prefetch import Idle, read_ahead
from indexing.ingestion.progress import Meter, Tally
from indexing.ingestion.reconciliation import Difference, differences

_PAGE = 500
_MOST_DIFFERENCES = 10_000
_NO_LISTING = -1


class EmptyListing(enum.Enum):
    """What to do when a source that had documents lists none."""

    REFUSE = enum.auto()
    """A disk that is not mounted, or a right that was lost, looks just like this."""
    ACCEPT = enum.auto()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The steps for one source. Only one process may take them at a time."""

    source: str
    embedder: Embedder
    writer: IndexWriter
    ledger: Ledger
    size: BatchSize = field(default_factory=BatchSize)

    @property
    def _writing(self) -> Writing:
        return Writing(self.embedder, self.writer, self.ledger)

    def read(self, changes: Iterable[Change]) -> Generator[Batch, None, None]:
        """The changes in batches, read in a thread of its own; one without any where the source is slow.

        Raises:
            ValueError: a change that is not of this source.
            TemporarilyUnavailableError, ActionRequiredError: the source's.
        """
        with closing(read_ahead(changes)) as stream:
            yield from batches(self._checked(stream), self.size)

    def reconcile(
        self,
        listing: Iterable[Listed],
        number: int,
        tally: Tally,
        when_empty: EmptyListing = EmptyListing.REFUSE,
        accepted: int = 0,
    ) -> Progresses:
        """Amend the access of what is listed, then delete what is not. Nothing is embedded.

        `number` differs from that of every earlier listing; so many missing documents as are `accepted` are
        not asked about. Nothing is deleted unless the listing came to its end.

        Raises:
            ValueError: the listing names a document that is not of this source.
            NeedsDecision: much less is listed than is held (see `indexing.ingestion.deletion_guard`).
        """
        held = self.ledger.count(self.source)
        everything = held if when_empty is EmptyListing.ACCEPT else accepted
        yield from self.permit(listing, number, tally, everything)
        yield from self._remove(self.ledger.unseen(self.source, number), tally)

    def permit(
        self, listing: Iterable[Listed], number: int, tally: Tally, accepted: int = 0
    ) -> Progresses:
        """Amend the access of what is listed, as it is listed, and leave the rest. As `reconcile`.

        What is listed and was never read, such as what one may see only now, is entered to be read. What the
        source says of a document is taken over also where it says too little of the rest: a
        right that was taken away may not wait for a decision.
        """
        held, listed = self.ledger.count(self.source), 0
        meter = Meter(self.source, "listing", total=held)
        for page in portions(listing, _PAGE):
            listed += len(page)
            self._take_listed(page, number, tally)
            yield meter.progress(page[-1].document_id, len(page))
        missing = self._missing(number)
        Shrinkage(source=self.source, held=held, listed=listed, missing=missing).check(accepted)

    def repair(self, tally: Tally) -> Progresses:
        """Bring the index in line with the ledger, from the kept sections, without the source.

        Documents that only the index has are deleted, also those of sources that are no more; what
        only other readers find is amended.
        Where kept sections are gone, the source will be read again from the beginning.
        """
        meter = Meter(self.source, "repairing")
        self._settle()
        for lost in portions(self.ledger.lost(self.source), _PAGE):
            self._forget(lost)
        after = ""
        while found := list(islice(self._differences(after), _MOST_DIFFERENCES)):
            plans = self._mending_plans(found, tally)
            yield from self._writing.carry_out_ahead(plans, meter, tally)
            after = found[-1].id

    def clear(self, tally: Tally) -> Progresses:
        """Delete all documents and failures of the source, from the index and the ledger."""
        yield from self._remove(self.ledger.unseen(self.source, _NO_LISTING), tally)

    def _checked(self, stream: Iterable[Change | Idle]) -> Iterator[Change | Idle]:
        for change in stream:
            match change:
                case Idle() | Checkpoint():
                    yield change
                case Document(source=source) if source != self.source:
                    raise ValueError(f"{change.id!r} is of {source!r}, not of {self.source!r}")
                case _:
                    yield sound(change, self.source)

    def _take_listed(self, page: Sequence[Listed], number: int, tally: Tally) -> None:
        access = {owned(listed.document_id, self.source): listed.access for listed in page}
        entries = self.ledger.entries(list(access))
        amended = (
            Step((Amended(each, access[each]),), _amend(each, access[each]), "amended")
            for each, entry in entries.items()
            if entry.access != access[each]
        )
        unread = (Step((Unread(self.source, each),)) for each in access if each not in entries)
        self._writing.carry_out(Plan((*amended, *unread)), tally)
        self.ledger.see(self.source, number, list(access))

    def _missing(self, number: int) -> int:
        """How many documents the listing did not have; failures do not count."""
        unseen = portions(self.ledger.unseen(self.source, number), _PAGE)
        return sum(len(self.ledger.versions(page)) for page in unseen)

    def _remove(self, ids: Iterable[str], tally: Tally) -> Progresses:
        meter = Meter(self.source, "removing")
        for page in portions(ids, _PAGE):
            held = self.ledger.entries(page)
            removed = (
                Step((Removed(each),), Delete(each), "deleted" if each in held else None)
                for each in page
            )
            self._writing.carry_out(Plan(tuple(removed)), tally)
            yield meter.progress(page[-1], len(page))

    def _settle(self) -> None:
        """Show to its readers, as the ledger names them, what was left between two states."""
        for page in portions(self.ledger.unsettled(self.source), _PAGE):
            settled = (
                Step((Amended(each, entry.access),), _amend(each, entry.access))
                for each, entry in self.ledger.entries(page).items()
            )
            self._writing.carry_out(Plan(tuple(settled)), Tally())

    def _forget(self, lost: Sequence[str]) -> None:
        self.ledger.save([*map(Lost, lost), Reached(self.source, None)])

    def _differences(self, after: str) -> Iterator[Difference]:
        known = self.ledger.sources() - {self.source}
        held = (
            document
            for document in self.writer.scan()
            if document.id > after and _source_of(document.id) not in known
        )
        return differences(self.ledger.scan(self.source, after), held)

    def _mending_plans(self, found: Sequence[Difference], tally: Tally) -> Iterator[Plan]:
        for page in portions(found, _PAGE):
            for parts in weighed(self._mending(page, tally), self.size.characters):
                yield Plan(tuple(parts), item=page[-1].id)

    def _mending(self, page: Sequence[Difference], tally: Tally) -> Iterator[Prepared | Step]:
        """What each difference asks for, by the ledger as it is now: it may have changed since."""
        entries = self.ledger.entries([difference.id for difference in page])
        others = self.ledger.sources() - {self.source}
        for difference in page:
            entry = entries.get(difference.id)
            if entry is not None:
                yield from self._restoring(difference, entry, tally)
            elif _source_of(difference.id) not in others:
                yield Step((Removed(difference.id),), Delete(difference.id), "deleted")

    def _restoring(
        self, difference: Difference, entry: Entry, tally: Tally
    ) -> Iterator[Prepared | Step]:
        if difference.is_of_access:
            amended = (Amended(difference.id, entry.access),)
            yield Step(amended, _amend(difference.id, entry.access), "amended")
            return
        document = self.ledger.document(difference.id)
        if document is not None:
            with tally.timed("chunk"):
                part = restored(document, difference.next_generation, self.embedder)
            yield _counted(difference, part) or part
        elif entry.kept:
            yield Step((Lost(difference.id), Reached(self.source, None)))


def _counted(difference: Difference, part: Prepared | Step) -> Step | None:
    """What the ledger is told where the index is right, and the ledger counts other chunks.

    So it is after a change of model that did not come to its very end.
    """
    held = difference.held
    if held is None or not difference.is_of_count or not isinstance(part, Prepared):
        return None
    if len(part.chunks) != held.chunks:
        return None
    return Step((Restored.of(held),))


def _amend(document: str, access: Access) -> Amend:
    return Amend(document_id=document, access=access)


def _source_of(document: str) -> str:
    """By the rule that ids begin with the source's name and a colon, which no name contains."""
    return document.partition(":")[0]
