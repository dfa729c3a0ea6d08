"""A source indexed the way a run does it: changes saved as batches, claimed under a lease, and carried out.

Everything happens in one generator, so that a test decides what happens between two batches and where it ends.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count

from backend.store.database import Database
from backend.store.documents import batches
from backend.store.documents.ledger import StoredLedger
from backend.store.sync import run_transitions, runs
from backend.store.sync.runs import Process
from connectors.connector import Change
from indexing.ingestion.batching import Batch, ClaimedBatch
from indexing.ingestion.executor import BatchWorker, ProgressSteps
from indexing.ingestion.ledger import LedgerChange, Stored, Unread
from indexing.ingestion.pipeline import Pipeline
from indexing.ingestion.progress import ProgressMeter, RunCounters

_NUMBERS = count(1)
_POLL_SECONDS = 0.002
_PATIENCE = 0.05


@dataclass(frozen=True)
class StrictLedger(StoredLedger):
    """The stored ledger; it remembers what was saved, and refuses what a pipeline should never save."""

    saves: list[tuple[LedgerChange, ...]] = field(default_factory=list)

    def save(self, changes: Iterable[LedgerChange]) -> None:
        changes = tuple(changes)
        if not changes:
            raise ValueError("nothing to save")
        for change in changes:
            self._check(change)
        StoredLedger.save(self, changes)
        self.saves.append(changes)

    def _check(self, change: LedgerChange) -> None:
        match change:
            case Stored(document=document, generation=generation):
                before = self.entries([document.id]).get(document.id)
                if before and generation <= before.generation:
                    raise ValueError(f"{document.id} is at {before.generation} already")
            case Unread(document_id=document_id) if self.entries([document_id]):
                raise ValueError(f"{document_id} was read")


def index_changes(
    database: Database, pipeline: Pipeline, changes: Iterable[Change], counters: RunCounters
) -> ProgressSteps:
    """Index what earlier calls left open, then what the source yields.

    Every call counts as a new process, and all earlier ones as dead: after an error or a closed generator the
    next call takes over the batches that were claimed, as another worker does after `kill -9`.
    """
    holder = Process("test", next(_NUMBERS), "")
    run = run_transitions.begin(database, pipeline.source, "incremental", holder, lambda _: True)
    runs.enter_stage(database, run, "indexing")
    queue = _Queue(database, pipeline.source, run, holder)
    worker = BatchWorker(pipeline.embedder, pipeline.writer, pipeline.ledger)
    with closing(pipeline.read_batches(changes)) as stream:
        coming = queue.claim_all(stream)
        yield from worker.run(coming, ProgressMeter(pipeline.source, "indexing"), counters)
    run_transitions.close(database, run, "done")


@dataclass(frozen=True)
class _Queue:
    """The batches of one source, as one process saves and claims them."""

    database: Database
    source: str
    run: int
    holder: Process

    def claim_all(self, stream: Iterator[Batch]) -> Iterator[ClaimedBatch | None]:
        # The ledger is asked what is known only after earlier batches are indexed.
        yield from self._claim_open()
        for batch in stream:
            if batch.changes or batch.checkpoint:
                batches.save(self.database, self.run, batch.changes, batch.checkpoint)
            yield self._claim()
        yield from self._claim_open()

    def _claim_open(self) -> Iterator[ClaimedBatch | None]:
        """Claim until nothing is left; `None` now and then, so that an error of the writing is seen."""
        since = time.monotonic()
        while batches.count(self.database, self.source):
            held = self._claim()
            if held is not None or time.monotonic() - since > _PATIENCE:
                yield held
                since = time.monotonic()
            else:
                time.sleep(_POLL_SECONDS)

    def _claim(self) -> ClaimedBatch | None:
        return batches.claim(self.database, self.holder, self._is_dead, self.source)

    def _is_dead(self, process: Process) -> bool:
        return process != self.holder
