"""The projects of people whose account is disabled: an admin hands one over to a member, who then looks after it.

Whoever gets it was in it before, so that nobody is shown anything by that. An admin is told no name of a project: it is for those
who are in it.
"""

from dataclasses import dataclass

from backend.access.people import normalize_email
from backend.store import audit
from backend.store.accounts import people
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.chat import projects
from backend.store.database import Database
from connectors.errors import ConflictError


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedProject:
    id: str
    members: tuple[str, ...]
    """Their addresses."""


@dataclass(frozen=True, slots=True)
class ProjectHandover:
    database: Database
    actor: Actor = audit.OWNER

    def list_owned(self, email: str) -> list[OwnedProject]:
        """Return the projects that a person owns. Raises NotFoundError: nobody has an account of this address."""
        person = people.get_by_email(self.database, normalize_email(email))
        return [
            OwnedProject(
                id=project_id,
                members=tuple(
                    one.email for one in projects.list_members(self.database, project_id)
                ),
            )
            for project_id in projects.list_owned(self.database, person.id)
        ]

    def hand_over(self, project_id: str, email: str) -> None:
        """Make a member the owner of a project; the former owner stays in it as a member.

        Raises:
            NotFoundError: there is no such project, or nobody has an account of this address.
            ConflictError: the account of the owner is not disabled, that of the new one is, or they are no member.
        """
        with self.database.transaction() as database:
            former = _find_owner(database, project_id)
            new = people.get_by_email(database, normalize_email(email))
            _check(former, new)
            members = projects.list_members(database, project_id)
            if new.id not in {one.person_id for one in members}:
                raise ConflictError(f"{new.email} is not in this project.")
            projects.hand_over(database, project_id, former, new)
            details = {"before": former.email, "after": new.email}
            audit.record(
                database, "hand_over_project", f"project:{project_id}", details, self.actor
            )


def _find_owner(database: Database, project_id: str) -> Person:
    owner_id = projects.find_owner_id(database, project_id)
    owner = None if owner_id is None else people.find(database, owner_id)
    if owner is None:
        raise projects.make_missing_project_error()
    return owner


def _check(former: Person, new: Person) -> None:
    if former.disabled_at is None:
        raise ConflictError(
            f"The account of the owner, {former.email}, is not disabled. A project is handed over once it is."
        )
    if new.disabled_at is not None:
        raise ConflictError(f"The account of {new.email} is disabled.")
