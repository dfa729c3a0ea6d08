"""JSON of the mode of a turn, with the switches of Chat mode."""

from collections.abc import Callable, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from backend.chat.intent.search_plan import Side
from backend.chat.turn_settings import (
    DEFAULT_MODE,
    AgentMode,
    ChatMode,
    ModeName,
    RequestedMode,
    TurnMode,
)


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

    @property
    def _requested(self) -> RequestedMode:
        return RequestedMode(
            mode=self.mode, knowledge=self.knowledge, web=self.web, rewrite=self.rewrite
        )

    def read_mode(self) -> TurnMode:
        """Return the mode that was asked for. Raises as `RequestedMode.parse` does."""
        return self._requested.parse()

    def read_permitted_mode(self, is_web_on: Callable[[], bool]) -> TurnMode:
        """Return the mode that was asked for, if it is permitted. Raises as `RequestedMode.parse_permitted` does."""
        return self._requested.parse_permitted(is_web_on)


def dump_mode(mode: TurnMode) -> dict[str, Any] | None:
    """Return a mode as it is stored with a question; None for the default."""
    return None if mode == DEFAULT_MODE else ModeBody.from_mode(mode).model_dump()


def load_mode(stored: Mapping[str, Any] | None) -> TurnMode:
    return DEFAULT_MODE if stored is None else ModeBody.model_validate(stored).read_mode()
