"""Who people are at an identity provider, and which sign-ins through it have come back."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from backend.store.accounts.people import PERSON_COLUMNS, Person, read_person
from backend.store.database import Database
from backend.store.schema.tables import finished_attempts, identities, people
from connectors.errors import NotFoundError


@dataclass(frozen=True, slots=True)
class LinkedIdentity:
    issuer: str
    subject: str
    linked_at: datetime


def find_person(database: Database, issuer: str, subject: str) -> Person | None:
    """Return whose identity it is, also if the account is disabled."""
    query = select(*PERSON_COLUMNS).join_from(identities, people).where(*_is(issuer, subject))
    with database.reading() as connection:
        row = connection.execute(query).one_or_none()
    return read_person(row) if row else None


def add(database: Database, issuer: str, subject: str, person_id: int, now: datetime) -> None:
    row = {"issuer": issuer, "subject": subject, "person_id": person_id, "linked_at": now}
    with database.writing() as connection:
        connection.execute(insert(identities).values(row))


def record_statement(database: Database, issuer: str, subject: str, now: datetime) -> None:
    """Record that the provider has just said what it says of somebody."""
    with database.writing() as connection:
        connection.execute(update(identities).where(*_is(issuer, subject)).values(stated_at=now))


def list_of_person(database: Database, person_id: int) -> list[LinkedIdentity]:
    """Return the identities by which a person may sign in, the first one linked first."""
    columns = (identities.c.issuer, identities.c.subject, identities.c.linked_at)
    query = select(*columns).where(identities.c.person_id == person_id)
    with database.reading() as connection:
        rows = connection.execute(query.order_by(identities.c.linked_at, identities.c.subject))
        return [LinkedIdentity(*row) for row in rows]


def remove(database: Database, person_id: int, issuer: str, subject: str) -> None:
    """Remove an identity of a person. Raises NotFoundError: the person has no such identity."""
    which = (*_is(issuer, subject), identities.c.person_id == person_id)
    with database.writing() as connection:
        if not connection.execute(delete(identities).where(*which)).rowcount:
            raise NotFoundError("This identity is not linked to the account.")


def _is(issuer: str, subject: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return identities.c.issuer == issuer, identities.c.subject == subject


def finish_attempt(database: Database, state: str, now: datetime, expires_at: datetime) -> bool:
    """Return whether the attempt with a state had not come back before; of several at once, one has not.

    Args:
        state: its hash.
        expires_at: from when it could not come back anyway, so that it need not be remembered.
    """
    with database.writing() as connection:
        connection.execute(delete(finished_attempts).where(finished_attempts.c.expires_at <= now))
    try:
        with database.writing() as connection:
            row = {"state": state, "expires_at": expires_at}
            connection.execute(insert(finished_attempts).values(row))
    except IntegrityError:
        return False
    return True
