"""A scenario of a whole turn: what is asked where, what the model does, and what must come of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Literal

from backend.chat.turn_settings import ModeName
from backend.schemas.answer import SourceKindName
from tests.support.mode_scenarios.contract_lines import Line
from tests.support.scripted_model import ToolUse

Switch = Literal["knowledge", "web", "rewrite"]


class Surface(Enum):
    """Where a person or a program asks."""

    TERMINAL = auto()
    API = auto()
    PAGE = auto()


@dataclass(frozen=True)
class EarlierTurn:
    """What was asked before in the same conversation, and what the model did then.

    Attributes:
        adds: What the model writes behind its sentences.
    """

    message: str
    steps: tuple[tuple[ToolUse, ...], ...] = ()
    adds: str = ""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """`{web}` in its texts stands for the local web.

    Attributes:
        switches: Those that are set; the others are as they are by default.
        plan: What the intent step answers; nothing: the message is searched as it stands.
        steps: The tools that the model calls in Agent mode, by step; then it answers from what they gave.
        adds: What the model writes behind its sentences.
        earlier: The turn before, whose answer must reach the model as its sentences alone.
        files: Names of files that come with the message.
        sees_pictures: Whether the model does.
        pictures: How many pictures the model was sent.
        references: The kinds of the references in the message to the model, in the order of their numbers from 1 on.
        rules: What admins have set of the web for this turn.
        is_engine_broken: Another search engine, which answers errors alone, is asked before the one that works.
        memory: What the asker had Quarry remember before.
        sent: What the search engine was sent.
        pages: The paths of the pages that were read.
        kinds: The kinds of the sources that are listed behind the answer, a set where their order is open; nothing: there is no list.
        says: Texts of the answer.
        told: Texts that the model was sent.
        not_told: Texts that the model was not sent.
        shown: Texts of the steps.
        refused: The sentence by which the question is refused.
    """

    name: str
    surface: Surface
    mode: ModeName
    lines: frozenset[Line]
    message: str
    switches: Mapping[Switch, bool] = field(default_factory=dict)
    plan: str = ""
    steps: tuple[tuple[ToolUse, ...], ...] = ()
    adds: str = ""
    earlier: EarlierTurn | None = None
    files: tuple[str, ...] = ()
    sees_pictures: bool = False
    pictures: int = 0
    references: tuple[SourceKindName, ...] = ()
    rules: Mapping[str, Any] = field(default_factory=dict)
    is_engine_broken: bool = False
    memory: str = ""
    sent: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    kinds: tuple[SourceKindName, ...] | frozenset[SourceKindName] = ()
    says: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    not_told: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    is_general: bool = False
    refused: str = ""

    @property
    def is_in_conversation(self) -> bool:
        return bool(self.earlier or self.files or self.adds)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a surface shows of a turn."""

    text: str = ""
    kinds: tuple[str, ...] = ()
    is_general: bool = False
    steps: str = ""
    refused: str = ""
