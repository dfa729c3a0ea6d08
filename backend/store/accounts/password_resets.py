"""Links by which people choose another password, one a person. Of each code only a hash is stored."""

from datetime import datetime

from sqlalchemy import delete, select

from backend.store.accounts.people import PERSON_COLUMNS, Person, read_person
from backend.store.database import Database, upsert
from backend.store.schema.tables import password_resets, people


def put(database: Database, person_id: int, digest: str, expires_at: datetime) -> None:
    """Store the reset of a person in place of any other."""
    row = {"person_id": person_id, "digest": digest, "expires_at": expires_at}
    with database.writing() as connection:
        upsert(connection, password_resets, [row])


def find_person(database: Database, digest: str, now: datetime) -> Person | None:
    """Return who may choose a password by a code, unless the account is disabled."""
    query = (
        select(*PERSON_COLUMNS)
        .join_from(password_resets, people)
        .where(
            password_resets.c.digest == digest,
            password_resets.c.expires_at > now,
            people.c.disabled_at.is_(None),
        )
    )
    with database.reading() as connection:
        row = connection.execute(query).one_or_none()
    return read_person(row) if row else None


def remove_of_person(database: Database, person_id: int) -> None:
    with database.writing() as connection:
        connection.execute(delete(password_resets).where(password_resets.c.person_id == person_id))
