"""The audit: who did what, from where, when, and with what outcome. Rows are only ever added."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from sqlalchemy import ColumnElement, insert, select

from backend.store.database import Database
from backend.store.schema.tables import audit


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something, and from which address; None where it is done at the machine itself."""

    name: str
    address: str | None = None


OWNER = Actor("owner")
"""The person at the machine itself."""
Outcome: TypeAlias = Literal["done", "refused"]
_PAGE = 1_000
_REFUSED = "refused"
"""The detail that says why an action was refused; without it, it was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    """The name of a source, `token:NAME`, or `user:ADDRESS`."""
    detail: Mapping[str, object]
    address: str | None

    @property
    def outcome(self) -> Outcome:
        return "refused" if _REFUSED in self.detail else "done"


def record(
    database: Database,
    action: str,
    subject: str,
    detail: Mapping[str, object],
    actor: Actor = OWNER,
) -> None:
    row = {
        "at": datetime.now(UTC),
        "actor": actor.name,
        "action": action,
        "subject": subject,
        "detail": dict(detail),
        "address": actor.address,
    }
    with database.writing() as connection:
        connection.execute(insert(audit).values(row))


def record_refusal(
    database: Database, action: str, subject: str, reason: str, actor: Actor
) -> None:
    record(database, action, subject, {_REFUSED: reason}, actor)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries are wanted: those that are equal in all that is set."""

    subject: str | None = None
    actor: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Entries before this moment."""

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        for column, value in (
            (audit.c.subject, self.subject),
            (audit.c.actor, self.actor),
            (audit.c.action, self.action),
        ):
            if value is not None:
                yield column == value
        if self.since is not None:
            yield audit.c.at >= self.since
        if self.until is not None:
            yield audit.c.at < self.until


EVERY_ENTRY = AuditFilter()


def list_entries(
    database: Database,
    which: AuditFilter = EVERY_ENTRY,
    *,
    before: int | None = None,
    limit: int = 100,
) -> list[AuditEntry]:
    """Return the last entries that are wanted, newest first, with ids below `before`."""
    query = select(audit).where(*which.conditions()).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit.c.id < before)
    with database.reading() as connection:
        return [AuditEntry(**row) for row in connection.execute(query).mappings()]


def iterate_entries(database: Database, which: AuditFilter) -> Iterator[AuditEntry]:
    """Yield all entries that are wanted, newest first, a page in memory at a time."""
    before: int | None = None
    while found := list_entries(database, which, before=before, limit=_PAGE):
        yield from found
        before = found[-1].id


def list_actions(database: Database) -> list[str]:
    """Return the name of each action that has entries."""
    with database.reading() as connection:
        return sorted(connection.scalars(select(audit.c.action).distinct()))


def list_sources(database: Database) -> list[str]:
    """Return the name of each source that has entries."""
    # No name of a source contains a colon.
    query = select(audit.c.subject).where(~audit.c.subject.contains(":")).distinct()
    with database.reading() as connection:
        return sorted(connection.scalars(query))
