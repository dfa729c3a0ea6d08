"""The two halves of a run: changes of a source are saved as batches, and batches are claimed for indexing.

Its progress is stored in the database now and then, and counted for metrics.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeVar

from backend.access.group_sync import syncing_groups
from backend.store.database import Database
from backend.store.documents import batches
from backend.store.sync import failures, memberships, runs, schedule, sources
from backend.sync.run_lease import ChangeNotifier, Heartbeat, is_dead, this_process
from connectors.connector import (
    Change,
    Checkpoint,
    Connector,
    GroupItem,
    ListsGroups,
)
from indexing.ingestion.batching import Batch, ClaimedBatch, describe_last_change
from indexing.ingestion.executor import ProgressSteps
from indexing.ingestion.pipeline import Pipeline
from indexing.ingestion.progress import Progress, RunCounters, TimedStage

T = TypeVar("T")

STAGES: Mapping[TimedStage, str] = MappingProxyType(
    {"chunk": "cut", "embed": "embed", "write": "write"}
)
"""What they are called outside; a source is read in the stage `FETCH`."""
FETCH = "fetch"

MOST_OPEN = 8
"""Open batches of a source at which fetching waits for indexing."""
_PATIENCE = 0.5
_SECONDS_BETWEEN_REPORTS = 1.0


class Measure(Protocol):
    def add_seconds(self, stage: str, seconds: float) -> None:
        """Add seconds of `fetch`, `cut`, `embed` or `write`."""
        ...

    def add_outcome(self, outcome: str, count: int) -> None:
        """Add to an outcome: `documents`, `chunks` or another of `indexing.ingestion.progress.Outcome`."""
        ...


class _NoMeasure:
    def add_seconds(self, stage: str, seconds: float) -> None:
        """Count nothing."""

    def add_outcome(self, outcome: str, count: int) -> None:
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
            measure.add_seconds(stage, time.perf_counter() - began)
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
            self._measure.add_seconds(name, seconds[stage] - self._seconds[stage])
        for outcome, count in counted.items():
            self._measure.add_outcome(outcome, count - self._counts[outcome])
        self._seconds, self._counts = seconds, counted


def count_outcomes(tally: RunCounters) -> dict[str, int]:
    found: dict[str, int] = dict(tally.counts.items())
    return found | {"unreadable": tally.unreadable_count}


class ProgressWriter:
    """Adds to the row of a run what its counters have counted since the last report."""

    def __init__(self, database: Database, run: int, tally: RunCounters) -> None:
        self._database = database
        self._run = run
        self._tally = tally
        self._reported = count_outcomes(tally)
        self._due = 0.0

    def begin(self, stage: str) -> None:
        """Begin another stage of the run; what was counted so far is not reported again.

        Raises:
            RunEndedError: the run is not this process's any more.
        """
        runs.enter_stage(self._database, self._run, stage)
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
        runs.report_progress(self._database, self._run, progress, more)
        self._reported = now
        self._due = time.monotonic() + _SECONDS_BETWEEN_REPORTS


class EmbeddingReporter:
    """Records now and then what is embedded, on the runs whose batches it belongs to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due = 0.0

    def report(self, progress: Progress) -> None:
        if progress.embedding is not None and time.monotonic() >= self._due:
            runs.record_embedding(self._database, progress.embedding)
            self._due = time.monotonic() + _SECONDS_BETWEEN_REPORTS


@dataclass(frozen=True, slots=True)
class RunContext:
    database: Database
    run: int
    pipeline: Pipeline
    heartbeat: Heartbeat
    notifier: ChangeNotifier
    measure: Measure = NO_MEASURE

    def fetch(self, changes: Iterable[Change]) -> None:
        """Save all changes of the source, a batch and its checkpoint at a time, never far ahead of indexing.

        Raises:
            RunEndedError, StoppedError: the run ended for this process; what was saved stays.
            TemporarilyUnavailableError, ActionRequiredError: from the source.
        """
        with closing(self.pipeline.read_batches(changes)) as stream:
            for batch in measure_waiting(self.measure, FETCH, stream):
                self.heartbeat.check()
                if batch.document_count is not None:
                    self._estimate_total(batch.document_count)
                if batch.changes:
                    self._wait_for_room()
                if batch.changes or batch.checkpoint:
                    batches.save(self.database, self.run, batch.changes, batch.checkpoint)
                    self.heartbeat.record_progress(_after(batch))
                    self.notifier.notify()
        runs.mark_fetched(self.database, self.run)
        self.notifier.notify()

    def wait_until(self, done: Callable[[], bool], waiting_for: str) -> None:
        """Wait, and record for what. Raises RunEndedError, StoppedError: as `fetch`."""
        self.heartbeat.check()
        looks = self.notifier.looks()
        if done():
            return
        runs.set_activity(self.database, self.run, waiting_for=waiting_for)
        while not done():
            # A recorded wait counts as progress; what is waited for has a time limit of its own.
            self.heartbeat.record_progress()
            looks.wait()
            self.heartbeat.check()

    def syncing_groups(self, connector: Connector) -> AbstractContextManager[bool]:
        """Compare the groups of the source, around a comparison of its documents; see `group_sync`."""
        if not isinstance(connector, ListsGroups):
            return nullcontext(enter_result=False)
        source = sources.find(self.database, self.pipeline.source)

        def list_groups(since: Checkpoint | None) -> Iterator[GroupItem]:
            return self._while_owned(connector.groups(since))

        return syncing_groups(self.database, self.run, source.id, list_groups)

    def sync_first_groups(self, connector: Connector) -> None:
        """Save the groups of a source that never listed any, before documents name them: these have readers at once."""
        is_first = not memberships.has_listed_groups(self.database, self.pipeline.source)
        if isinstance(connector, ListsGroups) and is_first:
            with self.syncing_groups(connector):
                pass

    def request_groups(self, connector: Connector) -> None:
        """Request a permission sync if this run read documents of groups that were not listed yet."""
        if isinstance(connector, ListsGroups) and memberships.names_unlisted_groups(
            self.database, self.run
        ):
            schedule.request_run(self.database, self.pipeline.source, "permissions")

    def is_still(self) -> bool:
        """Return whether no worker holds a batch of the source."""
        return batches.is_idle(self.database, self.pipeline.source, is_dead)

    def is_indexed(self) -> bool:
        """Return whether the source has no open batches."""
        return not batches.count(self.database, self.pipeline.source)

    def _while_owned(self, items: Iterable[GroupItem]) -> Iterator[GroupItem]:
        """Yield a listing of groups as long as the run belongs to this process."""
        for item in items:
            self.heartbeat.check()
            self.heartbeat.record_progress()
            yield item

    def _estimate_total(self, count: int) -> None:
        """Record how many of so many documents a first sync has still to read. A later one reads what has changed."""
        source = self.pipeline.source
        if schedule.last_end(self.database, source, "incremental") is not None:
            return
        failed = failures.count_by_source(self.database, source).get(source, 0)
        held = self.pipeline.ledger.count(source) + failed
        runs.set_total(self.database, self.run, max(0, count - held))

    def _wait_for_room(self) -> None:
        self.wait_until(
            lambda: batches.count(self.database, self.pipeline.source) < MOST_OPEN,
            "earlier batches to be indexed",
        )


def claim_batches(
    database: Database,
    heartbeat: Heartbeat,
    notifier: ChangeNotifier,
    is_over: Callable[[], bool],
    source: str | None = None,
) -> Iterator[ClaimedBatch | None]:
    """Yield batches of all sources, or of one, as they can be claimed; None now and then while there is none.

    Ends when a query finds none after `is_over` was true. In this order, because the last batch may be saved
    between the two.

    Raises:
        RunEndedError, StoppedError: the work must end here.
    """
    holder = this_process()
    reported_at = time.monotonic()
    while True:
        heartbeat.check()
        over = is_over()
        held = batches.claim(database, holder, is_dead, source)
        if held is not None:
            heartbeat.add(held)
            yield held
            reported_at = time.monotonic()
        elif over:
            return
        elif time.monotonic() - reported_at > _PATIENCE:
            yield None
            reported_at = time.monotonic()
        else:
            notifier.wait()


def _after(batch: Batch) -> str:
    item = describe_last_change(batch.changes)
    return f"the source was read, after {item!r}" if item else "the source was read"
