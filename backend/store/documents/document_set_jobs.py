"""The work that a changed document set makes: whoever claims it updates the documents, and reports how far it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, or_, select, update

from backend.store.database import Database, exclusive
from backend.store.documents import document_sets as sets
from backend.store.documents.document_set_rules import RuleKind
from backend.store.schema.document_set_tables import document_set_rules, document_sets
from backend.store.sync import runs
from backend.store.sync.runs import Process
from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import Selection

LEASE = timedelta(seconds=60)
"""Renewed with every page of documents, which takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetJob:
    """A set whose documents are to be updated, held by one worker."""

    set_id: int
    fence: int
    version: int
    """What the job brings the documents to, or beyond."""
    is_removed: bool
    joining: tuple[Selection, ...]
    """Documents outside the set that belong into it."""
    leaving: tuple[Selection, ...]
    """Documents in the set, some of which may belong into it no longer."""

    @property
    def label(self) -> str:
        return sets.make_label(self.set_id)


class JobLostError(TemporarilyUnavailableError):
    """Another worker has taken the job over, or it was changed in a way that starts it anew."""

    def __init__(self, label: str) -> None:
        super().__init__(
            f"Another worker continues with the document set {label}.",
            retry_after=timedelta(seconds=1),
        )


def is_due(database: Database) -> bool:
    """Return whether some set has documents that are not updated with its last change."""
    with database.reading() as connection:
        return connection.scalar(select(document_sets.c.id).where(*_due()).limit(1)) is not None


def claim(
    database: Database,
    holder: Process,
    is_dead: Callable[[Process], bool],
    set_id: int | None = None,
) -> SetJob | None:
    """Claim the set that has waited longest, or this one; None where none is due and free."""
    with database.writing() as connection:
        exclusive(connection)
        named = [] if set_id is None else [document_sets.c.id == set_id]
        query = select(document_sets).where(*_due(), *named).order_by(document_sets.c.version)
        for row in connection.execute(query):
            if _is_free(row, is_dead):
                taken = {
                    "fence": row.fence + 1,
                    "lease_until": datetime.now(UTC) + LEASE,
                    **runs.holder_columns(holder),
                }
                which = update(document_sets).where(document_sets.c.id == row.id)
                connection.execute(which.values(taken))
                return _to_job(connection, row)
    return None


def report(database: Database, job: SetJob, done: int, total: int | None = None) -> None:
    """Report how many documents were changed so far, and renew the lease.

    Raises:
        JobLostError: another worker holds the job.
    """
    values: dict[str, object] = {"done": done, "lease_until": datetime.now(UTC) + LEASE}
    if total is not None:
        values["total"] = total
    with database.writing() as connection:
        _update_held(connection, job, values)


def finish(database: Database, job: SetJob, documents: int) -> None:
    """Record that all documents are updated, or remove the row of a removed set.

    What was changed meanwhile stays due. Raises JobLostError: another worker holds the job.
    """
    with database.writing() as connection:
        exclusive(connection)
        _update_held(
            connection,
            job,
            {"applied": job.version, "documents": documents, "lease_until": None, "trouble": None},
        )
        if job.is_removed:
            connection.execute(delete(document_sets).where(document_sets.c.id == job.set_id))
            return
        applied = (
            document_set_rules.c.set_id == job.set_id,
            document_set_rules.c.since <= job.version,
        )
        gone = document_set_rules.c.state == sets.GONE
        connection.execute(delete(document_set_rules).where(*applied, gone))
        connection.execute(update(document_set_rules).where(*applied).values(state=sets.CURRENT))
        compared = (document_sets.c.id == job.set_id, document_sets.c.whole_since <= job.version)
        connection.execute(update(document_sets).where(*compared).values(whole_since=0))


def give_back(
    database: Database, job: SetJob, trouble: str | None = None, after: timedelta = timedelta()
) -> None:
    """Let any worker continue the job, after a while."""
    values = {"lease_until": None, "trouble": trouble, "next_try": datetime.now(UTC) + after}
    with database.writing() as connection:
        connection.execute(_held(job).values(values))


def _due() -> tuple[ColumnElement[bool], ...]:
    now = datetime.now(UTC)
    return (
        document_sets.c.applied < document_sets.c.version,
        or_(document_sets.c.next_try.is_(None), document_sets.c.next_try <= now),
    )


def _is_free(row: Row[Any], is_dead: Callable[[Process], bool]) -> bool:
    if row.lease_until is None or row.lease_until < datetime.now(UTC):
        return True
    return is_dead(runs.read_holder(row))


def _to_job(connection: Connection, row: Row[Any]) -> SetJob:
    label, rules = sets.make_label(row.id), sets.read_rules(connection, row.id)
    is_whole = bool(row.whole_since) or row.removed_at is not None
    standing = [each for each in rules if each.state != sets.GONE]
    joining = standing if is_whole else [each for each in rules if each.state == sets.NEW]
    gone = _to_selections([each for each in rules if each.state == sets.GONE])
    leaving = [Selection()] if is_whole else gone
    return SetJob(
        set_id=row.id,
        fence=row.fence + 1,
        version=row.version,
        is_removed=row.removed_at is not None,
        joining=tuple(replace(each, outside_set=label) for each in _to_selections(joining)),
        leaving=tuple(replace(each, in_set=label) for each in leaving),
    )


def _to_selections(rows: Sequence[Row[Any]]) -> list[Selection]:
    """Return what rules select, single documents together."""
    rules = [sets.to_rule(row) for row in rows]
    single = frozenset(rule.value for rule in rules if rule.kind is RuleKind.DOCUMENT)
    others = [rule.to_selection() for rule in rules if rule.kind is not RuleKind.DOCUMENT]
    return [*others, Selection(document_ids=single)] if single else others


def _held(job: SetJob) -> Any:
    return update(document_sets).where(
        document_sets.c.id == job.set_id, document_sets.c.fence == job.fence
    )


def _update_held(connection: Connection, job: SetJob, values: dict[str, object]) -> None:
    if not connection.execute(_held(job).values(values)).rowcount:
        raise JobLostError(job.label)
