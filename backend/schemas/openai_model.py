"""JSON of assistants as the models of OpenAI's API."""

from typing import TYPE_CHECKING, Literal, Self

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.conversations.assistant_service import ShownAssistant

_NOBODY = "quarry"
_EXAMPLE: dict[str, JsonValue] = {
    "id": "default",
    "object": "model",
    "created": 1_772_443_800,
    "owned_by": _NOBODY,
    "name": "Quarry",
    "description": "",
}


class OpenAiModel(Schema):
    model_config = with_example(**_EXAMPLE)

    id: str
    """Of the assistant."""
    object: Literal["model"] = "model"
    created: int
    """Seconds since 1970."""
    owned_by: str
    name: str
    """As clients show it that know more than OpenAI's fields."""
    description: str

    @classmethod
    def from_shown(cls, shown: "ShownAssistant") -> Self:
        return cls(
            id=shown.id,
            created=int(shown.created_at.timestamp()),
            owned_by=shown.owner_name or _NOBODY,
            name=shown.values.name,
            description=shown.values.description,
        )


class OpenAiModelsResponse(Schema):
    model_config = with_example(object="list", data=[_EXAMPLE])

    object: Literal["list"] = "list"
    data: tuple[OpenAiModel, ...]
