"""The addresses that people had before, so that nobody else is given one unasked: documents may name it still."""

from sqlalchemy import delete, exists, select

from backend.store.database import Database, inserting
from backend.store.schema.tables import former_emails


def record(database: Database, email: str, person_id: int) -> None:
    with database.writing() as connection:
        added = inserting(connection, former_emails).on_conflict_do_nothing()
        connection.execute(added, {"email": email, "person_id": person_id})


def is_of_another(database: Database, email: str, person_id: int | None) -> bool:
    """Return whether somebody else than this person, or anybody if it is None, had an address."""
    which = former_emails.c.email == email
    if person_id is not None:
        which &= former_emails.c.person_id != person_id
    with database.reading() as connection:
        return bool(connection.scalar(select(exists().where(which))))


def remove(database: Database, email: str) -> int:
    """Forget who had an address, and return how many did."""
    with database.writing() as connection:
        return connection.execute(
            delete(former_emails).where(former_emails.c.email == email)
        ).rowcount
