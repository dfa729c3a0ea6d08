"""How a turn is answered: how its sources are found, and as which assistant.

It looks its sources up first (Chat), or the model decides when to search (Agent).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias

from backend.chat.events import TurnFailed
from backend.chat.intent.search_plan import Side
from backend.store.chat import assistants
from backend.store.chat.assistants import DEFAULT_ID, AssistantValues
from backend.store.chat.shared_files import NO_HOLDERS, FileHolders
from backend.store.database import Database
from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.search import SWITCHED_OFF
from connectors.errors import ConflictError
from indexing.index.protocols import Filters

MODEL_DECIDES = "In Agent mode the AI decides by itself when to search"

ModeName: TypeAlias = Literal["chat", "agent"]


@dataclass(frozen=True, slots=True)
class ChatMode:
    """What was looked up goes to the model with the message, as references.

    Attributes:
        sides: Where the message is looked up; nowhere where it is empty.
        rewrites: Whether a model writes the questions that are searched besides the message itself.
    """

    sides: frozenset[Side]
    rewrites: bool = True


@dataclass(frozen=True, slots=True)
class AgentMode:
    """The model has tools, and decides by itself when to search."""


TurnMode: TypeAlias = ChatMode | AgentMode

DEFAULT_MODE = ChatMode(frozenset({Side.KNOWLEDGE}))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedMode:
    """How sources are to be found, as requested; a switch that is None is in its usual position."""

    mode: ModeName = "chat"
    knowledge: bool | None = None
    web: bool | None = None
    rewrite: bool | None = None

    def parse(self) -> TurnMode:
        """Return the mode that the fields ask for. Raises ConflictError: a switch is set in Agent mode."""
        if self.mode == "agent":
            if (self.knowledge, self.web, self.rewrite) != (None, None, None):
                raise ConflictError(MODEL_DECIDES)
            return AgentMode()
        chosen = {Side.KNOWLEDGE: self.knowledge is not False, Side.WEB: self.web is True}
        sides = frozenset(side for side, is_on in chosen.items() if is_on)
        return ChatMode(sides, rewrites=self.rewrite is not False)

    def parse_permitted(self, is_web_on: Callable[[], bool]) -> TurnMode:
        """Return the mode that the fields ask for, if it is permitted.

        Raises:
            ConflictError: a switch is set in Agent mode, or the web is asked for where no admin has switched it on.
        """
        mode = self.parse()
        if self.web and not is_web_on():
            raise ConflictError(SWITCHED_OFF)
        return mode


def list_sides_without_model(mode: TurnMode) -> frozenset[Side]:
    """Return where a message is looked up that no model answers; nothing decides about the web then in Agent mode."""
    match mode:
        case ChatMode(sides=sides):
            return sides
        case AgentMode():
            return DEFAULT_MODE.sides


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
    searches_web: bool = True
    domains: DomainRules = ANY_DOMAIN
    """Of the web, it searches and reads only what these permit."""
    holders: FileHolders = NO_HOLDERS
    """Whose files it draws on: its own, and those of the project in which it is asked."""

    @property
    def may_use_web(self) -> bool:
        """Whether its answers may rest on the web: one that searches nothing is kept from it, too."""
        return self.searches and self.searches_web

    def with_file_search(self) -> Self:
        """Return it as it searches files, whatever else it searches; one that is kept from the web stays so."""
        return replace(self, searches=True, searches_web=self.may_use_web)

    def in_project(self, project_id: str | None, instructions: str) -> Self:
        return replace(
            self,
            project_instructions=instructions,
            holders=replace(self.holders, project_id=project_id),
        )


def asks_web(mode: TurnMode, assistant: AssistantSettings) -> bool:
    """Return whether a turn of this mode asks the web, where that is switched on."""
    if not assistant.may_use_web:
        return False
    match mode:
        case ChatMode(sides=sides):
            return Side.WEB in sides
        case AgentMode():
            return True


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


def read_default_settings(database: Database) -> AssistantSettings:
    """Return how the default assistant answers, which everybody may use."""
    found = assistants.find(database, DEFAULT_ID)
    return PLAIN if found is None else make_settings(found.values)


def make_settings(values: AssistantValues) -> AssistantSettings:
    return AssistantSettings(
        instructions=values.instructions,
        scope=Filters(
            sources=frozenset(values.sources) or None, sets=frozenset(values.sets) or None
        ),
        model=values.model,
        temperature=values.temperature,
        searches=values.searches,
        searches_web=values.searches_web,
        domains=_read_domains(values),
    )


def _read_domains(values: AssistantValues) -> DomainRules:
    if not values.allowed_domains and not values.blocked_domains:
        return ANY_DOMAIN
    return DomainRules.of(values.allowed_domains, values.blocked_domains)
