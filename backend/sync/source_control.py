"""What a person may do about a source and its runs, and what they are told of it.

Nothing here does the work: it says in the database what is wanted, and whoever works finds out within
seconds. The same functions serve the commands, the API and the page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backend.store import audit, batches, documents, failures, runs, schedule, sources, workers
from backend.store.database import Database
from backend.store.runs import Run
from backend.store.sources import Source
from backend.store.workers import Present
from backend.sync import overdue
from backend.sync.process_identity import is_gone
from connectors.errors import ActionRequiredError

KINDS = ("incremental", "prune", "permissions", "retry")
"""That can be asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    connected: Source
    last: Run | None
    """Of its runs, or the one that is going on."""
    state: str
    """Of its last run, as `backend.store.runs.RunState` has it; `never synced`, `paused`, `being removed`."""
    rate: float | None
    """Documents in a second since the run began, while it goes on."""
    decision: Mapping[str, int] | None
    """Where it needs one: how many documents are `held`, `listed`, `missing`."""
    open_batches: int
    """Read from the source and not indexed yet."""
    documents: int
    failures: int
    next_starts: Mapping[str, datetime | None]
    """Of each kind of run; `None`: not by itself."""
    every: Mapping[str, timedelta]
    """Between runs of each kind that has an interval; zero: never by itself."""
    overdue: str | None
    """Why a run that has been due for a while does not begin, as sentences."""


def pause(database: Database, name: str) -> None:
    """Stop what goes on, within seconds, and begin nothing until `resume`.

    Raises:
        ActionRequiredError: there is no such source. So for all that follow.
    """
    sources.find(database, name)
    sources.set_paused(database, name, datetime.now(UTC))
    runs.stop(database, name, "paused")
    audit.record(database, "pause", name)


def resume(database: Database, name: str) -> None:
    """Keep the source in step again; what was interrupted goes on from its last checkpoint."""
    sources.find(database, name)
    last = runs.latest(database).get(name)
    sources.set_paused(database, name, None)
    if last is not None and last.state == "paused":
        schedule.ask(database, name, schedule.named(last.kind), last.accepted)
    audit.record(database, "resume", name)


def cancel(database: Database, name: str) -> None:
    """Stop the run that goes on or waits, within seconds. What it did is kept; the next one goes on from there.

    Raises:
        ActionRequiredError: there is no such source, or no such run.
    """
    sources.find(database, name)
    last = runs.latest(database).get(name)
    if last is None or last.state not in runs.OPEN:
        raise ActionRequiredError(f"No run of {name!r} is going on.")
    # First: a worker that looked between the two would find it due, and begin it again.
    schedule.note(database, name, [schedule.named(last.kind)], datetime.now(UTC))
    runs.stop(database, name, "cancelled")
    audit.record(database, "cancel", name, {"run": last.id, "kind": last.kind})


def request(database: Database, name: str, kind: str) -> None:
    """Have a run of this kind (one of `KINDS`) begin as soon as can be.

    Raises:
        ValueError: no such kind.
        ActionRequiredError: there is no such source, or it is paused.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind of run is called {kind!r}; there are {', '.join(KINDS)}")
    _check_kept(database, name)
    schedule.ask(database, name, kind)
    audit.record(database, "request", name, {"kind": kind})


def accept(database: Database, name: str) -> Mapping[str, int]:
    """Agree to what the last run of the source asked about, and tell what that is: `held` documents,
    `listed` ones, and the `missing` ones that will be deleted. It is done by a run that begins as soon as
    can be; where the source then lists even fewer, that one asks again.

    Raises:
        ActionRequiredError: there is no such source, it is paused, or nothing is to be decided.
    """
    _check_kept(database, name)
    asking = asked(database, name)
    if asking is None or asking.decision is None:
        raise ActionRequiredError(f"Nothing is to be decided about {name!r}.")
    schedule.ask(database, name, _compared(asking), accepted=asking.decision["missing"])
    audit.record(database, "accept", name, dict(asking.decision))
    return asking.decision


def retry(database: Database, name: str, document_ids: Sequence[str] | None = None) -> int:
    """Try these failed documents again now, or all of them, and tell how many there are.

    Raises:
        ActionRequiredError: there is no such source, it is paused, or none of them has failed.
    """
    _check_kept(database, name)
    count = failures.hasten(database, name, document_ids)
    if not count:
        raise ActionRequiredError(f"No such document of {name!r} has failed.")
    schedule.ask(database, name, "retry")
    audit.record(database, "retry", name, {"documents": count})
    return count


def reschedule(database: Database, name: str, every: Mapping[str, timedelta | None]) -> None:
    """How often its runs of these kinds begin by themselves: zero is never, `None` as usual.

    Raises:
        ValueError: a kind has no interval.
    """
    sources.find(database, name)
    if unknown := set(every) - set(schedule.USUAL):
        raise ValueError(f"runs of the kind {min(unknown)!r} have no interval")
    for kind, interval in every.items():
        schedule.set_every(database, name, kind, interval)
    told = {
        kind: None if each is None else int(each.total_seconds()) for kind, each in every.items()
    }
    if told:
        audit.record(database, "reschedule", name, told)


def delete(database: Database, name: str) -> None:
    """Have the source removed, with all that it brought. What goes on is cancelled."""
    sources.find(database, name)
    runs.stop(database, name, "cancelled")
    schedule.ask(database, name, "removal")
    audit.record(database, "delete", name)


def statuses(database: Database) -> list[SourceStatus]:
    """Of all sources by name, as they are at this moment."""
    look = _Look.at(database)
    return [_status(database, source, look) for source in sources.listing(database)]


def status(database: Database, name: str) -> SourceStatus:
    """All that can be said of a source, as it is at this moment."""
    return _status(database, sources.find(database, name), _Look.at(database, name))


@dataclass(frozen=True, slots=True)
class _Look:
    """What is read once, by source, however many are told of."""

    latest: Mapping[str, Run]
    open_batches: Mapping[str, int]
    documents: Mapping[str, int]
    failures: Mapping[str, int]
    plans: Mapping[str, schedule.Plan]
    present: Sequence[Present]

    @classmethod
    def at(cls, database: Database, name: str | None = None) -> "_Look":
        return cls(
            latest=runs.latest(database),
            open_batches=batches.counts(database, name),
            documents=documents.counts(database, name),
            failures=failures.counts(database, name),
            plans=schedule.plans(database, name),
            present=workers.present(database),
        )


def _status(database: Database, source: Source, look: _Look) -> SourceStatus:
    name = source.name
    last, asking = look.latest.get(name), asked(database, name)
    plan = look.plans.get(name, schedule.Plan({}, {}))
    state = _state(database, name, last, source.paused_at)
    now, is_at_work = datetime.now(UTC), state in {*runs.OPEN, "being removed"}
    return SourceStatus(
        connected=source,
        last=last,
        state=state,
        rate=_rate(last),
        decision=asking.decision if asking else None,
        open_batches=look.open_batches.get(name, 0),
        documents=look.documents.get(name, 0),
        failures=look.failures.get(name, 0),
        next_starts=plan.starts,
        every=plan.every,
        overdue=None if is_at_work else overdue.told(plan.starts, look.present, now),
    )


def asked(database: Database, name: str) -> Run | None:
    """The last run that waits for a decision, unless a listing was taken over since."""
    asking = runs.last_in(database, name, "needs a decision")
    if asking is None or asking.finished_at is None:
        return None
    listed = schedule.last(database, name, _compared(asking))
    return None if listed is not None and listed > asking.finished_at else asking


def _compared(asking: Run) -> str:
    """The kind of run by which what this one asks about is done."""
    return "permissions" if asking.kind == "permissions" else "prune"


def _check_kept(database: Database, name: str) -> None:
    if sources.find(database, name).paused_at is not None:
        raise ActionRequiredError(f"{name!r} is paused. To go on: quarry sources resume {name}.")


def _state(database: Database, name: str, last: Run | None, paused_at: datetime | None) -> str:
    if schedule.is_leaving(database, name):
        return "being removed"
    if paused_at is not None:
        return "paused"
    if last is None:
        return "never synced"
    if last.state == "running" and is_gone(last):
        return "interrupted"
    return last.state


def _rate(last: Run | None) -> float | None:
    if last is None or last.state != "running":
        return None
    names = ("documents", "unchanged", "amended", "deleted", "unreadable")
    done = sum(last.counts.get(name, 0) for name in names)
    seconds = (datetime.now(UTC) - last.started_at).total_seconds()
    return done / seconds if seconds > 0 else 0.0
