"""One run of one source: repair, take over what changed, compare with the listing."""

import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager

from backend.store import runs, sources
from backend.store.database import Database
from backend.store.runs import RunState
from backend.store.sources import Source
from backend.sync.process import is_gone, this_process
from connectors.connector import Connector
from connectors.errors import AskTheOwner, RetryLater
from indexing.pipeline import EmptyListing, Pipeline
from indexing.report import Progress, Report, Tally

_RENEWAL_SECONDS = 1.0


def sync(
    database: Database,
    source: Source,
    connector: Connector,
    pipeline: Pipeline,
    when_empty: EmptyListing = EmptyListing.REFUSE,
) -> Iterator[Progress | Report]:
    """Bring the index in step with the source; the last thing yielded is the report.

    Whatever ends it - an error, an interrupt, a closed generator, a killed process - the next sync
    goes on from the last checkpoint that was saved.

    Raises:
        RetryLater: the source has a run already, or does not answer now.
        AskTheOwner: a person must mend something first; nothing is lost meanwhile.
    """
    tally = Tally()
    run = runs.begin(database, source.name, "sync", this_process(), is_gone)
    with _closing(database, run, tally):
        yield from _renewing(database, run, tally, _read(database, connector, pipeline, tally))
        listing = pipeline.reconcile(connector.listing(), run, tally, when_empty)
        yield from _renewing(database, run, tally, listing)
    yield tally.report()


def remove(database: Database, source: Source, pipeline: Pipeline) -> Iterator[Progress | Report]:
    """Delete a source with all its documents; the last thing yielded is the report.

    Raises:
        RetryLater: the source has a run.
    """
    tally = Tally()
    run = runs.begin(database, source.name, "removal", this_process(), is_gone)
    with _closing(database, run, tally):
        yield from _renewing(database, run, tally, pipeline.clear(tally))
        sources.remove(database, source.name)
    yield tally.report()


def _read(
    database: Database,
    connector: Connector,
    pipeline: Pipeline,
    tally: Tally,
) -> Generator[Progress, None, None]:
    yield from pipeline.repair(tally)
    # Read only now: what the repair could not mend, it asks to read from the beginning.
    since = sources.find(database, pipeline.source).checkpoint
    yield from pipeline.index(connector.changes(since, pipeline.ledger.versions), tally)


def _renewing(
    database: Database, run: int, tally: Tally, steps: Generator[Progress, None, None]
) -> Iterator[Progress]:
    """The same progress, and now and then word of it to the database."""
    due = 0.0
    with closing(steps):
        for progress in steps:
            if time.monotonic() >= due:
                runs.renew(database, run, progress.stage, progress.item, _counts(tally))
                due = time.monotonic() + _RENEWAL_SECONDS
            yield progress


@contextmanager
def _closing(database: Database, run: int, tally: Tally) -> Iterator[None]:
    """Close the run, however the block ends."""
    state: RunState = "interrupted"
    error: str | None = "It was stopped before it was done; the next sync goes on from there."
    try:
        yield
        state, error = "done", None
    except (RetryLater, AskTheOwner) as failure:
        state, error = "failed", str(failure)
        raise
    finally:
        runs.finish(database, run, state, _counts(tally), error)


def _counts(tally: Tally) -> dict[str, int]:
    counts: dict[str, int] = dict(tally.counts.items())
    return counts | {"unreadable": tally.unreadable_count}
