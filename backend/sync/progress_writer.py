"""The progress of a run: stored in the database now and then, and counted for metrics."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from types import MappingProxyType
from typing import Protocol, TypeVar

from backend.store import run_progress
from backend.store.database import Database
from indexing.ingestion.executor import ProgressSteps
from indexing.ingestion.progress import Progress, RunCounters, TimedStage

T = TypeVar("T")

STAGES: Mapping[TimedStage, str] = MappingProxyType(
    {"chunk": "cut", "embed": "embed", "write": "write"}
)
"""What they are called outside; a source is read in the stage `fetch`."""


class Measure(Protocol):
    def took(self, stage: str, seconds: float) -> None:
        """Add seconds of `fetch`, `cut`, `embed` or `write`."""
        ...

    def did(self, outcome: str, count: int) -> None:
        """Add to an outcome: `documents`, `chunks` or another of `indexing.ingestion.progress.Outcome`."""
        ...


class _NoMeasure:
    def took(self, stage: str, seconds: float) -> None:
        """Count nothing."""

    def did(self, outcome: str, count: int) -> None:
        """Count nothing."""


NO_MEASURE: Measure = _NoMeasure()


def measure_waiting(measure: Measure, stage: str, stream: Iterable[T]) -> Iterator[T]:
    """Yield the stream, and measure the wait for each item as the stage."""
    steps = iter(stream)
    while True:
        began = time.perf_counter()
        try:
            step = next(steps)
        except StopIteration:
            return
        finally:
            measure.took(stage, time.perf_counter() - began)
        yield step


class MeasuredCounters:
    """Reports to the metrics what was counted since the last report."""

    def __init__(self, measure: Measure, tally: RunCounters) -> None:
        self._measure = measure
        self._tally = tally
        self._seconds = dict(tally.seconds)
        self._counts = count_outcomes(tally)

    def report(self) -> None:
        seconds, counted = dict(self._tally.seconds), count_outcomes(self._tally)
        for stage, name in STAGES.items():
            self._measure.took(name, seconds[stage] - self._seconds[stage])
        for outcome, count in counted.items():
            self._measure.did(outcome, count - self._counts[outcome])
        self._seconds, self._counts = seconds, counted


def count_outcomes(tally: RunCounters) -> dict[str, int]:
    found: dict[str, int] = dict(tally.counts.items())
    return found | {"unreadable": tally.unreadable_count}


_SECONDS = 1.0


class ProgressWriter:
    """Adds to the row of a run what its counters have counted since the last report."""

    def __init__(self, database: Database, run: int, tally: RunCounters) -> None:
        self._database = database
        self._run = run
        self._tally = tally
        self._reported = count_outcomes(tally)
        self._due = 0.0

    def begin(self, stage: str) -> None:
        """The run comes to another stage; what was counted so far is not reported again.

        Raises:
            RunEndedError: the run is not this process's any more.
        """
        run_progress.enter_stage(self._database, self._run, stage)
        self._reported = count_outcomes(self._tally)

    def steps(self, steps: ProgressSteps) -> ProgressSteps:
        """Pass the progress on, and report it now and then and at its end. Raises RunEndedError: as `begin`."""
        last: Progress | None = None
        with closing(steps):
            for progress in steps:
                last = progress
                if time.monotonic() >= self._due:
                    self._report(progress)
                yield progress
        if last is not None:
            self._report(last)

    def _report(self, progress: Progress) -> None:
        now = count_outcomes(self._tally)
        more = {name: count - self._reported[name] for name, count in now.items()}
        run_progress.report_progress(self._database, self._run, progress, more)
        self._reported = now
        self._due = time.monotonic() + _SECONDS


class EmbeddingReporter:
    """Records now and then what is embedded, on the runs whose batches it belongs to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due = 0.0

    def report(self, progress: Progress) -> None:
        if progress.embedding is not None and time.monotonic() >= self._due:
            run_progress.record_embedding(self._database, progress.embedding)
            self._due = time.monotonic() + _SECONDS
