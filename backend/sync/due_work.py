"""The work that is due, as the database says: for any number of workers in any number of processes.

`fetch_due` fetches from sources, `index_due` indexes batches, `light_due` compares with listings and removes
sources. Each does one thing that is due to its end, and returns whether there was any. A worker that dies loses
nothing: its leases run out, and its work is due again.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Protocol, TypeVar

from backend.store.database import Database
from backend.store.documents import batches, document_set_jobs
from backend.store.documents.source_removal import remove_source
from backend.store.sync import failures, listings, run_transitions, runs, schedule, sources
from backend.store.sync.runs import RunEndedError
from backend.store.sync.schedule import LISTING_KINDS, Due
from backend.store.sync.sources import Source
from backend.sync.document_set_updates import DocumentSetUpdater
from backend.sync.foreground_run import LISTED_AGAIN, remove_documents, to_decision
from backend.sync.run_lease import (
    ChangeNotifier,
    Heartbeat,
    StallLimit,
    StoppedError,
    describe_error,
    is_bug,
    is_gone,
    report_reliably,
    this_process,
)
from backend.sync.run_steps import (
    NO_MEASURE,
    EmbeddingReporter,
    Measure,
    MeasuredCounters,
    ProgressWriter,
    RunContext,
    claim_batches,
)
from connectors.access import Access
from connectors.connector import Change, Connector, DerivesAccess
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.registry import get_fixed_access, get_retention
from connectors.retention import Retention
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.listings import DeletionNeedsApprovalError, group_listing
from indexing.ingestion.pipeline import Pipeline
from indexing.ingestion.progress import ProgressMeter, RunCounters

T = TypeVar("T")

FETCH_KINDS = frozenset({"first", "incremental", "retry"})
LIGHT_KINDS = frozenset({*LISTING_KINDS, "removal"})
MOST_RETRIED = 1_000
"""Failed documents that one run retries at most."""
_LATER = timedelta(minutes=5)
"""The wait before work is retried that a person must repair first."""
_STOPPED = "It was stopped; the next run continues from there."


class SyncParts(Protocol):
    """What the engine works with; created anew after a switch to another index version."""

    @property
    def database(self) -> Database: ...

    def connector(self, source: Source) -> Connector: ...

    def pipeline(self, source: Source) -> Pipeline: ...

    def batch_worker(self) -> BatchWorker: ...


@dataclass(frozen=True, slots=True)
class _RunWork:
    """A run of this process, and what it works with."""

    due: Due
    connector: Connector
    context: RunContext
    writer: ProgressWriter
    tally: RunCounters
    fixed_access: Access | None
    """Who may read all documents, where the settings say it."""
    retention: Retention | None
    """Of a source that only shows its latest."""


@dataclass(frozen=True, slots=True)
class Engine:
    home: Callable[[], SyncParts]
    stopping: threading.Event = field(default_factory=threading.Event)
    """Once set, all work stops within seconds, to be continued later."""
    notifier: ChangeNotifier = field(default_factory=ChangeNotifier)
    bound: StallLimit = field(default_factory=StallLimit)
    measure: Measure = NO_MEASURE
    more: Callable[[], object] = lambda: None
    """Called if more runs are due than the one that is taken."""

    def fetch_due(self, source: str | None = None) -> bool:
        """Sync the content of a due source, or of this one if it is due. Raises StoppedError."""
        return self._first_due(FETCH_KINDS, source)

    def light_due(self, source: str | None = None) -> bool:
        """Compare a due source, or this one, with its listing, or remove it. Raises StoppedError."""
        return self._first_due(LIGHT_KINDS, source)

    def index_due(self, *, along: bool = False) -> bool:
        """Index open batches of all sources in turn, until there are no more.

        Args:
            along: continue until no source is being fetched any more.

        Raises:
            StoppedError: the claimed batches are given back.
        """
        home, tally = self.home(), RunCounters()
        database, measured = home.database, MeasuredCounters(self.measure, tally)

        def is_over() -> bool:
            return not (along and runs.any_in_stage(database, "indexing"))

        reporter = EmbeddingReporter(database)
        with Heartbeat(database, stopping=self.stopping, bound=self.bound) as heartbeat:
            coming = claim_batches(database, heartbeat, self.notifier, is_over)
            steps = home.batch_worker().run(coming, ProgressMeter("", "indexing"), tally)
            try:
                with closing(steps):
                    for step in steps:
                        heartbeat.record_progress(
                            f"{step.item!r} was indexed" if step.item else None
                        )
                        heartbeat.check()
                        reporter.report(step)
                        measured.report()
                        self.notifier.notify()
            except (TemporarilyUnavailableError, ActionRequiredError) as error:
                after = (
                    error.retry_after if isinstance(error, TemporarilyUnavailableError) else _LATER
                )
                next_try = datetime.now(UTC) + after
                batches.postpone(database, heartbeat.held(), next_try, str(error))
        self.notifier.notify()
        return any(tally.counts.values()) or tally.unreadable_count > 0

    def sets_due(self) -> bool:
        """Update the documents of a set that was changed; see `document_set_updates`. Raises StoppedError."""
        home = self.home()
        if not document_set_jobs.is_due(home.database):
            return False
        writer = home.batch_worker().writer
        return DocumentSetUpdater(home.database, writer, self._check_stopping).apply_next()

    def _check_stopping(self) -> None:
        if self.stopping.is_set():
            raise StoppedError

    def _first_due(self, kinds: frozenset[str], source: str | None) -> bool:
        home = self.home()
        found = schedule.list_due(home.database, datetime.now(UTC), is_gone, source)
        wanted = [due for due in found if due.kind in kinds]
        if len(wanted) > 1:
            self.more()
        return any(self._ran(home, due) for due in wanted)

    def _ran(self, home: SyncParts, due: Due) -> bool:
        """Run what is due; return False if another worker was quicker."""
        try:
            run = _begin_run(home.database, due)
        except TemporarilyUnavailableError:
            return False
        with (
            _RunCloser(home.database, due, run),
            Heartbeat(home.database, run, self.stopping, bound=self.bound) as heartbeat,
        ):
            source, tally = sources.find(home.database, due.source), RunCounters()
            pipeline = home.pipeline(source)
            context = RunContext(
                home.database, run, pipeline, heartbeat, self.notifier, self.measure
            )
            writer = ProgressWriter(home.database, run, tally)
            context.wait_until(context.is_still, "another worker to finish")
            if due.kind == "removal":
                heartbeat.record_progress("its documents were removed")
                _exhaust(remove_documents(context, writer, tally), heartbeat)
                remove_source(home.database, due.source)
            else:
                access = get_fixed_access(source.kind, source.settings)
                retention = get_retention(source.kind, source.settings)
                work = _RunWork(
                    due, home.connector(source), context, writer, tally, access, retention
                )
                _carry_out(work)
        return True


def _carry_out(work: _RunWork) -> None:
    is_of_access = work.due.kind == "permissions"
    if is_of_access and work.fixed_access is not None:
        _apply_fixed_access(work, work.fixed_access)
    elif is_of_access and isinstance(work.connector, DerivesAccess):
        _compare_groups(work, work.connector)
    elif work.due.kind in LISTING_KINDS:
        _compare_listing(work)
    else:
        _sync_content(work)


def _sync_content(work: _RunWork) -> None:
    """Fetch what changed, or what failed before, until all of it is indexed."""
    context = work.context
    context.heartbeat.record_progress("the index was compared with the ledger")
    _exhaust(work.writer.steps(context.pipeline.repair(work.tally)), context.heartbeat)
    context.sync_first_groups(work.connector)
    runs.enter_stage(context.database, context.run, "indexing")
    # The connector asks the ledger for known versions, so that open batches must be indexed first.
    context.wait_until(context.is_indexed, "earlier batches to be indexed")
    context.heartbeat.record_progress("the source was read, from where it was left")
    context.fetch(_changes(work))
    context.wait_until(context.is_indexed, "the batches of this run to be indexed")
    context.request_groups(work.connector)


def _changes(work: _RunWork) -> Iterable[Change]:
    context = work.context
    name = context.pipeline.source
    if work.due.kind == "retry":
        return work.connector.refetch(
            failures.list_due(context.database, name, datetime.now(UTC), MOST_RETRIED)
        )
    since = sources.find(context.database, name).checkpoint
    return work.connector.changes(since, context.pipeline.ledger.versions)


def _compare_listing(work: _RunWork) -> None:
    context, accepted = work.context, work.due.accepted or 0
    work.writer.begin("listing")
    context.heartbeat.record_progress("the source listed what it has")
    listing = listings.resume(context.database, context.run)
    items = _while_owned(work.connector.listing(listing.since), context.heartbeat)
    pages = _while_owned(group_listing(items), context.heartbeat)
    compare = partial(
        context.pipeline.reconcile if work.due.kind == "prune" else context.pipeline.sync_access,
        accepted=accepted,
        retention=work.retention,
    )
    steps = compare(pages, listing.number, work.tally)
    with _syncing_groups(work):
        _exhaust(work.writer.steps(steps), context.heartbeat)


def _syncing_groups(work: _RunWork) -> AbstractContextManager[bool]:
    if not isinstance(work.connector, DerivesAccess):
        return work.context.syncing_groups(work.connector)
    # What documents name does not change; the permission syncs compare the groups, which takes many requests.
    work.context.sync_first_groups(work.connector)
    return nullcontext(enter_result=False)


def _compare_groups(work: _RunWork, connector: DerivesAccess) -> None:
    """Compare the groups; documents only with what their ids say: the source is not asked for them."""
    context = work.context
    work.writer.begin("amending")
    context.heartbeat.record_progress("the source listed its groups")
    steps = context.pipeline.derive_access(connector.derive_access, work.tally)
    with context.syncing_groups(work.connector):
        _exhaust(work.writer.steps(steps), context.heartbeat)


def _apply_fixed_access(work: _RunWork, access: Access) -> None:
    """Apply the readers of the settings to what is held; the source is not asked, however large it is."""
    context = work.context
    # What was read before the settings were changed has the former readers.
    runs.enter_stage(context.database, context.run, "indexing")
    context.wait_until(context.is_indexed, "earlier batches to be indexed")
    work.writer.begin("amending")
    context.heartbeat.record_progress("the readers of the settings were applied")
    steps = context.pipeline.set_access(access, work.tally)
    _exhaust(work.writer.steps(steps), context.heartbeat)


def _while_owned(items: Iterable[T], heartbeat: Heartbeat) -> Iterator[T]:
    """Yield the items as long as the run belongs to this worker: nothing late is written."""
    for item in items:
        heartbeat.check()
        heartbeat.record_progress()
        yield item


def _exhaust(steps: Generator[object, None, None], heartbeat: Heartbeat) -> None:
    """Run the steps to their end; after an error their threads have ended before the run is closed."""
    with closing(steps):
        for _ in steps:
            heartbeat.record_progress()
            heartbeat.check()


def _begin_run(database: Database, due: Due) -> int:
    """Begin a run, or resume the one that is due. Raises TemporarilyUnavailableError: another worker was quicker."""
    holder = this_process()
    if due.run is not None:
        run_transitions.resume(database, due.run, holder)
        return due.run
    return run_transitions.begin(
        database, due.source, due.kind, holder, is_gone, due.accepted, due.seen
    )


class _RunCloser:
    """Closes a run by how its block ended. Expected errors end the run alone; bugs are raised as well.

    The schedule comes first: between the two, a worker would find the same run due again.
    """

    def __init__(self, database: Database, due: Due, run: int) -> None:
        self._database = database
        self._due = due
        self._run = run
        self._began = datetime.now(UTC)

    def __enter__(self) -> None:
        """Do nothing: the run is open already."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Return whether the error, if any, ends the run alone."""
        del kind, trace
        report_reliably(partial(self._close_ours, error))
        return isinstance(
            error, TemporarilyUnavailableError | ActionRequiredError | DeletionNeedsApprovalError
        )

    def _close_ours(self, error: BaseException | None) -> None:
        # A run that belongs to another process by now, or was ended, stays as it is.
        with suppress(RunEndedError):
            self._close(error)

    def _close(self, error: BaseException | None) -> None:
        database, run = self._database, self._run
        match error:
            case None:
                self._note(self._finish_listing())
                self._settle()
                run_transitions.close(database, run, "done")
            case RunEndedError():
                run_transitions.close(database, run, "interrupted", _STOPPED)
            case DeletionNeedsApprovalError():
                self._note(self._finish_listing())
                run_transitions.require_decision(database, run, str(error), to_decision(error))
            case TemporarilyUnavailableError():
                run_transitions.suspend(
                    database, run, str(error), datetime.now(UTC) + error.retry_after
                )
            case ActionRequiredError():
                self._note(self._began)
                run_transitions.close(database, run, "failed", str(error))
            case _ if is_bug(error):
                run_transitions.requeue(database, run, "failed", describe_error(error))
            case _:
                run_transitions.close(database, run, "interrupted", _STOPPED)

    def _settle(self) -> None:
        """Settle what waits to be decided: all of it after an applied listing, only its own after a permission sync."""
        source, kind = self._due.source, schedule.schedule_kind(self._due.kind)
        if kind in LISTING_KINDS:
            only = None if kind == "prune" else kind
            run_transitions.settle_decisions(self._database, source, LISTED_AGAIN, only)

    def _finish_listing(self) -> datetime:
        """Return since when the run has compared: what was asked for later is not done by it."""
        if self._due.kind not in LISTING_KINDS:
            return self._began
        return listings.finish(self._database, self._due.source) or self._began

    def _note(self, began: datetime) -> None:
        due = self._due
        if due.kind != "removal":
            kind = schedule.schedule_kind(due.kind)
            kinds = LISTING_KINDS if kind == "prune" else (kind,)
            schedule.record_end(self._database, due.source, kinds, began)
