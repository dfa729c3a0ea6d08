"""Batches carried out by a worker that holds them, or believes that it does."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Barrier

import pytest

from connectors.access import Access
from connectors.connector import Deletion, Unreadable
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import IndexChange, Replace, Written
from indexing.ingestion.batching import ClaimedBatch, DocumentChange
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.ledger import LeaseLostError
from indexing.ingestion.listings import DeletionGuard, DeletionNeedsApprovalError
from indexing.ingestion.progress import ProgressMeter, RunCounters
from tests.support.ledger import MemoryLedger
from tests.support.memory_index_writer import MemoryIndexWriter
from tests.support.stepped_embedder import SteppedEmbedder
from tests.support.store import document

EMBEDDER = HashingEmbedder()


@dataclass
class Desk:
    embedder: Embedder = EMBEDDER
    writer: MemoryIndexWriter = field(default_factory=lambda: MemoryIndexWriter(EMBEDDER.dimension))
    ledger: MemoryLedger = field(default_factory=lambda: MemoryLedger("desk", "web"))
    counters: RunCounters = field(default_factory=RunCounters)

    def run(self, *batches: ClaimedBatch | None) -> None:
        self.run_all(iter(batches))

    def run_all(self, batches: Iterator[ClaimedBatch | None]) -> None:
        worker = BatchWorker(self.embedder, self.writer, self.ledger)
        for _ in worker.run(batches, ProgressMeter("desk", "indexing"), self.counters):
            pass


def claimed(
    number: int, changes: Sequence[DocumentChange], source: str = "desk", *, current: bool = True
) -> ClaimedBatch:
    return ClaimedBatch(
        number=number,
        fence=1,
        source=source,
        changes=tuple(changes),
        is_current=lambda: current,
    )


def test_each_batch_is_finished_with_what_came_of_it() -> None:
    desk = Desk()
    bad = Unreadable(document_id="desk:c", item="c.pdf", reason="it is encrypted")

    def coming() -> Iterator[ClaimedBatch | None]:
        yield claimed(1, [document("desk:a"), document("desk:b"), bad])
        yield None
        yield claimed(2, [document("web:a")], source="web")
        while not desk.ledger.finished:
            yield None  # The first speaks of what the third speaks of.
        yield claimed(3, [Deletion("desk:a")])

    desk.run_all(coming())
    first, second, third = desk.ledger.finished
    assert [(each.batch, each.fence) for each in (first, second, third)] == [(1, 1), (2, 1), (3, 1)]
    counted = {name: count for name, count in first.counts.items() if count}
    assert counted == {"documents": 2, "chunks": 2, "embedded": 2}
    assert (first.item, third.item) == ("c.pdf", "desk:a")
    assert {name: count for name, count in third.counts.items() if count} == {"deleted": 1}
    assert desk.writer.held.keys() == {"desk:b", "web:a"}


@dataclass(frozen=True)
class MeetingEmbedder(HashingEmbedder):
    """Embeds nothing before it is called twice."""

    both: Barrier = field(default_factory=lambda: Barrier(2))

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.both.wait(timeout=10)
        return super().embed_passages(texts)


def test_two_batches_are_embedded_at_once() -> None:
    desk = Desk(embedder=MeetingEmbedder())
    desk.run(*(claimed(number, [document(f"desk:{number}")]) for number in range(1, 5)))
    assert [each.batch for each in desk.ledger.finished] == [1, 2, 3, 4]


@dataclass(frozen=True)
class SlowEmbedder(HashingEmbedder):
    """Takes longer for each call than the interval between reports."""

    calls: list[int] = field(default_factory=list)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(len(texts))
        time.sleep(0.6)
        return super().embed_passages(texts)


LONG = "\n\n".join(f"Paragraph {number}. " + "Leave is 25 days. " * 40 for number in range(360))


@dataclass(frozen=True)
class NotingEmbedder(HashingEmbedder):
    texts: list[str] = field(default_factory=list)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.texts.extend(texts)
        return super().embed_passages(texts)


def test_a_text_that_stands_in_many_chunks_is_embedded_once() -> None:
    embedder = NotingEmbedder(max_tokens=32)
    desk = Desk(embedder=embedder)
    desk.run(claimed(1, [document("desk:a", text=f"{'word ' * 20_000}Leave is 25 days.")]))
    change = desk.writer.held["desk:a"]
    texts = [chunk.embedded_text for chunk in change.chunks]
    assert len(texts) > 500
    assert len(embedder.texts) == len(set(texts)) < 10
    assert (change.vectors == HashingEmbedder(max_tokens=32).embed_passages(texts)).all()
    assert desk.counters.counts["embedded"] == len(texts)


def test_it_is_shown_what_is_embedded_and_how_far_that_is() -> None:
    embedder = SteppedEmbedder()
    desk = Desk(embedder=embedder)
    changes = [document("desk:a"), document("desk:b", text=LONG)]
    worker = BatchWorker(embedder, desk.writer, desk.ledger)
    meter = ProgressMeter("desk", "indexing")
    embedded = []
    for step in worker.run(iter([claimed(1, changes)]), meter, desk.counters):
        if step.embedding:
            embedded.append(step.embedding)
            embedder.proceed()
    assert {each.item for each in embedded[1:]} == {"About desk:b"}
    assert {each.batch for each in embedded} == {1}
    places = [each.done for each in embedded[1:]]
    assert places == sorted(places)
    assert len(set(places)) >= 3
    assert embedded[-1].total == len(desk.writer.held["desk:b"].chunks)


def test_what_is_embedded_for_nobody_is_given_up_within_a_call_of_the_embedder() -> None:
    embedder = SlowEmbedder()
    desk = Desk(embedder=embedder)
    worker = BatchWorker(embedder, desk.writer, desk.ledger)
    batch = claimed(1, [document("desk:b", text=LONG)])
    meter = ProgressMeter("desk", "indexing")
    with closing(worker.run(iter([batch]), meter, desk.counters)) as steps:
        next(step for step in steps if step.embedding)
        calls = len(embedder.calls)
    assert len(embedder.calls) <= calls + 1
    assert (desk.writer.log, desk.ledger.rows) == ([], {})


class FullIndexWriter(MemoryIndexWriter):
    def write(self, changes: Iterable[IndexChange]) -> Written:
        batch = list(changes)
        if any(change.document_id == "desk:2" for change in batch):
            raise TemporarilyUnavailableError("The disk is full.", retry_after=timedelta(minutes=1))
        return super().write(batch)


def test_nothing_is_written_after_a_batch_that_could_not_be() -> None:
    desk = Desk(writer=FullIndexWriter(EMBEDDER.dimension))
    with pytest.raises(TemporarilyUnavailableError, match="full"):
        desk.run(*(claimed(number, [document(f"desk:{number}")]) for number in range(1, 5)))
    assert desk.writer.held.keys() == {"desk:1"}
    assert [each.batch for each in desk.ledger.finished] == [1]


def test_what_a_batch_writes_is_no_older_than_its_number() -> None:
    """So the version of a later batch is newer than anything that this one may write late."""
    desk = Desk()
    desk.run(claimed(7, [document("desk:a")]))
    assert desk.writer.held["desk:a"].generation == 7
    desk.run(claimed(9, [document("desk:a", text="Leave is 30 days.")]))
    assert desk.writer.held["desk:a"].generation == 9


def test_a_batch_that_was_taken_over_is_not_written() -> None:
    desk = Desk()
    with pytest.raises(LeaseLostError):
        desk.run(claimed(1, [document("desk:a")], current=False))
    assert (desk.writer.log, desk.ledger.rows, desk.ledger.finished) == ([], {}, [])


@pytest.mark.parametrize(
    "late",
    [
        Deletion("desk:a"),
        document("desk:a", access=Access.to(["group:hr"])),
        document("desk:a", "2"),
    ],
    ids=["a deletion", "readers", "a version"],
)
def test_a_worker_that_stalls_before_the_index_undoes_nothing_of_what_came_after(
    late: DocumentChange,
) -> None:
    """It held the lease when it checked; before it wrote, another worker had done this batch and a later one."""
    desk = Desk()
    desk.run(claimed(4, [document("desk:a")]))

    def others_go_on() -> bool:
        desk.run(claimed(5, [late]), claimed(6, [document("desk:a", text="Leave is 30 days.")]))
        return True

    stalled = ClaimedBatch(
        number=5, fence=1, source="desk", changes=(late,), is_current=others_go_on
    )
    with pytest.raises(TemporarilyUnavailableError, match="newer versions"):
        desk.run(stalled)
    assert desk.writer.held["desk:a"].generation == 6
    assert [each.batch for each in desk.ledger.finished] == [4, 5, 6]


def test_a_batch_that_is_carried_out_twice_is_written_once_more_and_the_same() -> None:
    """As after a worker was killed between index and ledger."""
    desk, again = Desk(), Desk()
    desk.run(claimed(4, [document("desk:a")]))
    again.writer = desk.writer
    before = desk.writer.held["desk:a"]
    again.run(claimed(4, [document("desk:a")]))
    after = again.writer.held["desk:a"]
    assert isinstance(after, Replace)
    assert (after.generation, after.chunks) == (before.generation, before.chunks)


@pytest.mark.parametrize(
    ("found", "accepted", "asks"),
    [
        ((100, 50, 50), 0, False),  # not more than fifty
        ((100, 49, 51), 0, True),  # more than fifty, and than a fifth
        ((1000, 800, 200), 0, False),  # not more than a fifth
        ((1000, 799, 201), 0, True),
        ((1000, 799, 201), 201, False),  # so many were accepted
        ((1000, 799, 201), 200, True),
        ((50, 1, 49), 0, True),  # fewer than fifty, but more than half
        ((50, 25, 25), 0, False),  # not more than half
        ((50, 24, 26), 0, True),
        ((6, 1, 5), 0, False),  # not more than five
        ((7, 1, 6), 0, True),
        ((3, 0, 3), 0, True),  # nothing is listed at all
        ((3, 0, 3), 3, False),
        ((0, 0, 0), 0, False),  # nothing was there before
    ],
)
def test_too_many_missing_documents_need_approval(
    found: tuple[int, int, int], accepted: int, *, asks: bool
) -> None:
    size, listed, missing = found
    guard = DeletionGuard(source="desk", held=size, listed=listed, missing=missing)
    if asks:
        with pytest.raises(DeletionNeedsApprovalError, match="A decision is needed"):
            guard.check(accepted)
    else:
        guard.check(accepted)
