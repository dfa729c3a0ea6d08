"""Counters, timings and progress of a run."""

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

MAX_NAMED_FAILURES = 100


@dataclass(frozen=True, slots=True)
class UnreadableItem:
    item: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    documents: int = 0
    """Indexed because they were new or had changed."""
    chunks: int = 0
    """Written for indexed and for restored documents."""
    embedded: int = 0
    """Texts that were embedded."""
    unchanged: int = 0
    """Read again and found unchanged."""
    amended: int = 0
    """Given other readers, without new vectors."""
    deleted: int = 0
    restored: int = 0
    """Written again from the kept sections to an index that had lost them."""
    unreadable: tuple[UnreadableItem, ...] = ()
    """The first hundred."""
    unreadable_count: int = 0
    seconds: Mapping[TimedStage, float] = field(default_factory=dict)
    """`read` and `embed` are the time spent waiting for source and embedder, while other stages go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    source: str
    stage: Stage
    item: str | None
    """The last item worked on."""
    done: int
    """Documents of this stage."""
    total: int | None
    rate: float
    """Documents per second since the stage began."""


class RunCounters:
    """Counts and times a run; each counter is changed by one thread at a time."""

    def __init__(self) -> None:
        self.counts: dict[Outcome, int] = dict.fromkeys(get_args(Outcome), 0)
        self.seconds: dict[TimedStage, float] = dict.fromkeys(get_args(TimedStage), 0.0)
        self.unreadable_count = 0
        self._unreadable: list[UnreadableItem] = []

    def add_failure(self, item: str, reason: str) -> None:
        self.unreadable_count += 1
        if len(self._unreadable) < MAX_NAMED_FAILURES:
            self._unreadable.append(UnreadableItem(item, reason))

    @contextmanager
    def timed(self, stage: TimedStage) -> Iterator[None]:
        """Add the duration of the block to the stage."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - began

    def to_report(self) -> Report:
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


class ProgressMeter:
    """Creates the progress events of one stage."""

    def __init__(self, source: str, stage: Stage, total: int | None = None) -> None:
        self._source = source
        self._stage = stage
        self._total = total
        self._began = time.monotonic()
        self._done = 0

    def advance(self, item: str | None, done: int = 0) -> Progress:
        """Add `done` documents, of which `item` is the last."""
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
