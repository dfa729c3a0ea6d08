"""Who may look after a source: a person who is an admin or a source manager."""

from backend.access.people import normalize_email
from backend.access.roles import Role
from backend.store.accounts import people
from backend.store.accounts.people import Person
from backend.store.database import Database
from connectors.errors import ConflictError


def find_new_owner(database: Database, email: str) -> Person:
    """Return the person with this address, who can be given a source.

    Raises:
        InvalidInputError: it is not an address.
        NotFoundError: nobody has an account of this address.
        ConflictError: the account is disabled, or its role is member.
    """
    person = people.get_by_email(database, normalize_email(email))
    if person.disabled_at is not None:
        raise ConflictError(f"The account of {person.email} is disabled.")
    if person.role == Role.MEMBER:
        raise ConflictError(
            f"{person.email} is a member, who cannot look after sources. Make them a source manager first."
        )
    return person
