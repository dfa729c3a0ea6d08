"""Carries out plans: embeds them, writes the index, then saves the ledger.

A worker plans the batches that it has claimed, of any source and in any order. While two plans are embedded,
the next plan is made and the last one is written, each in a thread of its own. A model leaves few cores idle,
and chunking or writing needs few.
"""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import accumulate
from typing import Protocol, TypeAlias

import numpy as np

from connectors.access import NOBODY, Access
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.index.protocols import (
    Amend,
    IndexChange,
    IndexWriter,
    Replace,
    SelectedDocument,
)
from indexing.ingestion.batching import ClaimedBatch, describe_last_change, document_id
from indexing.ingestion.ledger import (
    BatchFinished,
    Failed,
    LeaseLostError,
    Ledger,
    LedgerChange,
    SetAssignment,
    Stored,
)
from indexing.ingestion.planner import EmbedStep, Step, WriteStep, plan_change
from indexing.ingestion.progress import (
    Embedding,
    EmbeddingWatch,
    Outcome,
    Progress,
    ProgressMeter,
    RunCounters,
)
from indexing.runtime import malloc

ProgressSteps: TypeAlias = Generator[Progress, None, None]
"""Yields progress while the work goes on; closing it stops the work between two plans."""

_MAX_TEXTS = 64
"""Texts of one call of the embedder: a second or two of work, after which it can be stopped. More at once are
embedded no faster."""
_EMBEDDING_THREADS = 2
"""When one plan ends, the other keeps the cores, or a remote endpoint, busy."""
_MAX_OPEN_PLANS = _EMBEDDING_THREADS + 1

_Record: TypeAlias = Callable[[Sequence[EmbedStep], int], None]
"""Called with the place of each passage from which on the next ones are embedded."""


@dataclass(frozen=True, slots=True)
class Plan:
    parts: tuple[Step, ...]
    """At most one per document. Empty while there is nothing to do yet."""
    item: str | None = None
    """Shown to people while the plan is carried out."""
    batch: ClaimedBatch | None = None
    """The batch that the plan was made of, if it was made of one."""
    embedded: int = 0
    """Passages that were embedded for the plan; several may have the same text."""


class LedgerWriter(Protocol):
    """The methods of `indexing.ingestion.ledger.Ledger` that an executor calls."""

    def save(self, changes: Sequence[LedgerChange]) -> None: ...

    def save_conjunctions(self, granted: Collection[Access]) -> None: ...

    def mark_access_pending(self, ids: Sequence[str]) -> None: ...

    def assign_sets(self, documents: Sequence[SelectedDocument]) -> SetAssignment: ...

    def sets_version(self) -> int: ...


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
            embedded = self._embed(plan, EmbeddingWatch())
        self._write(embedded, counters)

    def run_pipelined(
        self, plans: Iterator[Plan], meter: ProgressMeter, counters: RunCounters
    ) -> ProgressSteps:
        """Carry out the plans as `run` does, with overlapping stages.

        Plans are written in their order, and none after one that failed. Closing the generator gives up what
        is being embedded.
        """
        malloc.limit_arenas()
        trimmer = malloc.MemoryTrimmer()
        with (
            ThreadPoolExecutor(1, "planner") as planner,
            ThreadPoolExecutor(_EMBEDDING_THREADS, "embedder") as embedder,
            ThreadPoolExecutor(1, "writer") as write_thread,
            EmbeddingWatch() as watch,
        ):
            open_plans: deque[Future[Plan]] = deque()
            coming = planner.submit(next, plans, None)
            last: Future[Plan] | None = None
            item: str | None = None
            while (plan := (yield from watch.follow(coming, meter))) is not None:
                coming = planner.submit(next, plans, None)
                item = plan.item or item
                yield meter.advance(item)
                embedding = embedder.submit(self._embed, plan, watch)
                last = write_thread.submit(self._write_in_order, embedding, last, counters)
                open_plans.append(last)
                while open_plans and (open_plans[0].done() or len(open_plans) == _MAX_OPEN_PLANS):
                    written = yield from watch.follow(open_plans.popleft(), meter)
                    yield _advance(meter, written)
                trimmer.trim_if_due()
            while open_plans:
                written = yield from watch.follow(open_plans.popleft(), meter)
                yield _advance(meter, written)

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
            counters.add_failure(failed.document_id, failed.item, failed.reason)

    def _write_index(self, changes: Sequence[IndexChange]) -> None:
        # Before the index: a derived token that is not saved could be given to nobody.
        if conjunctions := {each for each in map(_access_of, changes) if each.is_conjunction}:
            self.ledger.save_conjunctions(conjunctions)
        if amended := [change.document_id for change in changes if isinstance(change, Amend)]:
            self.ledger.mark_access_pending(amended)
        stale = self._write_in_sets(changes) if changes else ()
        if stale:
            raise TemporarilyUnavailableError(
                f"The index contains newer versions than the ledger of {len(stale)} documents, for example"
                f" {stale[0]}. The next sync repairs this.",
                retry_after=timedelta(seconds=1),
            )

    def _write_in_sets(self, changes: Sequence[IndexChange]) -> tuple[str, ...]:
        """Write the changes, new versions in their document sets; return the ids of stale ones.

        A set may be changed meanwhile, and its documents updated before the index has these. Whoever sees the newer
        rules after the write updates these; who does not has written before the others were looked for.
        """
        documents = [change for change in changes if isinstance(change, Replace) and change.chunks]
        if not documents:
            return self.writer.write(changes).stale
        selected = list(map(_to_selected, documents))
        assigned = self.ledger.assign_sets(selected)
        stale = self.writer.write(_put_in_sets(each, assigned) for each in changes).stale
        generations = {each.document_id: each.generation for each in documents}
        while self.ledger.sets_version() != assigned.version:
            assigned = self.ledger.assign_sets(selected)
            self.writer.write(
                Amend(document_id=each, sets=sets, up_to=generations[each])
                for each, sets in assigned.labels.items()
            )
        return stale

    def _embed(self, plan: Plan, watch: EmbeddingWatch) -> Plan:
        """Replace the plan's embed steps by write steps."""
        to_embed = [part for part in plan.parts if isinstance(part, EmbedStep)]
        steps = [part for part in plan.parts if isinstance(part, WriteStep)]
        batch = plan.batch.number if plan.batch else None

        def record(steps: Sequence[EmbedStep], passage: int) -> None:
            watch.record(locate(steps, passage, batch))

        embedded = list(self._embed_steps(to_embed, record))
        return replace(plan, parts=(*embedded, *steps), embedded=_count_chunks(embedded))

    def _embed_steps(self, steps: Sequence[EmbedStep], record: "_Record") -> Iterator[WriteStep]:
        """Embed the chunks of all documents together, and one by one only if the embedder refuses."""
        try:
            vectors = self._embed_texts(steps, record)
        except ValueError as error:
            if len(steps) == 1:
                yield WriteStep((steps[0].to_failure(error),))
                return
            for step in steps:
                yield from self._embed_steps([step], record)
            return
        start = 0
        for step in steps:
            end = start + len(step.chunks)
            yield _to_write_step(step, vectors[start:end])
            start = end

    def _embed_texts(self, steps: Sequence[EmbedStep], record: "_Record") -> Vectors:
        """Embed each text once: a document that repeats itself has thousands of chunks with the same text."""
        texts = [chunk.embedded_text for step in steps for chunk in step.chunks]
        places: dict[str, int] = {}
        for place, text in enumerate(texts):
            places.setdefault(text, place)
        distinct = list(places)
        found = [np.empty((0, self.embedder.identity.dimension), dtype=np.float32)]
        for start in range(0, len(distinct), _MAX_TEXTS):
            record(steps, places[distinct[start]])
            found.append(self.embedder.embed_passages(distinct[start : start + _MAX_TEXTS]))
        vectors = np.concatenate(found)
        if len(distinct) == len(texts):
            return vectors
        numbers = {text: number for number, text in enumerate(distinct)}
        return vectors[[numbers[text] for text in texts]]


def _access_of(change: IndexChange) -> Access:
    """Return the access that a change writes; nobody's if it writes none."""
    match change:
        case Replace(chunks=(first, *_)):
            return first.access
        case Amend(access=Access() as access):
            return access
        case _:
            return NOBODY


def _to_selected(change: Replace) -> SelectedDocument:
    first = change.chunks[0]
    return SelectedDocument(change.document_id, first.tags, first.sets)


def _put_in_sets(change: IndexChange, assigned: SetAssignment) -> IndexChange:
    if not isinstance(change, Replace):
        return change
    document_id, nothing = change.document_id, frozenset[str]()
    sets = assigned.labels.get(document_id, nothing)
    projects = assigned.projects.get(document_id, nothing)
    personas = assigned.personas.get(document_id, nothing)
    if not (sets or projects or personas):
        return change
    chunks = (
        replace(chunk, sets=sets, projects=projects, personas=personas) for chunk in change.chunks
    )
    return replace(change, chunks=tuple(chunks))


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
        counts["embedded"] = plan.embedded
        yield BatchFinished(
            batch=plan.batch.number, fence=plan.batch.fence, counts=counts, item=plan.item
        )


def _advance(meter: ProgressMeter, plan: Plan) -> Progress:
    return meter.advance(plan.item, len(plan.parts))


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


def locate(steps: Sequence[EmbedStep], passage: int, batch: int | None) -> Embedding:
    """Return the step whose passage is at this place among those of all steps."""
    ends = list(accumulate(len(step.chunks) for step in steps))
    number = bisect_right(ends, passage)
    total = len(steps[number].chunks)
    done = passage - (ends[number] - total)
    return Embedding(item=steps[number].item, done=done, total=total, batch=batch)
