"""The projects of one asker. Who is in one sees the conversations that others have in it, as far as they may read
what these rest on; everybody writes in their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.access.people import normalize_email
from backend.conversations.assistant_values import (
    LONGEST_INSTRUCTIONS,
    LONGEST_NAME,
    check_line,
    check_text,
)
from backend.store import audit
from backend.store.accounts import people
from backend.store.audit import Actor
from backend.store.chat import conversation_projects, projects, shared_files
from backend.store.chat.conversations import get as get_conversation
from backend.store.chat.messages import make_missing_message_error
from backend.store.chat.projects import (
    Project,
    ProjectConversation,
    ProjectMember,
    ProjectUse,
)
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.errors import InvalidInputError, NotAllowedError, NotFoundError

MOST_CONVERSATIONS = 200
"""Of a project, that are listed: the last used ones."""
MOST_MEMBERS = 200


class ProjectRefusedError(NotAllowedError):
    """The asker is in a project, but may not do this with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProject:
    """A project, and how much of what is in it the asker sees."""

    project: Project
    use: ProjectUse
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectService:
    database: Database
    owner: ConversationOwner
    """The person who asks."""
    actor: Actor = audit.OWNER

    def list_own(self) -> list[Project]:
        return projects.list_of(self.database, self.owner)

    def list_uses(self) -> list[ListedProject]:
        """Return the projects of the asker by name, each with what it holds."""
        uses = projects.list_uses(self.database, self.owner)
        files = shared_files.count_in_projects(self.database, self.owner)
        # One that was made or left meanwhile is in one of the two only.
        return [
            ListedProject(project=one, use=uses[one.id], files=files.get(one.id, 0))
            for one in self.list_own()
            if one.id in uses
        ]

    def get(self, project_id: str) -> Project:
        """Return a project. Raises NotFoundError: there is none, or the asker is not in it."""
        return projects.get(self.database, self.owner, project_id)

    def find_instructions(self, project_id: str | None) -> str:
        """Return what is said to the language model; nothing where the asker is in no such project now."""
        if project_id is None:
            return ""
        try:
            return self.get(project_id).instructions
        except NotFoundError:
            return ""

    def find_changed_instructions(self, project_id: str, instructions: str | None) -> str:
        """Return what would be said to the language model if the instructions were changed; None leaves them. Nothing is kept.

        Raises as `change`.
        """
        stored = self._get_own(project_id).instructions
        return stored if instructions is None else _clean_instructions(instructions)

    def create(self, name: str, instructions: str) -> Project:
        """Add a project of the asker. Raises InvalidInputError."""
        name, instructions = _clean(name, instructions)
        added = projects.add(self.database, self.owner, name, instructions, datetime.now(UTC))
        return self.get(added)

    def change(self, project_id: str, name: str | None, instructions: str | None) -> Project:
        """Change what is not None.

        Raises:
            NotFoundError, InvalidInputError
            ProjectRefusedError: it is somebody else's.
        """
        before = self._get_own(project_id)
        cleaned = _clean(
            before.name if name is None else name,
            before.instructions if instructions is None else instructions,
        )
        projects.change(self.database, project_id, *cleaned)
        return self.get(project_id)

    def delete(self, project_id: str) -> None:
        """Delete a project; its conversations stay with those who asked. Raises as `change`."""
        self._get_own(project_id)
        projects.remove(self.database, project_id)

    def list_members(self, project_id: str) -> list[ProjectMember]:
        """Return who is in it besides its owner. Raises NotFoundError."""
        self.get(project_id)
        return projects.list_members(self.database, project_id)

    def add_member(self, project_id: str, email: str) -> None:
        """Add whoever has this address, or is the first to have it. Nothing tells whether it has an account.

        Raises as `change`.
        """
        self._get_own(project_id)
        email, own = normalize_email(email), self._find_own_email()
        if len(projects.list_members(self.database, project_id)) >= MOST_MEMBERS:
            raise InvalidInputError(f"A project has at most {MOST_MEMBERS} members.")
        if email != own:
            with self.database.transaction() as database:
                if projects.add_member(database, project_id, email):
                    self._record(database, "add_project_member", project_id, [email])

    def remove_member(self, project_id: str, member_id: int) -> None:
        """Remove somebody from one's own project, or oneself from somebody else's. Raises as `change`."""
        self.get(project_id)
        member = projects.find_member(self.database, project_id, member_id)
        if member is None or member.person_id != self.owner.person_id:
            self._get_own(project_id)
        with self.database.transaction() as database:
            removed = projects.remove_member(database, project_id, member_id)
            self._record(database, "remove_project_member", project_id, removed)

    def leave(self, project_id: str) -> None:
        """Take the asker out of a project, and record it. Raises NotFoundError."""
        self.get(project_id)
        if self.owner.person_id is not None:
            with self.database.transaction() as database:
                left = projects.remove_person(database, project_id, self.owner.person_id)
                self._record(database, "leave_project", project_id, left)

    def _record(
        self, database: Database, action: str, project_id: str, emails: Sequence[str]
    ) -> None:
        """Record an action for each member. The audit has the project's id: its name is for those who are in it."""
        for email in emails:
            audit.record(database, action, f"project:{project_id}", {"member": email}, self.actor)

    def _find_own_email(self) -> str:
        """Return the address of the asker. Raises InvalidInputError: there are no accounts."""
        person = (
            None
            if self.owner.person_id is None
            else people.find(self.database, self.owner.person_id)
        )
        if person is None:
            raise InvalidInputError(
                "There are no accounts here, so nobody else can be in a project."
            )
        return person.email

    def list_conversations(self, project_id: str) -> Sequence[ProjectConversation]:
        """Return the conversations of all who are in it now, the last used one first. Raises NotFoundError."""
        self.get(project_id)
        return projects.list_conversations(self.database, project_id, MOST_CONVERSATIONS)

    def get_conversation(self, project_id: str, conversation_id: str) -> ProjectConversation:
        """Return a conversation of the project.

        Raises:
            NotFoundError: there is none in it, or the asker is not in the project.
        """
        self.get(project_id)
        found = projects.find_conversation(self.database, project_id, conversation_id)
        if found is None:
            raise NotFoundError("There is no such conversation.")
        return found

    def get_conversation_of(self, project_id: str, message_id: int) -> ProjectConversation:
        """Return the conversation of the project in which a message stands. Raises as `get_conversation`."""
        self.get(project_id)
        found = projects.find_conversation_of(self.database, project_id, message_id)
        if found is None:
            raise make_missing_message_error()
        return found

    def move_conversation(self, conversation_id: str, project_id: str | None) -> None:
        """Move one's own conversation into a project that one is in, or out of its project. From then on, who is in the project sees it as they
        see its others: each answer only where they may read what it rests on.

        Raises:
            NotFoundError: there is no such conversation, or no such project.
        """
        get_conversation(self.database, self.owner, conversation_id)
        if project_id is not None:
            self.get(project_id)
        conversation_projects.move(self.database, self.owner, conversation_id, project_id)

    def is_own(self, project: Project) -> bool:
        return project.owner == self.owner

    def _get_own(self, project_id: str) -> Project:
        project = self.get(project_id)
        if not self.is_own(project):
            raise ProjectRefusedError("Only the owner of this project may do this.")
        return project


def _clean(name: str, instructions: str) -> tuple[str, str]:
    return (
        check_line(name, "The name", LONGEST_NAME),
        _clean_instructions(instructions),
    )


def _clean_instructions(instructions: str) -> str:
    return check_text(instructions, "The instructions", LONGEST_INSTRUCTIONS)
