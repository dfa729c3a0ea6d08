"""The assistant of a research run, and the project that it belongs to, with what they are for the owner of the run now."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.chat.turn_settings import AssistantSettings
    from backend.composition.chat import ChatService
    from backend.conversations.assistant_service import AssistantService, AssistantUser
    from backend.store.database import Database
    from backend.store.research.research_runs import ResearchRun
    from connectors.access import Readers


@dataclass(frozen=True, slots=True)
class RunAssistant:
    chat: "ChatService"
    database: "Database"
    run: "ResearchRun"

    def resolve(self, readers: "Readers") -> "AssistantSettings | None":
        """Return how the assistant of a run answers; None where it is gone. See `ResolveAssistant`."""
        from backend.composition.answers_from_files import add_files
        from backend.conversations.project_service import ProjectService
        from backend.files.attached_files import find_attached
        from backend.store.chat.assistants import DEFAULT_ID
        from connectors.errors import NotFoundError

        owner, project_id = self.run.owner, self.run.project_id
        try:
            found = self._open_assistants(readers).find_settings(
                self.run.assistant_id or DEFAULT_ID
            )
        except NotFoundError:
            return None
        projects = ProjectService(database=self.database, owner=owner)
        settings = found.in_project(project_id, projects.find_instructions(project_id))
        files = find_attached(self.database, owner, (), settings.holders, readers)
        has_texts = files is not None and bool(files.texts)
        scope = add_files(settings, files if has_texts else None)
        return replace(settings.with_file_search() if has_texts else settings, scope=scope)

    def _open_assistants(self, readers: "Readers") -> "AssistantService":
        from backend.conversations.assistant_service import AssistantService
        from indexing.index.protocols import Filters
        from indexing.runtime.deadline import Deadline

        def find_sources() -> frozenset[str]:
            deadline = Deadline.after(self.chat.settings.search_seconds)
            return frozenset(self.chat.engine.index.facets(Filters(), readers, deadline).sources)

        return AssistantService(
            database=self.database, user=self._make_user(readers), find_sources=find_sources
        )

    def _make_user(self, readers: "Readers") -> "AssistantUser":
        """Return the owner of the run, who may use the same assistants as where it was begun."""
        from backend.access.roles import Role
        from backend.conversations.assistant_service import AssistantUser
        from backend.store import audit
        from backend.store.accounts import people

        person_id = self.run.owner.person_id
        person = None if person_id is None else people.find(self.database, person_id)
        return AssistantUser(
            owner=self.run.owner,
            readers=readers,
            is_admin=person is None or person.role == Role.ADMIN,
            actor=audit.OWNER if person is None else audit.Actor(f"user:{person.email}"),
        )
