"""JSON of what people asked Quarry to remember."""

from datetime import datetime
from typing import TYPE_CHECKING, Self

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.store.chat.memories import Memory

_MEMORY: dict[str, JsonValue] = {
    "id": "Zt4bXw9sQe2LhGgkD3vT0c",
    "text": "I work in the Leeds office, on Tuesdays and Thursdays.",
    "created_at": "2026-03-02T09:30:00Z",
    "updated_at": "2026-03-02T09:30:00Z",
}


class MemoryResponse(Schema):
    model_config = with_example(**_MEMORY)

    id: str
    text: str
    created_at: datetime
    updated_at: datetime
    """When its text was last changed."""

    @classmethod
    def from_memory(cls, memory: "Memory") -> Self:
        return cls.model_validate(memory)


class MemoriesResponse(Schema):
    model_config = with_example(memories=[_MEMORY], next=None)

    memories: tuple[MemoryResponse, ...]
    """The newest first."""
    next: str | None
    """Given as `before`, it returns the following ones; null at the end."""
