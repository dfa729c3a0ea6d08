"""Carries out plans: embeds them, writes the index, then saves the ledger.

While two plans are embedded, the next plan is made and the last one is written, each in a thread of its own.
A model leaves few cores idle, and chunking or writing needs few.
"""

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol, TypeAlias

import numpy as np

from connectors.batched import batched
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.index.protocols import Amend, IndexChange, IndexWriter, Replace
from indexing.ingestion.batching import ClaimedBatch
from indexing.ingestion.ledger import BatchFinished, Failed, LeaseLostError, LedgerChange, Stored
from indexing.ingestion.planner import EmbedStep, Step, WriteStep
from indexing.ingestion.progress import Outcome, Progress, ProgressMeter, RunCounters
from indexing.runtime import malloc

ProgressSteps: TypeAlias = Generator[Progress, None, None]
"""Yields progress while the work goes on; closing it stops the work between two plans."""

_MAX_TEXTS = 1024
"""Texts of one call of the embedder."""
_EMBEDDING_THREADS = 2
"""When one plan ends, the other keeps the cores, or a remote endpoint, busy."""
_MAX_OPEN_PLANS = _EMBEDDING_THREADS + 1


@dataclass(frozen=True, slots=True)
class Plan:
    parts: tuple[Step, ...]
    """At most one per document. Empty while there is nothing to do yet."""
    item: str | None = None
    """Shown to people while the plan is carried out."""
    batch: ClaimedBatch | None = None
    """The batch that the plan was made of, if it was made of one."""
    embedded: int = 0
    """Texts that were embedded for the plan."""


class LedgerWriter(Protocol):
    """The methods of `indexing.ingestion.ledger.Ledger` that an executor calls."""

    def save(self, changes: Sequence[LedgerChange]) -> None: ...

    def mark_access_pending(self, ids: Sequence[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Executor:
    embedder: Embedder
    writer: IndexWriter
    ledger: LedgerWriter

    def run(self, plan: Plan, counters: RunCounters) -> None:
        """Carry out one plan.

        Raises:
            TemporarilyUnavailableError, ActionRequiredError: of the embedder or the index; the ledger is
                unchanged.
        """
        with counters.timed("embed"):
            embedded = self._embed(plan)
        self._write(embedded, counters)

    def run_pipelined(
        self, plans: Iterator[Plan], meter: ProgressMeter, counters: RunCounters
    ) -> ProgressSteps:
        """Carry out the plans as `run` does, with overlapping stages.

        Plans are written in their order, and none after one that failed.
        """
        malloc.limit_arenas()
        trimmer = malloc.MemoryTrimmer()
        with (
            ThreadPoolExecutor(1, "planner") as planner,
            ThreadPoolExecutor(_EMBEDDING_THREADS, "embedder") as embedder,
            ThreadPoolExecutor(1, "writer") as write_thread,
        ):
            open_plans: deque[Future[Plan]] = deque()
            coming = planner.submit(next, plans, None)
            last: Future[Plan] | None = None
            item: str | None = None
            while (plan := coming.result()) is not None:
                coming = planner.submit(next, plans, None)
                item = plan.item or item
                yield meter.advance(item)
                embedding = embedder.submit(self._embed, plan)
                last = write_thread.submit(self._write_in_order, embedding, last, counters)
                open_plans.append(last)
                while open_plans and (open_plans[0].done() or len(open_plans) == _MAX_OPEN_PLANS):
                    yield _advance(meter, open_plans.popleft().result())
                trimmer.trim_if_due()
            while open_plans:
                yield _advance(meter, open_plans.popleft().result())

    def _write_in_order(
        self, embedding: Future[Plan], before: Future[Plan] | None, counters: RunCounters
    ) -> Plan:
        if before:
            # Raises what the plan before failed with, so that nothing is written after it.
            before.result()
        with counters.timed("embed"):
            plan = embedding.result()
        self._write(plan, counters)
        return plan

    def _write(self, plan: Plan, counters: RunCounters) -> None:
        steps = [part for part in plan.parts if isinstance(part, WriteStep)]
        changes = [change for step in steps for change in step.ledger_changes]
        changes += _finish_batch(plan, steps)
        # Saves most of a lost batch's work; the ledger checks the fencing token again.
        if plan.batch and not plan.batch.is_current():
            raise LeaseLostError(plan.batch.number)
        counters.counts["embedded"] += plan.embedded
        with counters.timed("write"):
            # In this order: after a crash the index is ahead of the ledger, and the batch is repeated.
            self._write_index([step.index_change for step in steps if step.index_change])
            if changes:
                self.ledger.save(changes)
        for outcome, count in _count_outcomes(steps).items():
            counters.counts[outcome] += count
        for failed in _collect_failures(steps):
            counters.add_failure(failed.item, failed.reason)

    def _write_index(self, changes: Sequence[IndexChange]) -> None:
        if amended := [change.document_id for change in changes if isinstance(change, Amend)]:
            self.ledger.mark_access_pending(amended)
        stale = self.writer.write(changes).stale if changes else ()
        if stale:
            raise TemporarilyUnavailableError(
                f"The index holds newer versions than the ledger of {len(stale)} documents, for example"
                f" {stale[0]}. The next sync repairs this.",
                retry_after=timedelta(seconds=1),
            )

    def _embed(self, plan: Plan) -> Plan:
        """Replace the plan's embed steps by write steps."""
        to_embed = [part for part in plan.parts if isinstance(part, EmbedStep)]
        steps = [part for part in plan.parts if isinstance(part, WriteStep)]
        embedded = list(self._embed_steps(to_embed))
        return replace(plan, parts=(*embedded, *steps), embedded=_count_chunks(embedded))

    def _embed_steps(self, steps: Sequence[EmbedStep]) -> Iterator[WriteStep]:
        """Embed the chunks of all documents together, and one by one only if the embedder refuses."""
        try:
            vectors = self._embed_texts(steps)
        except ValueError as error:
            if len(steps) == 1:
                yield WriteStep((steps[0].to_failure(error),))
                return
            for step in steps:
                yield from self._embed_steps([step])
            return
        start = 0
        for step in steps:
            end = start + len(step.chunks)
            yield _to_write_step(step, vectors[start:end])
            start = end

    def _embed_texts(self, steps: Iterable[EmbedStep]) -> Vectors:
        texts = [chunk.embedded_text for step in steps for chunk in step.chunks]
        found = [
            np.empty((0, self.embedder.identity.dimension), dtype=np.float32),
            *(self.embedder.embed_passages(some) for some in batched(texts, _MAX_TEXTS)),
        ]
        return np.concatenate(found)


def _to_write_step(step: EmbedStep, vectors: Vectors) -> WriteStep:
    change = step.ledger_change
    if not np.isfinite(vectors).all():
        error = ValueError("the embedding model returned no valid vector for it")
        return WriteStep((step.to_failure(error),))
    written = Replace(
        document_id=step.document_id,
        generation=change.generation,
        content_hash=change.content_hash,
        chunks=step.chunks,
        vectors=vectors,
    )
    return WriteStep((change,), written, "documents" if isinstance(change, Stored) else "restored")


def _count_outcomes(steps: Sequence[WriteStep]) -> dict[Outcome, int]:
    counts: Counter[Outcome] = Counter(step.outcome for step in steps if step.outcome)
    counts["chunks"] = _count_chunks(steps)
    return dict(counts)


def _count_chunks(steps: Sequence[WriteStep]) -> int:
    changes = (step.index_change for step in steps)
    return sum(len(change.chunks) for change in changes if isinstance(change, Replace))


def _collect_failures(steps: Sequence[WriteStep]) -> list[Failed]:
    return [
        change for step in steps for change in step.ledger_changes if isinstance(change, Failed)
    ]


def _finish_batch(plan: Plan, steps: Sequence[WriteStep]) -> Iterator[BatchFinished]:
    if plan.batch is not None:
        counts: dict[str, int] = dict(_count_outcomes(steps).items())
        counts |= {"embedded": plan.embedded, "unreadable": len(_collect_failures(steps))}
        yield BatchFinished(
            batch=plan.batch.number, fence=plan.batch.fence, counts=counts, item=plan.item
        )


def _advance(meter: ProgressMeter, plan: Plan) -> Progress:
    return meter.advance(plan.item, len(plan.parts))
