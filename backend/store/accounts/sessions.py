"""The sessions of people: who is signed in, since when, and from where. Of each cookie only a hash is stored."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, or_, select, update

from backend.store.accounts.people import PERSON_COLUMNS, Person, read_person
from backend.store.database import Database
from backend.store.schema.tables import people, sessions
from connectors.errors import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: int
    digest: str
    person_id: int
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    address: str | None
    user_agent: str | None


def add(
    database: Database,
    *,
    digest: str,
    person_id: int,
    created_at: datetime,
    expires_at: datetime,
    address: str | None,
    user_agent: str | None,
) -> None:
    row = {
        "digest": digest,
        "person_id": person_id,
        "created_at": created_at,
        "last_used_at": created_at,
        "expires_at": expires_at,
        "address": address,
        "user_agent": user_agent,
    }
    with database.writing() as connection:
        connection.execute(insert(sessions).values(row))


# One query, built once: it is asked by every request of a browser.
_SELECT_WITH_PERSON = (
    select(sessions, *PERSON_COLUMNS)
    .join(people)
    .where(people.c.disabled_at.is_(None), sessions.c.digest == bindparam("digest"))
)


def find_with_person(database: Database, digest: str) -> tuple[Session, Person] | None:
    """Return the session of a cookie and the person whose it is, unless the account is disabled."""
    with database.reading() as connection:
        row = connection.execute(_SELECT_WITH_PERSON, {"digest": digest}).one_or_none()
    if row is None:
        return None
    session = dict(zip(sessions.c.keys(), row, strict=False))
    return Session(**session), read_person(row)


def record_use(database: Database, session_id: int, now: datetime) -> None:
    with database.writing() as connection:
        used = update(sessions).where(sessions.c.id == session_id)
        connection.execute(used.values(last_used_at=now))


def remove(database: Database, digest: str) -> None:
    """Remove the session of a cookie, if there is one."""
    with database.writing() as connection:
        connection.execute(delete(sessions).where(sessions.c.digest == digest))


def list_of_person(database: Database, person_id: int) -> list[Session]:
    """Return the sessions of a person, the last used one first."""
    of_person = select(sessions).where(sessions.c.person_id == person_id)
    query = of_person.order_by(sessions.c.last_used_at.desc(), sessions.c.id.desc())
    with database.reading() as connection:
        return [Session(**row) for row in connection.execute(query).mappings()]


def remove_by_id(database: Database, person_id: int, session_id: int) -> None:
    """End a session of a person. Raises NotFoundError: the person has no such session."""
    which = (sessions.c.person_id == person_id, sessions.c.id == session_id)
    with database.writing() as connection:
        if not connection.execute(delete(sessions).where(*which)).rowcount:
            raise NotFoundError("This session has ended.")


def remove_of_person(database: Database, person_id: int, kept: str = "") -> int:
    """Remove the sessions of a person but for the one with the `kept` digest, and return how many there were."""
    which = (sessions.c.person_id == person_id, sessions.c.digest != kept)
    with database.writing() as connection:
        return connection.execute(delete(sessions).where(*which)).rowcount


def remove_ended(database: Database, now: datetime, unused_since: datetime) -> None:
    with database.writing() as connection:
        ended = or_(sessions.c.expires_at <= now, sessions.c.last_used_at <= unused_since)
        connection.execute(delete(sessions).where(ended))
