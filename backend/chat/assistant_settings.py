"""How an assistant answers."""

from dataclasses import dataclass, field

from backend.chat.events import TurnFailed
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


PLAIN = AssistantSettings()
"""Everything is searched, and the default model answers."""
NOTHING_ANSWERS = TurnFailed(
    "No language model answers now, and this assistant does not search.",
    "Ask an assistant that searches.",
)
