"""What a run has done so far, and what it is doing now."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

Outcome: TypeAlias = Literal[
    "documents", "chunks", "embedded", "unchanged", "amended", "deleted", "restored"
]
TimedStage: TypeAlias = Literal["read", "chunk", "embed", "write"]
Stage: TypeAlias = Literal["repairing", "indexing", "listing", "removing"]

MOST_NAMED = 100


@dataclass(frozen=True, slots=True)
class UnreadableItem:
    item: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    documents: int = 0
    """Indexed because they were new or had changed."""
    chunks: int = 0
    """Written, of these and of the restored ones."""
    embedded: int = 0
    """Texts that the embedder made vectors of."""
    unchanged: int = 0
    """Read again, and found to be as they were."""
    amended: int = 0
    """Shown to other readers, without new vectors."""
    deleted: int = 0
    restored: int = 0
    """Put back into an index that had lost them, from the kept sections."""
    unreadable: tuple[UnreadableItem, ...] = ()
    """The first hundred."""
    unreadable_count: int = 0
    seconds: Mapping[TimedStage, float] = field(default_factory=dict)
    """`read` is the time spent waiting for the source, and `embed` for the embedder, while others work on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    source: str
    stage: Stage
    item: str | None
    """What was worked on last."""
    done: int
    """Documents of this stage."""
    total: int | None
    rate: float
    """Documents of this stage in a second, since it began."""


class Tally:
    """Counts and times a run as it goes on; each figure is changed by one thread at a time."""

    def __init__(self) -> None:
        self.counts: dict[Outcome, int] = dict.fromkeys(get_args(Outcome), 0)
        self.seconds: dict[TimedStage, float] = dict.fromkeys(get_args(TimedStage), 0.0)
        self.unreadable_count = 0
        self._unreadable: list[UnreadableItem] = []

    def failed(self, item: str, reason: str) -> None:
        self.unreadable_count += 1
        if len(self._unreadable) < MOST_NAMED:
            self._unreadable.append(UnreadableItem(item, reason))

    @contextmanager
    def timed(self, stage: TimedStage) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - began

    def report(self) -> Report:
        return Report(
            documents=self.counts["documents"],
            chunks=self.counts["chunks"],
            embedded=self.counts["embedded"],
            unchanged=self.counts["unchanged"],
            amended=self.counts["amended"],
            deleted=self.counts["deleted"],
            restored=self.counts["restored"],
            unreadable=tuple(self._unreadable),
            unreadable_count=self.unreadable_count,
            seconds=dict(self.seconds),
        )


class Meter:
    """Makes the progress of one stage."""

    def __init__(self, source: str, stage: Stage, total: int | None = None) -> None:
        self._source = source
        self._stage = stage
        self._total = total
        self._began = time.monotonic()
        self._done = 0

    def progress(self, item: str | None, done: int = 0) -> Progress:
        """After `done` more documents, the last of them `item`."""
        self._done += done
        elapsed = time.monotonic() - self._began
        return Progress(
            source=self._source,
            stage=self._stage,
            item=item,
            done=self._done,
            total=self._total,
            rate=self._done / elapsed if elapsed > 0 else 0.0,
        )
