"""Carries out saved batches of any source, in any order, for a worker that has claimed them."""

from collections.abc import Iterator
from dataclasses import dataclass

from indexing.embedding.embedder import Embedder
from indexing.index.protocols import IndexWriter
from indexing.ingestion.batching import ClaimedBatch, describe_last_change, document_id
from indexing.ingestion.executor import Executor, Plan, ProgressSteps
from indexing.ingestion.ledger import Ledger
from indexing.ingestion.planner import plan_change
from indexing.ingestion.progress import ProgressMeter, RunCounters

_EMPTY_PLAN = Plan(())


@dataclass(frozen=True, slots=True)
class BatchWorker:
    embedder: Embedder
    writer: IndexWriter
    ledger: Ledger

    def run(
        self, claimed: Iterator[ClaimedBatch | None], meter: ProgressMeter, counters: RunCounters
    ) -> ProgressSteps:
        """Write each batch to the index and the ledger, and record that it is finished.

        While two batches are embedded, the next one is claimed and the last one is written. No two batches
        with changes of the same document may be claimed at once.

        Args:
            claimed: yields `None` while no batch is available.

        Raises:
            LeaseLostError: another worker has taken a batch over; the ledger is unchanged.
            TemporarilyUnavailableError, ActionRequiredError: of the embedder or the index.
        """
        executor = Executor(self.embedder, self.writer, self.ledger)
        yield from executor.run_pipelined(self._plan_all(claimed, counters), meter, counters)

    def _plan_all(
        self, claimed: Iterator[ClaimedBatch | None], counters: RunCounters
    ) -> Iterator[Plan]:
        while True:
            with counters.timed("read"):
                batch = next(claimed, _END)
            if isinstance(batch, _End):
                return
            yield _EMPTY_PLAN if batch is None else self._plan(batch, counters)

    def _plan(self, batch: ClaimedBatch, counters: RunCounters) -> Plan:
        entries = self.ledger.entries([document_id(change) for change in batch.changes])
        with counters.timed("chunk"):
            parts = tuple(
                plan_change(
                    change,
                    entries.get(document_id(change)),
                    batch.source,
                    self.embedder,
                    batch.number,
                )
                for change in batch.changes
            )
        return Plan(parts, item=describe_last_change(batch.changes), batch=batch)


class _End:
    """Marks the end of the batches, which `None` does not."""


_END = _End()
