"""Metrics of all sources and runs, read at each scrape: runs that cannot change any more are counted once."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from backend.store.database import Database
from backend.store.documents import documents
from backend.store.schema.tables import batches, runs, schedule, sources
from backend.store.sync import failures
from backend.store.sync import workers as attendance
from backend.store.sync.runs import OPEN
from backend.store.sync.schedule import list_scheduled_kinds
from backend.store.sync.sources import IS_CONNECTED

_RECOUNT_SECONDS = 60.0
"""The minimum between two counts of all documents, which are repeated only after runs changed some."""
_CHANGING = ("documents", "deleted")
_NEVER = 1 << 62
"""Greater than the number of any run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    sources: Mapping[str, int]
    """How many are in each state."""
    runs: Mapping[tuple[str, str], int]
    """By kind and state; those of sources that were removed meanwhile are left in."""
    outcomes: Mapping[str, int]
    """What came of all runs, by the name of the count."""
    successes: Mapping[tuple[str, str], float]
    """The time at which a run last succeeded, in seconds since the epoch, by source and kind; 0 for never."""
    open_batches: Mapping[str, int]
    """By source, as the next two."""
    documents: Mapping[str, int]
    failures: Mapping[str, int]
    oldest_batch: float
    """The time at which the oldest open batch was saved, in seconds since the epoch; 0 without one."""
    workers: Mapping[str, int]
    """Live ones by queue."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """Of some runs."""

    runs: Counter[tuple[str, str]] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    successes: dict[tuple[int, str], datetime] = field(default_factory=dict)

    def add(self, row: Any) -> None:
        self.runs[row.kind, row.state] += 1
        self.outcomes.update(row.counts)
        if row.state == "done" and row.finished_at is not None:
            self.successes[row.source_id, row.kind] = row.finished_at

    def __add__(self, other: "_Sum") -> "_Sum":
        return _Sum(
            self.runs + other.runs,
            self.outcomes + other.outcomes,
            self.successes | other.successes,
        )


class MetricsReader:
    """Reads the figures of one database. Safe to use from several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._settled = _Sum()
        self._settled_to = 0
        self._documents: Mapping[str, int] = {}
        self._counted_at = float("-inf")
        self._counted_for: tuple[int, ...] = ()

    def take(self) -> Figures:
        """Return the figures of now. Raises TemporarilyUnavailableError, ActionRequiredError: the database's."""
        with self._lock, self._database.reading() as connection:
            latest = _latest(connection)
            unsettled = self._unsettled(connection, latest)
            found = self._settled + unsettled
            listed = select(sources.c.id, sources.c.name, sources.c.kind).where(IS_CONNECTED)
            rows = connection.execute(listed).all()
            names: dict[int, str] = {row.id: row.name for row in rows}
            scheduled = [
                (row.name, kind) for row in rows for kind in list_scheduled_kinds(row.kind)
            ]
            states = _states(connection, latest)
            open_batches, oldest = _batches(connection)
        documents, failed = self._held(found.outcomes), failures.count_by_source(self._database)
        return Figures(
            sources=states,
            runs=found.runs,
            outcomes=found.outcomes,
            successes=dict.fromkeys(scheduled, 0.0)
            | {
                (names[number], kind): at.timestamp()
                for (number, kind), at in found.successes.items()
                if number in names
            },
            open_batches={name: open_batches.get(number, 0) for number, name in names.items()},
            documents={name: documents.get(name, 0) for name in names.values()},
            failures={name: failed.get(name, 0) for name in names.values()},
            oldest_batch=oldest.timestamp() if oldest else 0.0,
            workers=Counter(one.queue for one in attendance.list_live(self._database)),
        )

    def _unsettled(self, connection: Connection, latest: Mapping[int, tuple[int, str]]) -> _Sum:
        """Sum up the runs that can still change; the others are added to the settled ones.

        A run that can still change is the latest of its source, or has batches.
        """
        first_open = min(
            min((run for run, state in latest.values() if state in OPEN), default=_NEVER),
            connection.scalar(select(func.min(batches.c.run_id))) or _NEVER,
        )
        columns = (runs.c.id, runs.c.source_id, runs.c.kind, runs.c.state, runs.c.counts)
        query = select(*columns, runs.c.finished_at).where(runs.c.id > self._settled_to)
        unsettled = _Sum()
        for row in connection.execute(query.order_by(runs.c.id)):
            if row.id < first_open:
                self._settled.add(row)
                self._settled_to = row.id
            else:
                unsettled.add(row)
        return unsettled

    def _held(self, outcomes: Mapping[str, int]) -> Mapping[str, int]:
        """Count the documents by source, rarely: counting a million takes longer than all other queries."""
        changed = tuple(outcomes.get(name, 0) for name in _CHANGING)
        now = time.monotonic()
        if changed != self._counted_for and now - self._counted_at > _RECOUNT_SECONDS:
            self._documents = documents.count_by_source(self._database)
            self._counted_for, self._counted_at = changed, now
        return self._documents


def _latest(connection: Connection) -> dict[int, tuple[int, str]]:
    """Return the number and the state of the last run, by source."""
    each = runs.alias()
    number = select(func.max(each.c.id)).where(each.c.source_id == sources.c.id).scalar_subquery()
    query = select(runs.c.source_id, runs.c.id, runs.c.state).select_from(sources)
    rows = connection.execute(query.join(runs, runs.c.id == number))
    return {source: (run, state) for source, run, state in rows}


def _states(connection: Connection, latest: Mapping[int, tuple[int, str]]) -> Mapping[str, int]:
    """Count the sources in each state; whether the process of a running run has died is not checked."""
    leaving = set(
        connection.scalars(
            select(schedule.c.source_id).where(
                schedule.c.kind == "removal", schedule.c.asked_at.is_not(None)
            )
        )
    )
    found: Counter[str] = Counter()
    connected = select(sources.c.id, sources.c.paused_at).where(IS_CONNECTED)
    for number, paused_at in connection.execute(connected):
        if number in leaving:
            found["being removed"] += 1
        elif paused_at is not None:
            found["paused"] += 1
        else:
            found[latest[number][1] if number in latest else "never synced"] += 1
    return found


def _batches(connection: Connection) -> tuple[dict[int, int], datetime | None]:
    query = select(batches.c.source_id, func.count(), func.min(batches.c.saved_at))
    rows = connection.execute(query.group_by(batches.c.source_id)).all()
    counts = {number: count for number, count, _ in rows}
    return counts, min((saved_at for _, _, saved_at in rows), default=None)
