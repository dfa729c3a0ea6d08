"""Invitations: an address and a role, and the hash of the code that accepts them once."""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select

from backend.store.database import Database
from backend.store.tables import invitations


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


def find(database: Database, digest: str) -> Invitation | None:
    with database.reading() as connection:
        query = select(invitations).where(invitations.c.digest == digest)
        row = connection.execute(query).mappings().one_or_none()
    return Invitation(**row) if row else None


def take(database: Database, digest: str) -> Invitation | None:
    """Remove an invitation and return it; of several that try at once, one gets it."""
    with database.writing() as connection:
        taken = delete(invitations).where(invitations.c.digest == digest).returning(invitations)
        row = connection.execute(taken).mappings().one_or_none()
    return Invitation(**row) if row else None


def take_of(database: Database, email: str, now: datetime) -> Invitation | None:
    """Remove the invitation for an address, if there is one that can still be accepted, and return it."""
    which = (invitations.c.email == email, invitations.c.expires_at > now)
    with database.writing() as connection:
        taken = delete(invitations).where(*which).returning(invitations)
        row = connection.execute(taken).mappings().one_or_none()
    return Invitation(**row) if row else None


def remove_of(database: Database, email: str) -> int:
    """Remove the invitation for an address, and return how many there were."""
    with database.writing() as connection:
        return connection.execute(delete(invitations).where(invitations.c.email == email)).rowcount


def list_open(database: Database, now: datetime) -> list[Invitation]:
    """Return those that can still be accepted, by their addresses."""
    query = select(invitations).where(invitations.c.expires_at > now).order_by(invitations.c.email)
    with database.reading() as connection:
        return [Invitation(**row) for row in connection.execute(query).mappings()]
