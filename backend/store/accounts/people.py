"""The people who have an account."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, case, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from backend.store.database import Database
from backend.store.schema.project_tables import project_members
from backend.store.schema.tables import people
from connectors.errors import ConflictError, NotFoundError
from indexing.text.normalization import is_storable

NOBODY = 0
"""The id of no person: of the person at the machine itself, and of service tokens."""
ADMIN_ROLE = "admin"
"""The role of which one active person has to remain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    id: int
    email: str
    name: str
    role: str
    password_hash: str | None = field(repr=False)
    verified: str | None
    """Who vouches that the address is theirs; None where nobody does."""
    created_at: datetime
    disabled_at: datetime | None
    language: str | None = None
    """Of the pages; None: as the browser prefers."""


PERSON_COLUMNS = tuple(column.label(f"person_{column.name}_") for column in people.c)
"""What a query that joins people selects last, for `read_person`."""


SHOWN_NAME = func.coalesce(case((people.c.name != "", people.c.name), else_=people.c.email), "")
"""The name or the address of a person that a query joins; empty where it joins none."""


def read_person(row: Row[Any]) -> Person:
    values = row[-len(PERSON_COLUMNS) :]
    return Person(**dict(zip(people.c.keys(), values, strict=True)))


_HAS_PEOPLE = select(exists().select_from(people))


def has_people(database: Database) -> bool:
    with database.reading() as connection:
        return bool(connection.scalar(_HAS_PEOPLE))


def add(
    database: Database,
    *,
    email: str,
    name: str,
    role: str,
    password_hash: str | None,
    verified: str | None,
    created_at: datetime,
) -> Person:
    """Add an account. Raises ConflictError: there is an account of this address."""
    row = {
        "email": email,
        "name": name,
        "role": role,
        "password_hash": password_hash,
        "verified": verified,
        "created_at": created_at,
    }
    try:
        with database.writing() as connection:
            added = connection.execute(insert(people).values(row).returning(people))
            person = Person(**added.mappings().one())
            if verified is not None:
                _admit_to_projects(connection, person.id)
            return person
    except IntegrityError as error:
        raise ConflictError(f"There is an account of {email} already.") from error


def find(database: Database, person_id: int) -> Person | None:
    with database.reading() as connection:
        row = connection.execute(select(people).where(people.c.id == person_id)).mappings()
        found = row.one_or_none()
    return Person(**found) if found else None


def find_by_email(database: Database, email: str) -> Person | None:
    with database.reading() as connection:
        query = select(people).where(people.c.email == email)
        row = connection.execute(query).mappings().one_or_none()
    return Person(**row) if row else None


def get_by_email(database: Database, email: str) -> Person:
    """Return the person of an address. Raises NotFoundError: nobody has an account of it."""
    person = find_by_email(database, email)
    if person is None:
        raise NotFoundError(f"There is no account of {email}. To list them: quarry users list")
    return person


def list_people(database: Database) -> list[Person]:
    """Return all by their addresses, also those whose account is disabled."""
    with database.reading() as connection:
        found = connection.execute(select(people).order_by(people.c.email))
        return [Person(**row) for row in found.mappings()]


def search(database: Database, text: str, after: str, limit: int) -> list[Person]:
    """Return those whose name or address holds a text, by their addresses, from past the address `after`."""
    if not is_storable(text + after):
        return []
    holds = people.c.email.icontains(text, autoescape=True) | people.c.name.icontains(
        text, autoescape=True
    )
    query = select(people).where(holds, people.c.email > after).order_by(people.c.email)
    with database.reading() as connection:
        return [Person(**row) for row in connection.execute(query.limit(limit)).mappings()]


def set_email(database: Database, person_id: int, email: str) -> None:
    """Set an address for which nobody vouches yet."""
    _update(database, person_id, email=email, verified=None)


def set_role(database: Database, person_id: int, role: str) -> None:
    _update(database, person_id, role=role)


def set_language(database: Database, person_id: int, language: str | None) -> None:
    _update(database, person_id, language=language)


def set_verified(database: Database, person_id: int, verified: str | None) -> None:
    with database.writing() as connection:
        changed = update(people).where(people.c.id == person_id).values(verified=verified)
        connection.execute(changed)
        if verified is not None:
            _admit_to_projects(connection, person_id)


def _admit_to_projects(connection: Connection, person_id: int) -> None:
    """Let a person into the projects to which their address was added before they had it here."""
    address = select(people.c.email).where(people.c.id == person_id).scalar_subquery()
    waiting = (project_members.c.person_id.is_(None), project_members.c.email == address)
    connection.execute(update(project_members).where(*waiting).values(person_id=person_id))


def set_disabled(database: Database, person_id: int, disabled_at: datetime | None) -> None:
    _update(database, person_id, disabled_at=disabled_at)


def set_password_hash(database: Database, person_id: int, password_hash: str) -> None:
    _update(database, person_id, password_hash=password_hash)


def replace_password_hash(database: Database, person_id: int, former: str, anew: str) -> None:
    """Set another hash, unless the present one is not the former one any more."""
    with database.writing() as connection:
        which = (people.c.id == person_id, people.c.password_hash == former)
        connection.execute(update(people).where(*which).values(password_hash=anew))


def _update(database: Database, person_id: int, **values: object) -> None:
    with database.writing() as connection:
        connection.execute(update(people).where(people.c.id == person_id).values(values))


def count_active_admins(database: Database) -> int:
    """Count those who can act as admins; until the end of the transaction nobody else changes them."""
    with database.writing() as connection:
        _lock_admins(connection)
        active = (people.c.role == ADMIN_ROLE, people.c.disabled_at.is_(None))
        return connection.scalar(select(func.count()).select_from(people).where(*active)) or 0


def _lock_admins(connection: Connection) -> None:
    """Lock the rows of all admins for this transaction; SQLite has one writer at a time anyway."""
    admins = select(people.c.id).where(people.c.role == ADMIN_ROLE).order_by(people.c.id)
    connection.execute(admins.with_for_update()).all()
