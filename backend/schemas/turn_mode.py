"""JSON of the mode of a turn, with the switches of Chat mode."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from backend.chat.intent.search_plan import Side
from backend.chat.turn_mode import DEFAULT_MODE, AgentMode, ChatMode, TurnMode
from backend.web_search.search import SWITCHED_OFF
from connectors.errors import ConflictError

MODEL_DECIDES = "In Agent mode the AI decides by itself when to search"

ModeName: TypeAlias = Literal["chat", "agent"]


class ModeBody(BaseModel):
    """What a question says of how its sources are found. It is stored with the question as well."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: ModeName = Field(
        default="chat",
        description="`chat`: the question is looked up first. `agent`: the model decides when to search",
    )
    knowledge: bool | None = Field(
        default=None, description="In Chat mode: search company knowledge; null: yes"
    )
    web: bool | None = Field(default=None, description="In Chat mode: search the web; null: no")
    rewrite: bool | None = Field(
        default=None,
        description="In Chat mode: let a model write what is searched besides the question; null: yes",
    )

    @classmethod
    def from_mode(cls, mode: TurnMode) -> Self:
        match mode:
            case AgentMode():
                return cls(mode="agent")
            case ChatMode(sides=sides, rewrites=rewrites):
                knowledge, web = Side.KNOWLEDGE in sides, Side.WEB in sides
                return cls(mode="chat", knowledge=knowledge, web=web, rewrite=rewrites)

    def read_mode(self) -> TurnMode:
        """Raises ConflictError: a switch is set in Agent mode."""
        if self.mode == "agent":
            if (self.knowledge, self.web, self.rewrite) != (None, None, None):
                raise ConflictError(MODEL_DECIDES)
            return AgentMode()
        chosen = {Side.KNOWLEDGE: self.knowledge is not False, Side.WEB: self.web is True}
        sides = frozenset(side for side, is_on in chosen.items() if is_on)
        return ChatMode(sides, rewrites=self.rewrite is not False)

    def read_permitted_mode(self, is_web_on: Callable[[], bool]) -> TurnMode:
        """Raises ConflictError: a switch is set in Agent mode, or the web is asked for where no admin has switched it on."""
        mode = self.read_mode()
        if self.web and not is_web_on():
            raise ConflictError(SWITCHED_OFF)
        return mode


def dump_mode(mode: TurnMode) -> dict[str, Any] | None:
    """Return a mode as it is stored with a question; None for the default."""
    return None if mode == DEFAULT_MODE else ModeBody.from_mode(mode).model_dump()


def load_mode(stored: Mapping[str, Any] | None) -> TurnMode:
    return DEFAULT_MODE if stored is None else ModeBody.model_validate(stored).read_mode()
