"""The runs of sources: what each does, in which process, how far it is, and how it ended.

What records something of a running run raises RunEndedError where the run was taken over, paused or cancelled, unless it
says otherwise.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection, Row, case, func, literal, select, update

from backend.store.database import Database, Moment, exclusive
from backend.store.schema.tables import batches, runs, sources
from backend.store.sync.sources import select_source_id
from connectors.errors import TemporarilyUnavailableError
from indexing.ingestion.progress import Embedding, Progress

RunState: TypeAlias = Literal[
    "waiting",
    "running",
    "needs a decision",
    "decided",
    "paused",
    "done",
    "failed",
    "cancelled",
    "interrupted",
]
OPEN = frozenset({"running", "waiting"})
"""States of a run that is running or will continue."""
LOST = "Its process ended before it was done."


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a machine. The system reuses process ids; the start time distinguishes them."""

    host: str
    number: int
    started: str
    """Opaque; empty if the system does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: int
    source: str
    kind: str
    state: RunState
    stage: str
    item: str | None
    """The last item that was worked on."""
    counts: Mapping[str, int]
    error: str | None
    holder: Process
    started_at: datetime
    renewed_at: datetime
    """When its process last reported progress."""
    finished_at: datetime | None
    lease_until: datetime | None = None
    """Until then its process counts as alive; without a lease, `renewed_at` counts."""
    waiting_for: str | None = None
    next_try: datetime | None = None
    decision: Mapping[str, int] | None = None
    """What a person must decide about: the numbers of `held`, `listed` and `missing` documents."""
    accepted: int | None = None
    """How many documents a person allowed this run to delete."""
    done: int = 0
    """Documents that its present stage has dealt with."""
    total: int | None = None
    """Documents that the stage deals with, where that is known."""
    stage_at: datetime | None = None
    """Since when it is in its stage."""
    embedding: Embedding | None = None
    listing: int = 0
    """The number of the listing that it applied; 0 if none."""

    def progress_at(self, now: datetime) -> Progress:
        """Return how far it is in its stage."""
        seconds = (now - (self.stage_at or self.started_at)).total_seconds()
        return Progress(
            source=self.source,
            stage=self.stage,
            item=self.item,
            done=self.done,
            total=None if self.total is None else max(self.total, self.done),
            rate=self.done / seconds if seconds > 0 else 0.0,
            embedding=self.embedding,
        )

    @property
    def description(self) -> str:
        """Say since when the run is running and where."""
        since = self.started_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        return (
            f"A run of {self.source!r} ({self.kind}) has been running since {since}, in process"
            f" {self.holder.number} on {self.holder.host}"
        )


class RunEndedError(TemporarilyUnavailableError):
    """The run does not belong to this process any more: it was taken over, paused or cancelled."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message, retry_after=timedelta(minutes=1))
        self.state = state


def any_in_stage(database: Database, stage: str) -> bool:
    """Return whether any running run is in this stage."""
    query = select(runs.c.id).where(runs.c.state == "running", runs.c.stage == stage).limit(1)
    with database.reading() as connection:
        return connection.execute(query).first() is not None


def find_last(database: Database, source: str, state: RunState) -> Run | None:
    """Return the last run of a source that is in this state."""
    query = SELECT_RUNS.where(sources.c.name == source, runs.c.state == state)
    with database.reading() as connection:
        row = connection.execute(query.order_by(runs.c.id.desc()).limit(1)).one_or_none()
    return None if row is None else to_run(row)


def find(database: Database, run: int) -> Run:
    """Return the run of a number. Raises LookupError: there is none of this number."""
    with database.reading() as connection:
        row = connection.execute(SELECT_RUNS.where(runs.c.id == run)).one_or_none()
    if row is None:
        raise LookupError(f"no run {run}")
    return to_run(row)


def find_first_of_listing(database: Database, source: str, listing: int) -> Run | None:
    """Return the run that began the listing of this number."""
    query = SELECT_RUNS.where(sources.c.name == source, runs.c.listing == listing)
    with database.reading() as connection:
        row = connection.execute(query.order_by(runs.c.id).limit(1)).one_or_none()
    return None if row is None else to_run(row)


def latest(database: Database, source: str | None = None) -> dict[str, Run]:
    """Return the last run of each source that has had one, or of one source, by the source's name."""
    newest = select(func.max(runs.c.id)).group_by(runs.c.source_id)
    if source is not None:
        newest = newest.where(runs.c.source_id == select_source_id(source))
    with database.reading() as connection:
        found = [
            to_run(row) for row in connection.execute(SELECT_RUNS.where(runs.c.id.in_(newest)))
        ]
    return {run.source: run for run in found}


def history(database: Database, source: str, limit: int = 20) -> list[Run]:
    """Return the last runs of a source, newest first."""
    query = SELECT_RUNS.where(sources.c.name == source).order_by(runs.c.id.desc()).limit(limit)
    with database.reading() as connection:
        return [to_run(row) for row in connection.execute(query)]


SELECT_RUNS = select(runs, sources.c.name.label("source")).join(sources)


def lock_running(connection: Connection, run: int) -> int:
    """Return the id of the run's source, and let nobody else write before the transaction ends.

    Raises:
        RunEndedError: the run does not belong to the caller any more.
    """
    exclusive(connection)
    mine = select(runs.c.source_id).where(runs.c.id == run, runs.c.state == "running")
    source_id: int | None = connection.scalar(mine)
    if source_id is None:
        raise ended_error(connection, run)
    return source_id


def ended_error(connection: Connection, run: int) -> RunEndedError:
    """Return the error that says why the run does not belong to this process any more."""
    found = connection.execute(SELECT_RUNS.where(runs.c.id == run)).one_or_none()
    if found is not None and found.error not in (None, LOST):
        return RunEndedError(str(found.error), found.state)
    return RunEndedError(
        "Another process has taken over the run, because this one was silent for too long.",
        "interrupted",
    )


def update_running(connection: Connection, run: int, values: Mapping[str, object]) -> None:
    """Set columns of the run."""
    fresh = dict(values) | {"renewed_at": datetime.now(UTC)}
    mine = update(runs).where(runs.c.id == run, runs.c.state == "running")
    if not connection.execute(mine.values(fresh)).rowcount:
        raise ended_error(connection, run)


def renew(
    database: Database, run: int, stage: str, item: str | None, counts: Mapping[str, int]
) -> None:
    """Record what a run does that works on no documents of a source."""
    _update(database, run, {"stage": stage, "item": item, "counts": dict(counts)})


def enter_stage(database: Database, run: int, stage: str) -> None:
    """Enter a stage; batches are claimed in the stage `indexing` alone."""
    values = {
        "stage": stage,
        "stage_at": datetime.now(UTC),
        "done": 0,
        **dict.fromkeys(("total", "item", "waiting_for", "embedding")),
    }
    _update(database, run, values)


def set_total(database: Database, run: int, remaining: int) -> None:
    """Record how many documents the stage has still to deal with."""
    _update(database, run, {"total": runs.c.done + remaining})


def set_activity(
    database: Database, run: int, item: str | None = None, waiting_for: str | None = None
) -> None:
    """Record what is worked on or waited for."""
    _update(database, run, {"item": item, "waiting_for": waiting_for})


def renew_lease(database: Database, run: int, until: datetime) -> None:
    """Extend the lease: the process renews it before `until`, or is dead."""
    _update(database, run, {"lease_until": until})


def mark_fetched(database: Database, run: int) -> None:
    """Record that the source was read to its end: from now on it is known how much there is to index."""
    open_changes = (
        select(func.coalesce(func.sum(batches.c.changes), 0))
        .where(batches.c.source_id == runs.c.source_id)
        .scalar_subquery()
    )
    total = runs.c.done + open_changes
    _update(database, run, {"waiting_for": None, "total": total})


def report_progress(
    database: Database, run: int, progress: Progress, more: Mapping[str, int]
) -> None:
    """Record what the run is doing, and add the counts since the last report."""
    with database.writing() as connection:
        exclusive(connection)
        now = literal(datetime.now(UTC), Moment)
        began = case((runs.c.stage == progress.stage, runs.c.stage_at), else_=now)
        values = {
            "stage": progress.stage,
            "stage_at": began,
            "done": progress.done,
            "total": progress.total,
            "embedding": progress.embedding and asdict(progress.embedding),
        }
        update_running(connection, run, values)
        add_counts(connection, run, more, progress.item)


def record_embedding(database: Database, embedding: Embedding) -> None:
    """Record what is embedded, on the run of its batch; never raises RunEndedError."""
    run = select(batches.c.run_id).where(batches.c.id == embedding.batch).scalar_subquery()
    with database.writing() as connection:
        mine = update(runs).where(runs.c.id == run, runs.c.state == "running")
        connection.execute(mine.values(embedding=asdict(embedding), renewed_at=datetime.now(UTC)))


def add_counts(
    connection: Connection,
    run: int,
    counts: Mapping[str, int],
    item: str | None = None,
    done: int = 0,
) -> None:
    """Add to the counts of the run and to what is done of its stage, whichever process holds it."""
    query = select(runs.c.counts).where(runs.c.id == run).with_for_update()
    before = dict(connection.execute(query).scalar_one())
    added = {name: before.get(name, 0) + more for name, more in counts.items() if more}
    values: dict[str, object] = {
        "counts": before | added,
        "done": runs.c.done + done,
        "renewed_at": datetime.now(UTC),
    }
    if item is not None:
        values["item"] = item
    connection.execute(update(runs).where(runs.c.id == run).values(values))
    # A running run that made progress waits for nothing; a suspended one still waits for its source.
    goes_on = update(runs).where(runs.c.id == run, runs.c.state == "running")
    connection.execute(goes_on.values(waiting_for=None, next_try=None))


def _update(database: Database, run: int, values: Mapping[str, object]) -> None:
    with database.writing() as connection:
        update_running(connection, run, values)


def holder_columns(holder: Process) -> dict[str, object]:
    """Return the columns of a holder, in runs, batches and workers."""
    return {
        "host": holder.host,
        "process": holder.number,
        "process_started": holder.started,
    }


def read_holder(row: Any) -> Process:
    """Return the holder from a row with these columns."""
    return Process(row.host, row.process, row.process_started)


def to_run(row: Row[tuple[object, ...]]) -> Run:
    return Run(
        id=row.id,
        source=row.source,
        kind=row.kind,
        state=row.state,
        stage=row.stage,
        item=row.item,
        counts=row.counts,
        error=row.error,
        holder=read_holder(row),
        started_at=row.started_at,
        renewed_at=row.renewed_at,
        finished_at=row.finished_at,
        lease_until=row.lease_until,
        waiting_for=row.waiting_for,
        next_try=row.next_try,
        decision=row.decision,
        accepted=row.accepted,
        done=row.done,
        total=row.total,
        stage_at=row.stage_at,
        embedding=None if row.embedding is None else Embedding(**row.embedding),
        listing=row.listing or 0,
    )
