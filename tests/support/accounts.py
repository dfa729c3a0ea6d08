"""People with accounts, and passwords that cost a test nothing."""

from datetime import datetime

from argon2 import PasswordHasher

from backend.access.passwords import Passwords
from backend.access.people import AccountDetails, PeopleService
from backend.access.roles import Role
from backend.access.sessions import find_session_person
from backend.store.accounts.people import Person
from backend.store.database import Database

CHEAP = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
PASSWORD = "correct horse battery staple"


def add_person(database: Database, email: str, role: Role = Role.MEMBER) -> Person:
    """Make an account by an invitation; the first one has to be an admin's."""
    service = PeopleService(database)
    code = service.invite(email, role)
    return service.accept_invitation(
        code, AccountDetails(name=email.partition("@")[0].title(), password=PASSWORD), CHEAP
    )


def find_person(database: Database, session: str, now: datetime | None = None) -> Person | None:
    """Return whose session it is, if it is valid."""
    found = find_session_person(database, session, now)
    return found and found[0]
