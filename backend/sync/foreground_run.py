"""A sync of one source in the foreground: repair, content sync, comparison with the listing."""

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Event
from typing import Any, get_args

from backend.store.database import Database
from backend.store.documents import batches
from backend.store.sync import listings, run_transitions, runs, schedule, sources
from backend.store.sync.runs import RunEndedError, RunState
from backend.store.sync.sources import Source
from backend.sync.run_lease import ChangeNotifier, Heartbeat, is_gone, this_process
from backend.sync.run_steps import EmbeddingReporter, ProgressWriter, RunContext, claim_batches
from connectors.connector import Change, Connector
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.registry import get_fixed_access, get_retention
from indexing.ingestion.executor import BatchWorker, ProgressSteps
from indexing.ingestion.listings import DeletionNeedsApprovalError, group_listing
from indexing.ingestion.pipeline import EmptyListing, Pipeline
from indexing.ingestion.progress import Outcome, Progress, ProgressMeter, Report, RunCounters


def sync(
    database: Database,
    source: Source,
    connector: Connector,
    pipeline: Pipeline,
    when_empty: EmptyListing = EmptyListing.REFUSE,
) -> Iterator[Progress | Report]:
    """Sync a source; the report is yielded last.

    Whatever ends it (an error, an interrupt, a closed generator, a killed process), the next run continues
    from the last checkpoint, of the changes and of the listing, with the batches that are still open.

    Raises:
        TemporarilyUnavailableError: the source has a run already or does not answer, or this run was paused,
            cancelled or taken over.
        ActionRequiredError: a person must change something first; nothing is lost meanwhile.
    """
    sources.check_not_paused(source)
    kind = "first" if source.checkpoint is None else "incremental"
    run = run_transitions.begin(database, source.name, kind, this_process(), is_gone)
    stopping, tally = Event(), RunCounters()
    with (
        _close_sync(database, source.name, run),
        Heartbeat(database, run, stopping) as heartbeat,
    ):
        context = RunContext(database, run, pipeline, heartbeat, ChangeNotifier())
        writer = ProgressWriter(database, run, tally)
        context.wait_until(context.is_still, "another worker to finish")
        yield from writer.steps(pipeline.repair(tally))
        if (access := get_fixed_access(source.kind, source.settings)) is not None:
            yield from writer.steps(pipeline.set_access(access, tally))
        context.sync_first_groups(connector)
        runs.enter_stage(database, run, "indexing")
        yield from _FetchAndIndex(context, connector, stopping, tally).steps()
        writer.begin("listing")
        with context.syncing_groups(connector) as has_other_members:
            listing = listings.resume(database, run)
            pages = group_listing(connector.listing(listing.since))
            accepted = schedule.find_accepted(database, source.name)
            retention = get_retention(source.kind, source.settings)
            steps = pipeline.reconcile(
                pages, listing.number, tally, when_empty, accepted, retention
            )
            yield from writer.steps(steps)
    yield replace(_report(database, run, tally), has_other_members=has_other_members)


def remove_documents(
    context: RunContext, writer: ProgressWriter, tally: RunCounters
) -> ProgressSteps:
    """Remove the documents of the source from the index and the ledger."""
    batches.delete_all(context.database, context.pipeline.source)
    writer.begin("removing")
    yield from writer.steps(context.pipeline.clear(tally))


@dataclass(frozen=True, slots=True)
class _FetchAndIndex:
    """Fetches from the source in a thread of its own, while the calling thread indexes."""

    context: RunContext
    connector: Connector
    stopping: Event
    tally: RunCounters

    def steps(self) -> Iterator[Progress]:
        with ThreadPoolExecutor(1, "fetch") as pool:
            fetching = pool.submit(self._fetch)
            try:
                yield from self._indexing(fetching)
                fetching.result()
            finally:
                self.stopping.set()
                self.context.notifier.notify()
        self.stopping.clear()

    def _fetch(self) -> None:
        # The connector asks the ledger for known versions, so that open batches must be indexed first.
        self.context.wait_until(self.context.is_indexed, "earlier batches to be indexed")
        self.context.fetch(self._changes())

    def _changes(self) -> Iterable[Change]:
        # Read only now: a repair may have reset the checkpoint.
        pipeline = self.context.pipeline
        since = sources.find(self.context.database, pipeline.source).checkpoint
        return self.connector.changes(since, pipeline.ledger.versions)

    def _indexing(self, fetching: "Future[None]") -> Generator[Progress, None, None]:
        context = self.context
        pipeline = context.pipeline
        coming = claim_batches(
            context.database,
            context.heartbeat,
            context.notifier,
            lambda: _is_fetched(fetching) and context.is_indexed(),
            pipeline.source,
        )
        batch_worker = BatchWorker(pipeline.embedder, pipeline.writer, pipeline.ledger)
        meter = ProgressMeter(pipeline.source, "indexing")
        reporter = EmbeddingReporter(context.database)
        with closing(batch_worker.run(coming, meter, self.tally)) as steps:
            for step in steps:
                reporter.report(step)
                yield self._with_others(step)

    def _with_others(self, step: Progress) -> Progress:
        """Return the progress with what workers of other processes do for this run."""
        run = runs.find(self.context.database, self.context.run)
        shared = run.progress_at(datetime.now(UTC))
        return replace(step, done=shared.done, total=shared.total, rate=shared.rate)


def _is_fetched(fetching: "Future[None]") -> bool:
    """Return whether fetching has ended; batches that were saved are still indexed.

    Raises any error that is not the source's, which ends the indexing as well.
    """
    if not fetching.done():
        return False
    error = fetching.exception()
    if error is not None and (isinstance(error, RunEndedError) or not _is_source_error(error)):
        raise error
    return True


def _is_source_error(error: BaseException) -> bool:
    return isinstance(error, TemporarilyUnavailableError | ActionRequiredError)


def _report(database: Database, run: int, tally: RunCounters) -> Report:
    """Return the report, with what workers of other processes did for this run."""
    counts = runs.find(database, run).counts
    done: dict[str, Any] = {name: counts.get(name, 0) for name in get_args(Outcome)}
    return replace(tally.to_report(), **done, unreadable_count=counts.get("unreadable", 0))


@contextmanager
def _close_sync(database: Database, source: str, run: int) -> Iterator[None]:
    """Close the run, however the block ends.

    The schedule comes first: between the two, a worker would find the same run due again.
    """
    began = datetime.now(UTC)
    state: RunState = "interrupted"
    error: str | None = "It was stopped before its end; the next sync continues from there."
    kinds: tuple[str, ...] = ()
    try:
        yield
        listed_since = listings.finish(database, source) or began
        schedule.record_end(database, source, schedule.LISTING_KINDS, listed_since)
        state, error, kinds = "done", None, ("incremental",)
        run_transitions.settle_decisions(database, source, LISTED_AGAIN)
    except DeletionNeedsApprovalError as failure:
        listed_since = listings.finish(database, source) or began
        schedule.record_end(database, source, schedule.LISTING_KINDS, listed_since)
        schedule.record_end(database, source, ("incremental",), began)
        run_transitions.require_decision(database, run, str(failure), to_decision(failure))
        raise
    except (TemporarilyUnavailableError, ActionRequiredError) as failure:
        state, error, kinds = "failed", str(failure), ("incremental",)
        raise
    finally:
        if kinds:
            schedule.record_end(database, source, kinds, began)
        run_transitions.close(database, run, state, error)


LISTED_AGAIN = "A later listing was applied, so nothing is left to decide."


def to_decision(error: DeletionNeedsApprovalError) -> dict[str, int]:
    found = error.guard
    return {"held": found.held, "listed": found.listed, "missing": found.missing}
