"""Invitations: an address and a role, and the hash of the code that accepts them once."""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, insert, or_, select

from backend.store.database import Database
from backend.store.schema.tables import invitations, people


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    digest: str
    email: str | None
    """None in the one that makes the first account, whose address is not known yet."""
    role: str
    created_at: datetime
    expires_at: datetime
    invited_by: str


def put(database: Database, invitation: Invitation) -> None:
    """Store an invitation in place of any other for its address, or for the first account."""
    with database.writing() as connection:
        same = invitations.c.email.is_not_distinct_from(invitation.email)
        connection.execute(delete(invitations).where(same))
        connection.execute(insert(invitations).values(asdict(invitation)))


def find(database: Database, digest: str, now: datetime) -> Invitation | None:
    """Return an invitation that can still be accepted. All others are looked for alike, so that no time tells of them."""
    with database.reading() as connection:
        query = select(invitations).where(*_is_valid(digest, now))
        row = connection.execute(query).mappings().one_or_none()
    return Invitation(**row) if row else None


def take(database: Database, digest: str, now: datetime) -> Invitation | None:
    """Remove an invitation and return it, as `find`; of several that try at once, one gets it."""
    with database.writing() as connection:
        taken = delete(invitations).where(*_is_valid(digest, now)).returning(invitations)
        row = connection.execute(taken).mappings().one_or_none()
    return Invitation(**row) if row else None


def _is_valid(digest: str, now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions: it has this code and has not expired; that of the first account ends with that account."""
    is_open = or_(invitations.c.email.is_not(None), ~exists().select_from(people))
    return invitations.c.digest == digest, invitations.c.expires_at > now, is_open


def take_of(database: Database, email: str, now: datetime) -> Invitation | None:
    """Remove the invitation for an address, if there is one that can still be accepted, and return it."""
    which = (invitations.c.email == email, invitations.c.expires_at > now)
    with database.writing() as connection:
        taken = delete(invitations).where(*which).returning(invitations)
        row = connection.execute(taken).mappings().one_or_none()
    return Invitation(**row) if row else None


def remove_of(database: Database, email: str) -> str | None:
    """Remove the invitation for an address, and return the role that it offered; None if there was none."""
    removed = delete(invitations).where(invitations.c.email == email)
    with database.writing() as connection:
        role: str | None = connection.scalar(removed.returning(invitations.c.role))
    return role


def list_open(database: Database, now: datetime) -> list[Invitation]:
    """Return those that can still be accepted, by their addresses."""
    query = select(invitations).where(invitations.c.expires_at > now).order_by(invitations.c.email)
    with database.reading() as connection:
        return [Invitation(**row) for row in connection.execute(query).mappings()]
