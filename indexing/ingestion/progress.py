"""Counters, timings and progress of a run, and of what is embedded: reported while it goes on."""

import threading
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, TypeAlias, TypeVar, get_args

Outcome: TypeAlias = Literal[
    "documents", "chunks", "embedded", "unchanged", "amended", "deleted", "restored"
]
TimedStage: TypeAlias = Literal["read", "chunk", "embed", "write"]
Stage: TypeAlias = Literal["repairing", "indexing", "listing", "amending", "removing"]
"""What a run does to the documents of its source."""

MAX_NAMED_FAILURES = 100

T = TypeVar("T")
_REPORT_SECONDS = 0.5


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
    """Passages that were embedded; several may have the same text."""
    unchanged: int = 0
    """Read again and found unchanged."""
    amended: int = 0
    """Given other readers, without new vectors."""
    has_other_members: bool = False
    """Whether groups or scopes of the source have other members, so that others may read documents that have not changed."""
    deleted: int = 0
    restored: int = 0
    """Written again from the kept sections to an index that had lost them."""
    unreadable: tuple[UnreadableItem, ...] = ()
    """The first hundred."""
    unreadable_count: int = 0
    seconds: Mapping[TimedStage, float] = field(default_factory=dict)
    """`read` and `embed` are the time spent waiting for source and embedder, while other stages go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """A document that is being embedded."""

    item: str
    done: int
    """Its passages that are embedded."""
    total: int
    batch: int | None = None
    """The number of the batch that it belongs to, if it belongs to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    source: str
    stage: str
    """A `Stage`, or what else a run does."""
    item: str | None
    """The last item worked on."""
    done: int
    """Documents of this stage."""
    total: int | None
    rate: float
    """Documents per second since the stage began."""
    embedding: Embedding | None = None

    @property
    def seconds_left(self) -> float | None:
        """How long the stage will probably take, where that can be estimated."""
        if self.total is None or not self.rate:
            return None
        return max(0, self.total - self.done) / self.rate


class RunCounters:
    """Counts and times a run; each counter is changed by one thread at a time."""

    def __init__(self) -> None:
        self.counts: dict[Outcome, int] = dict.fromkeys(get_args(Outcome), 0)
        self.seconds: dict[TimedStage, float] = dict.fromkeys(get_args(TimedStage), 0.0)
        self.unreadable_count = 0
        self._unreadable: dict[str, UnreadableItem] = {}

    def add_failure(self, document_id: str, item: str, reason: str) -> None:
        self.unreadable_count += 1
        if len(self._unreadable) < MAX_NAMED_FAILURES:
            self._unreadable[document_id] = UnreadableItem(item, reason)

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
            unreadable=tuple(self._unreadable.values()),
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

    def advance(
        self, item: str | None, done: int = 0, embedding: Embedding | None = None
    ) -> Progress:
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
            embedding=embedding,
        )


class AbandonedError(Exception):
    """The embedding was given up."""


class EmbeddingWatch:
    """Passes what some threads embed to the thread that waits for them. Leaving its block ends the embedding."""

    def __init__(self) -> None:
        self._latest: Embedding | None = None
        self._reported: Embedding | None = None
        self._abandoned = threading.Event()

    def __enter__(self) -> "EmbeddingWatch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace
        self._abandoned.set()

    def record(self, embedding: Embedding) -> None:
        """Record what is embedded next. Raises AbandonedError: nothing more is to be embedded."""
        if self._abandoned.is_set():
            raise AbandonedError
        self._latest = embedding

    def follow(self, future: Future[T], meter: ProgressMeter) -> Generator[Progress, None, T]:
        """Yield progress while the future is waited for, and return its result."""
        while not wait([future], _REPORT_SECONDS).done:
            latest = self._latest
            if latest is not None and latest is not self._reported:
                self._reported = latest
                yield meter.advance(latest.item, embedding=latest)
        return future.result()
