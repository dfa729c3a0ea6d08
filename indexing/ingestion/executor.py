"""Plans carried out: embedded, written to the index, then told to the ledger.

While two plans are embedded, the next is made and the last is written, each in a thread of its own:
the cores that a model leaves idle are few, and so are those that a cut or a write needs.
"""

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol, TypeAlias

import numpy as np

from connectors.batched import portions
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.index.protocols import Amend, IndexChange, IndexWriter, Replace
from indexing.ingestion.batching import Held
from indexing.ingestion.ledger import Failed, Finished, LedgerChange, LostLease, Stored
from indexing.ingestion.planner import Prepared, Step
from indexing.ingestion.progress import Meter, Outcome, Progress, Tally
from indexing.runtime import malloc

Progresses: TypeAlias = Generator[Progress, None, None]
"""Told as the work goes on; closing it stops the work between two plans."""

_MOST_TEXTS = 1024
_EMBEDDING = 2
"""Plans at once: when one comes to its end, the other keeps the cores busy, or the endpoint far away."""
_AHEAD = _EMBEDDING + 1
"""Plans that were begun and are not saved."""


@dataclass(frozen=True, slots=True)
class Plan:
    parts: tuple[Prepared | Step, ...]
    """No two of the same document. None at all means that there is nothing to do yet."""
    item: str | None = None
    """What a person is shown while it is carried out."""
    held: Held | None = None
    """The batch that this plan is of, where it is one that others may take over."""
    embedded: int = 0
    """Texts that the embedder made vectors of for it."""


class Noting(Protocol):
    """What is told of the writing; of an `indexing.ingestion.ledger.Ledger`, these two methods."""

    def save(self, changes: Sequence[LedgerChange]) -> None: ...

    def unsettle(self, ids: Sequence[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Writing:
    embedder: Embedder
    writer: IndexWriter
    ledger: Noting

    def carry_out(self, plan: Plan, tally: Tally) -> None:
        """Raises TemporarilyUnavailableError, ActionRequiredError: the embedder's or the index's. The ledger is as before."""
        with tally.timed("embed"):
            embedded = self._embedded(plan)
        self._write(embedded, tally)

    def carry_out_ahead(self, plans: Iterator[Plan], meter: Meter, tally: Tally) -> Progresses:
        """The plans one after the other, as `carry_out`, but overlapping.

        No plan is written before all earlier ones have been saved.
        """
        malloc.limit_arenas()
        trimmer = malloc.MemoryTrimmer()
        with (
            ThreadPoolExecutor(1, "planner") as planner,
            ThreadPoolExecutor(_EMBEDDING, "embedder") as embedder,
            ThreadPoolExecutor(1, "writer") as write_thread,
        ):
            begun: deque[Future[Plan]] = deque()
            coming = planner.submit(next, plans, None)
            last: Future[Plan] | None = None
            item: str | None = None
            while (plan := coming.result()) is not None:
                coming = planner.submit(next, plans, None)
                item = plan.item or item
                yield meter.progress(item)
                embedding = embedder.submit(self._embedded, plan)
                last = write_thread.submit(self._write_in_turn, embedding, last, tally)
                begun.append(last)
                while begun and (begun[0].done() or len(begun) == _AHEAD):
                    yield _saved(begun.popleft().result(), meter)
                trimmer.trim_if_due()
            while begun:
                yield _saved(begun.popleft().result(), meter)

    def _write_in_turn(
        self, embedding: Future[Plan], before: Future[Plan] | None, tally: Tally
    ) -> Plan:
        """Raises what the plan before was not written for, too."""
        if before:
            before.result()
        with tally.timed("embed"):
            plan = embedding.result()
        self._write(plan, tally)
        return plan

    def _write(self, plan: Plan, tally: Tally) -> None:
        """First the index, then the ledger."""
        steps = [part for part in plan.parts if isinstance(part, Step)]
        saved: list[LedgerChange] = [change for step in steps for change in step.then]
        saved += _finished(plan, steps)
        if plan.held and not plan.held.is_still():
            raise LostLease(plan.held.number)
        tally.counts["embedded"] += plan.embedded
        with tally.timed("write"):
            self._write_index([step.first for step in steps if step.first])
            if saved:
                self.ledger.save(saved)
        for outcome, count in _outcomes(steps).items():
            tally.counts[outcome] += count
        for failed in _failures(steps):
            tally.failed(failed.item, failed.reason)

    def _write_index(self, changes: Sequence[IndexChange]) -> None:
        if amended := [change.document_id for change in changes if isinstance(change, Amend)]:
            self.ledger.unsettle(amended)
        stale = self.writer.write(changes).stale if changes else ()
        if stale:
            raise TemporarilyUnavailableError(
                f"The index holds newer versions of {len(stale)} documents than the ledger, of"
                f" {stale[0]} for one. The next sync repairs that.",
                retry_after=timedelta(seconds=1),
            )

    def _embedded(self, plan: Plan) -> Plan:
        """The same plan, with nothing left to embed."""
        prepared = [part for part in plan.parts if isinstance(part, Prepared)]
        steps = [part for part in plan.parts if isinstance(part, Step)]
        made = list(self._steps(prepared))
        return replace(plan, parts=(*made, *steps), embedded=_chunks(made))

    def _steps(self, prepared: Sequence[Prepared]) -> Iterator[Step]:
        """All chunks of all documents together; one by one only where the embedder refuses."""
        try:
            vectors = self._vectors(prepared)
        except ValueError as error:
            if len(prepared) == 1:
                yield Step((prepared[0].failed(error),))
                return
            for part in prepared:
                yield from self._steps([part])
            return
        start = 0
        for part in prepared:
            end = start + len(part.chunks)
            yield _step(part, vectors[start:end])
            start = end

    def _vectors(self, prepared: Iterable[Prepared]) -> Vectors:
        texts = [chunk.embedded_text for part in prepared for chunk in part.chunks]
        found = [
            np.empty((0, self.embedder.identity.dimension), dtype=np.float32),
            *(self.embedder.embed_passages(some) for some in portions(texts, _MOST_TEXTS)),
        ]
        return np.concatenate(found)


def _step(part: Prepared, vectors: Vectors) -> Step:
    if not np.isfinite(vectors).all():
        return Step((part.failed(ValueError("the embedding model gave no vector for it")),))
    written = Replace(
        document_id=part.document_id,
        generation=part.then.generation,
        content_hash=part.then.content_hash,
        chunks=part.chunks,
        vectors=vectors,
    )
    return Step((part.then,), written, "documents" if isinstance(part.then, Stored) else "restored")


def _outcomes(steps: Sequence[Step]) -> dict[Outcome, int]:
    counts: Counter[Outcome] = Counter(step.outcome for step in steps if step.outcome)
    counts["chunks"] = _chunks(steps)
    return dict(counts)


def _chunks(steps: Sequence[Step]) -> int:
    return sum(len(step.first.chunks) for step in steps if isinstance(step.first, Replace))


def _failures(steps: Sequence[Step]) -> list[Failed]:
    return [change for step in steps for change in step.then if isinstance(change, Failed)]


def _finished(plan: Plan, steps: Sequence[Step]) -> Iterator[Finished]:
    if plan.held is not None:
        counts: dict[str, int] = dict(_outcomes(steps).items())
        counts |= {"embedded": plan.embedded, "unreadable": len(_failures(steps))}
        yield Finished(batch=plan.held.number, fence=plan.held.fence, counts=counts, item=plan.item)


def _saved(plan: Plan, meter: Meter) -> Progress:
    return meter.progress(plan.item, len(plan.parts))
