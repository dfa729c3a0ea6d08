"""The audit: who did what to what, and when. Rows are only ever added."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import insert, select

from backend.store.database import Database
from backend.store.tables import audit

OWNER = "owner"
"""Who sits at the machine itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    at: datetime
    actor: str
    action: str
    subject: str
    detail: Mapping[str, object]


def record(
    database: Database,
    action: str,
    subject: str,
    detail: Mapping[str, object] | None = None,
    actor: str = OWNER,
) -> None:
    row = {
        "at": datetime.now(UTC),
        "actor": actor,
        "action": action,
        "subject": subject,
        "detail": dict(detail or {}),
    }
    with database.writing() as connection:
        connection.execute(insert(audit).values(row))


def listing(database: Database, subject: str, limit: int = 100) -> list[Entry]:
    """The last entries about a subject, newest first."""
    query = select(audit).where(audit.c.subject == subject).order_by(audit.c.id.desc()).limit(limit)
    with database.reading() as connection:
        return [
            Entry(
                at=row.at,
                actor=row.actor,
                action=row.action,
                subject=row.subject,
                detail=row.detail,
            )
            for row in connection.execute(query)
        ]
