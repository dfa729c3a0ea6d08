"""How an assistant answers."""

from dataclasses import dataclass, field, replace
from typing import Self

from backend.chat.events import TurnFailed
from backend.store.held_files import NO_HOLDERS, FileHolders
from backend.web_search.domains import ANY_DOMAIN, DomainRules
from indexing.index.protocols import Filters


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSettings:
    instructions: str = ""
    """Of the person who made the assistant; they stand behind the fixed rules."""
    project_instructions: str = ""
    """Of the project in which it is asked."""
    scope: Filters = field(default_factory=Filters)
    """It searches only what this accepts, whatever else narrows a search."""
    model: str | None = None
    """The name of the language model that answers; None for the default one, which also takes the place of one
    that there is no more."""
    temperature: float | None = None
    """None for that of the model."""
    searches: bool = True
    domains: DomainRules = ANY_DOMAIN
    """Of the web, it searches and reads only what these permit."""
    holders: FileHolders = NO_HOLDERS
    """Whose files it draws on: its own, and those of the project in which it is asked."""

    def in_project(self, project_id: str | None, instructions: str) -> Self:
        return replace(
            self,
            project_instructions=instructions,
            holders=replace(self.holders, project_id=project_id),
        )


PLAIN = AssistantSettings()
"""Everything is searched, and the default model answers."""
NOTHING_SEARCHED = TurnFailed(
    "No language model answers now, and nothing is searched.",
    "Switch company knowledge or the web on.",
)
NOTHING_ANSWERS = TurnFailed(
    "No language model answers now, and this assistant does not search.",
    "Ask an assistant that searches.",
)
