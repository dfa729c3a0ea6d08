"""The audit: who did what to which source or API token, when, and with what outcome. Rows are only ever added."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from sqlalchemy import insert, select

from backend.store.database import Database
from backend.store.tables import audit

OWNER = "owner"
"""The person at the machine itself."""
Outcome: TypeAlias = Literal["done", "refused"]
_REFUSED = "refused"
"""The detail that says why an action was refused; without it, it was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    """The name of a source, or `token:NAME`."""
    detail: Mapping[str, object]

    @property
    def outcome(self) -> Outcome:
        return "refused" if _REFUSED in self.detail else "done"


def record(
    database: Database,
    action: str,
    subject: str,
    detail: Mapping[str, object],
    actor: str = OWNER,
) -> None:
    row = {
        "at": datetime.now(UTC),
        "actor": actor,
        "action": action,
        "subject": subject,
        "detail": dict(detail),
    }
    with database.writing() as connection:
        connection.execute(insert(audit).values(row))


def record_refusal(database: Database, action: str, subject: str, reason: str, actor: str) -> None:
    record(database, action, subject, {_REFUSED: reason}, actor)


def list_entries(
    database: Database,
    *,
    subject: str | None = None,
    actor: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[AuditEntry]:
    """Return the last entries, newest first: of one source or actor, and with ids below `before`."""
    query = select(audit).order_by(audit.c.id.desc()).limit(limit)
    if subject is not None:
        query = query.where(audit.c.subject == subject)
    if actor is not None:
        query = query.where(audit.c.actor == actor)
    if before is not None:
        query = query.where(audit.c.id < before)
    with database.reading() as connection:
        return [AuditEntry(**row) for row in connection.execute(query).mappings()]


def list_sources(database: Database) -> list[str]:
    """Return the name of each source that has entries."""
    # No name of a source contains a colon.
    query = select(audit.c.subject).where(~audit.c.subject.contains(":")).distinct()
    with database.reading() as connection:
        return sorted(connection.scalars(query))
