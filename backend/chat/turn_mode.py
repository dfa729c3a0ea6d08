"""How a turn finds its sources: it looks them up first (Chat), or the model decides when to search (Agent)."""

from dataclasses import dataclass
from typing import TypeAlias

from backend.chat.intent.search_plan import Side


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


def list_sides_without_model(mode: TurnMode) -> frozenset[Side]:
    """Return where a message is looked up that no model answers; nothing decides about the web then in Agent mode."""
    match mode:
        case ChatMode(sides=sides):
            return sides
        case AgentMode():
            return DEFAULT_MODE.sides


def may_use_web(mode: TurnMode) -> bool:
    """Whether a turn of this mode asks the web, where that is switched on."""
    match mode:
        case ChatMode(sides=sides):
            return Side.WEB in sides
        case AgentMode():
            return True
