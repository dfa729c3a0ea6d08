"""The present state of sources, read from the database for the command line, the API and the pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.schemas.run import RunResponse
from backend.schemas.source import SourceResponse
from backend.sources.status_text import describe_activity
from backend.store.database import Database
from backend.store.documents import batches, documents
from backend.store.sync import failures, listings, runs, schedule, sources, workers
from backend.store.sync.runs import Run
from backend.store.sync.sources import EVERY_SOURCE, Source, SourceChoice
from backend.store.sync.workers import LiveWorker
from backend.sync import wakeup_messages
from backend.sync.run_lease import is_gone
from connectors.registry import has_fixed_access

_DONE = ("documents", "unchanged", "amended", "deleted", "unreadable")
"""The counts of a run that add up to the documents it has dealt with."""


def read_status(
    database: Database, name: str, choice: SourceChoice = EVERY_SOURCE
) -> SourceResponse:
    """Read how a source stands. Raises NotFoundError: there is none of this name among those of the choice."""
    with database.snapshot() as snapshot:
        source = sources.find(snapshot, name, choice)
        return _to_status(snapshot, source, _Counts.read(snapshot, name))


def read_statuses(database: Database, choice: SourceChoice) -> list[SourceResponse]:
    """Return the state of the sources of the choice, by name."""
    with database.snapshot() as snapshot:
        counts = _Counts.read(snapshot)
        chosen = sources.list_sources(snapshot, choice)
        return [_to_status(snapshot, source, counts) for source in chosen]


def find_decision(database: Database, name: str) -> Run | None:
    """Return the last run that needs a decision; a person settles it, or a listing that is applied."""
    return runs.find_last(database, name, "needs a decision")


@dataclass(frozen=True, slots=True)
class _Counts:
    """What one query reads for all sources."""

    latest: Mapping[str, Run]
    open_batches: Mapping[str, int]
    documents: Mapping[str, int]
    failures: Mapping[str, int]
    plans: Mapping[str, schedule.Schedule]
    compared: Mapping[str, datetime]
    owners: Mapping[int, str]
    present: Sequence[LiveWorker]

    @classmethod
    def read(cls, database: Database, name: str | None = None) -> "_Counts":
        return cls(
            latest=runs.latest(database, name),
            open_batches=batches.counts(database, name),
            documents=documents.count_by_source(database, name),
            failures=failures.count_by_source(database, name),
            plans=schedule.read_plans(database, name),
            compared=listings.list_compared(database, name),
            owners=sources.list_owners(database),
            present=workers.list_live(database),
        )


def _to_status(database: Database, source: Source, counts: _Counts) -> SourceResponse:
    name = source.name
    last, undecided = counts.latest.get(name), find_decision(database, name)
    plan = counts.plans.get(name, schedule.Schedule({}, {}))
    state, now = _state(database, source, last), datetime.now(UTC)
    is_active = state in {*runs.OPEN, "being removed"}
    progress = last.progress_at(now) if last and state in runs.OPEN else None
    return SourceResponse(
        name=name,
        kind=source.kind,
        settings=dict(source.settings),
        has_credential=source.credential is not None,
        documents=counts.documents.get(name, 0),
        failures=counts.failures.get(name, 0),
        state=state,
        last_run=last.started_at if last else None,
        run=RunResponse.model_validate(last) if last else None,
        rate=_rate(last, now),
        decision=dict(undecided.decision) if undecided and undecided.decision else None,
        paused_at=source.paused_at,
        open_batches=counts.open_batches.get(name, 0),
        next_starts=dict(plan.starts),
        owner=counts.owners.get(source.id),
        has_fixed_readers=has_fixed_access(source.kind),
        permissions_compared_at=counts.compared.get(name),
        intervals={kind: int(each.total_seconds()) for kind, each in plan.every.items()},
        overdue=None
        if is_active
        else wakeup_messages.explain_overdue(plan.starts, counts.present, now),
        activity=describe_activity(last, progress) if last and progress else "",
        seconds_left=progress.seconds_left if progress else None,
    )


def _state(database: Database, source: Source, last: Run | None) -> str:
    if schedule.is_being_removed(database, source.name):
        return "being removed"
    if source.paused_at is not None:
        return "paused"
    if last is None:
        return "never synced"
    if last.state == "running" and is_gone(last):
        return "interrupted"
    return last.state


def _rate(last: Run | None, now: datetime) -> float | None:
    """Return the documents a second since the run started, while it runs."""
    if last is None or last.state != "running":
        return None
    done = sum(last.counts.get(name, 0) for name in _DONE)
    seconds = (now - last.started_at).total_seconds()
    return round(done / seconds, 2) if seconds > 0 else 0.0
