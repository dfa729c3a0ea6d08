"""Batches that were saved, carried out by a worker that holds them; of any source, in any order."""

from collections.abc import Iterator
from dataclasses import dataclass

from indexing.embedding.embedder import Embedder
from indexing.index.protocols import IndexWriter
from indexing.ingestion.batching import Held, document_id, item_of
from indexing.ingestion.executor import Plan, Progresses, Writing
from indexing.ingestion.ledger import Ledger
from indexing.ingestion.planner import planned
from indexing.ingestion.progress import Meter, Tally

_NOTHING_YET = Plan(())


@dataclass(frozen=True, slots=True)
class Carrying:
    embedder: Embedder
    writer: IndexWriter
    ledger: Ledger

    def carry_out(self, coming: Iterator[Held | None], meter: Meter, tally: Tally) -> Progresses:
        """Each batch to its end: index, ledger, and that it is finished. `None`: there is none just now.

        While two are embedded, the next is asked for and the last is written. No two that speak of one
        document may be held at once.

        Raises:
            LostLease: one of them is another worker's by now; the ledger knows nothing of it.
            TemporarilyUnavailableError, ActionRequiredError: the embedder's or the index's.
        """
        writing = Writing(self.embedder, self.writer, self.ledger)
        yield from writing.carry_out_ahead(self._plans(coming, tally), meter, tally)

    def _plans(self, coming: Iterator[Held | None], tally: Tally) -> Iterator[Plan]:
        while True:
            with tally.timed("read"):
                held = next(coming, _END)
            if isinstance(held, _End):
                return
            yield _NOTHING_YET if held is None else self._plan(held, tally)

    def _plan(self, held: Held, tally: Tally) -> Plan:
        entries = self.ledger.entries([document_id(change) for change in held.changes])
        with tally.timed("chunk"):
            parts = tuple(
                planned(
                    change,
                    entries.get(document_id(change)),
                    held.source,
                    self.embedder,
                    held.number,
                )
                for change in held.changes
            )
        return Plan(parts, item=item_of(held.changes), held=held)


class _End:
    """No batch will come any more."""


_END = _End()
