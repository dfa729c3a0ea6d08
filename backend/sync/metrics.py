"""What the work takes and brings, told to whoever counts it for all runs of a process."""

import time
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from indexing.ingestion.progress import RunCounters, TimedStage

T = TypeVar("T")

STAGES: Mapping[TimedStage, str] = MappingProxyType(
    {"chunk": "cut", "embed": "embed", "write": "write"}
)
"""What they are called outside; a source is read in the stage `fetch`."""


class Measure(Protocol):
    def took(self, stage: str, seconds: float) -> None:
        """So many seconds more of `fetch`, `cut`, `embed` or `write`."""
        ...

    def did(self, outcome: str, count: int) -> None:
        """So many more `documents`, `chunks` and what else `indexing.ingestion.progress.Outcome` has."""
        ...


class _Unmeasured:
    def took(self, stage: str, seconds: float) -> None:
        """Nobody counts."""

    def did(self, outcome: str, count: int) -> None:
        """Nobody counts."""


UNMEASURED: Measure = _Unmeasured()


def timed(measure: Measure, stage: str, stream: Iterable[T]) -> Iterator[T]:
    """The same; what each of them is waited for counts as the stage."""
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


class Measured:
    """Tells what a tally has counted since it was last told."""

    def __init__(self, measure: Measure, tally: RunCounters) -> None:
        self._measure = measure
        self._tally = tally
        self._seconds = dict(tally.seconds)
        self._counts = counts(tally)

    def tell(self) -> None:
        seconds, counted = dict(self._tally.seconds), counts(self._tally)
        for stage, name in STAGES.items():
            self._measure.took(name, seconds[stage] - self._seconds[stage])
        for outcome, count in counted.items():
            self._measure.did(outcome, count - self._counts[outcome])
        self._seconds, self._counts = seconds, counted


def counts(tally: RunCounters) -> dict[str, int]:
    found: dict[str, int] = dict(tally.counts.items())
    return found | {"unreadable": tally.unreadable_count}
