"""A batch of changes to the cluster, each document in steps of its own; nobody ever sees one half done.

Writers do not lock each other out. Who writes a document announces it by a conditional write of its
record, and flips it by another: had somebody else a hand in it meanwhile, the second is refused, and the
change is planned anew. A writer that is gone leaves its announcement behind; the next one takes it over.
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import chain

from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import Amend, Written
from indexing.index.validation import Batch, PreparedReplace
from indexing.opensearch.bulk_actions import drop_chunks, label_chunks, put_chunks
from indexing.opensearch.bulk_requests import Action, Bulk
from indexing.opensearch.cleanup import Patience, label_again, settle, take_over
from indexing.opensearch.document_records import Documents
from indexing.opensearch.mapping import Quantisation
from indexing.opensearch.record_mapping import DocumentRecord
from indexing.opensearch.write_plan import Plan, Work, planned, told, widened

GRACE = 1.0
"""Seconds after which another's announcement is taken over; longer each time that goes wrong."""
BEAT = 5.0
"""Seconds between two signs of life of who writes for long."""
PAUSE = 0.05
"""Seconds, about, between two looks at a document that another is writing."""


class Writer:
    """Writes batches to one index. For one thread at a time."""

    def __init__(
        self, documents: Documents, bulk: Bulk, quantisation: Quantisation, patience: float
    ) -> None:
        """`patience`: seconds to wait for other writers without getting on."""
        self._documents = documents
        self._bulk = bulk
        self._quantisation: Quantisation = quantisation
        self._patience = patience

    def write(self, batch: Batch) -> Written:
        """See `IndexWriter.write`; not refreshed yet.

        Raises:
            TemporarilyUnavailableError: another writer did not leave a document alone, or the cluster is busy.
            ActionRequiredError
        """
        others, written, got_on = Patience(GRACE), Written(), time.monotonic()
        while True:
            plan = self._plan(batch, others)
            done = self._perform(plan.works)
            written += told(done, plan)
            settled = {*(work.name for work in done), *plan.stale, *plan.missing}
            others.lost(work.name for work in plan.works if work.name not in settled)
            batch = [item for item in batch if item.document_id not in settled]
            if not batch:
                return written
            got_on = time.monotonic() if settled else got_on
            self._wait(batch, got_on)

    def _plan(self, batch: Batch, others: Patience) -> Plan:
        """For all but the documents that another is writing."""
        held = self._documents.read(item.document_id for item in batch)
        unfinished = [each for each in held.values() if each.record.unfinished]
        if abandoned := [each for each in unfinished if others.is_abandoned(each)]:
            take_over(self._documents, self._bulk, abandoned)
        busy = {each.record.id for each in unfinished}
        return planned([item for item in batch if item.document_id not in busy], held)

    def _perform(self, works: Sequence[Work]) -> list[Work]:
        """Those of them that no other writer got in the way of."""
        attempt = _Attempt(works, self._documents, self._bulk, self._quantisation)
        attempt.announce()
        attempt.fill()
        done = attempt.flip()
        attempt.clean()
        return done

    def _wait(self, batch: Batch, since: float) -> None:
        if time.monotonic() - since > self._patience:
            names = ", ".join(item.document_id[:100] for item in batch[:3])
            raise TemporarilyUnavailableError(
                f"Others are writing the same documents all the time: {names}.",
                timedelta(seconds=30),
            )
        time.sleep(PAUSE * random.uniform(0.5, 1.5))


class _Attempt:
    """At the works of one plan. Those that another writer gets in the way of are lost to it."""

    def __init__(
        self, works: Sequence[Work], documents: Documents, bulk: Bulk, quantisation: Quantisation
    ) -> None:
        self._works = {work.name: work for work in works}
        self._held = {work.name: work.held for work in works}
        """The records as this writer left them."""
        self._documents = documents
        self._bulk = bulk
        self._quantisation: Quantisation = quantisation
        self._next_beat = time.monotonic() + BEAT

    def announce(self) -> None:
        """Readers see no difference; whoever comes after a crash does."""
        self._put({n: work.announced for n, work in self._works.items() if work.announced})

    def fill(self) -> None:
        """New chunks, which do not count yet, and labels by which chunks are found before and after."""
        lost: list[Work] = []
        self._bulk.send(self._filling(lost))
        # Not before all that was under way has arrived.
        self._undo(lost)

    def flip(self) -> list[Work]:
        """What readers see from here on; returns what was not lost."""
        lost = self._put({name: work.flipped for name, work in self._works.items()})
        self._undo(lost)
        return list(self._works.values())

    def clean(self) -> None:
        held = [self._held[name] for name in self._works]
        settle(
            self._documents, self._bulk, [each for each in held if each and each.record.unfinished]
        )

    def _put(self, records: Mapping[str, DocumentRecord]) -> list[Work]:
        """Write the records as they follow; returns what was lost by it."""
        wanted = [(record, self._held[name]) for name, record in records.items()]
        for name, held in zip(records, self._documents.put(wanted), strict=True):
            self._held[name] = held
        return [self._works.pop(name) for name in records if self._held[name] is None]

    def _filling(self, lost: list[Work]) -> Iterator[Action]:
        for work in list(self._works.values()):
            for action in self._chunks(work):
                if time.monotonic() > self._next_beat:
                    lost += self._beat()
                if work.name not in self._works:
                    break
                yield action

    def _chunks(self, work: Work) -> Iterator[Action]:
        match work.item:
            case PreparedReplace() as item:
                return put_chunks(work.flipped, item, self._quantisation)
            case Amend() if work.announced:
                return label_chunks(work.announced, widened(work.announced, work.flipped))
            case _:
                return iter(())

    def _beat(self) -> list[Work]:
        """Show that this writer is at work: others take over what does not change. Returns what was lost."""
        self._next_beat = time.monotonic() + BEAT
        return self._put({n: work.announced for n, work in self._works.items() if work.announced})

    def _undo(self, lost: Sequence[Work]) -> None:
        """Who took over has seen to this already, but not to what was under way just then."""
        replaced = [work.flipped for work in lost if isinstance(work.item, PreparedReplace)]
        self._bulk.send(chain.from_iterable(drop_chunks(each, each.version) for each in replaced))
        amended = [work.held for work in lost if isinstance(work.item, Amend) and work.held]
        label_again(self._documents, self._bulk, amended)
