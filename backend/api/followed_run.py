"""Follow a sync that another process of this server runs, by what the database holds of it."""

import time
from collections.abc import Collection, Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, get_args

from backend.store.database import Database
from backend.store.sync import failures, runs
from backend.store.sync.runs import Process, Run
from backend.sync.run_lease import find_current_run, is_going_on
from connectors.errors import TemporarilyUnavailableError
from indexing.ingestion.progress import (
    MAX_NAMED_FAILURES,
    Outcome,
    Progress,
    Report,
    UnreadableItem,
)

_PACE = 0.2
"""Seconds between two queries. A run stores its progress once a second."""
_SOON = timedelta(seconds=5)


def find_run_of(database: Database, source: str, holders: Collection[Process]) -> Run | None:
    """Return the run of a source that one of these processes is working on."""
    run = find_current_run(database, source)
    return run if run and run.holder in holders else None


def follow_run(database: Database, run: int) -> Generator[Progress | Report, None, None]:
    """Yield the progress of a run, the same object while nothing moves; the report is yielded last.

    Raises:
        TemporarilyUnavailableError: it ended in another way than done; says how.
    """
    last: Progress | None = None
    while is_going_on(found := runs.find(database, run)):
        progress = found.progress_at(datetime.now(UTC))
        if last is None or replace(progress, rate=last.rate) != last:
            last = progress
        yield last
        time.sleep(_PACE)
    if found.state != "done":
        raise TemporarilyUnavailableError(found.error or runs.LOST, retry_after=_SOON)
    yield _report(database, found)


def _report(database: Database, run: Run) -> Report:
    """Return the report of a run. How long its stages took is known to its own process alone."""
    done: dict[str, Any] = {name: run.counts.get(name, 0) for name in get_args(Outcome)}
    failed = failures.list_failures(database, run.source)
    unreadable = (
        UnreadableItem(each.item, each.reason) for each in failed if each.last_at >= run.started_at
    )
    return Report(
        **done,
        unreadable=tuple(islice(unreadable, MAX_NAMED_FAILURES)),
        unreadable_count=run.counts.get("unreadable", 0),
    )
