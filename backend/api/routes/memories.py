"""`/api/memories`: what you asked Quarry to remember."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.list_positions import LONGEST_POSITION, format_position, read_position
from backend.api.memory_dependencies import MemoriesDependency, MemoryId
from backend.conversations.memory_service import LONGEST_MEMORY
from backend.schemas.memory import MemoriesResponse, MemoryResponse
from backend.store.chat.memories import MemoryPosition
from indexing.text.normalization import INVISIBLE, is_visible

router = APIRouter()
MOST_LISTED = 200
_ALL = "/api/memories"
_ONE = f"{_ALL}/{{memory_id}}"


def _check_text(text: str) -> str:
    if not is_visible(text):
        raise ValueError("write what is to be remembered, with visible characters")
    return text


class MemoryBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"text": "I work in the Leeds office, on Tuesdays and Thursdays."}]
        },
    )

    text: Annotated[
        str,
        Field(max_length=LONGEST_MEMORY, json_schema_extra={"pattern": rf"[^{INVISIBLE}]"}),
        AfterValidator(_check_text),
    ]


@router.get(_ALL, summary="List what you asked Quarry to remember")
@requires(Permission.ASK)
def list_memories(
    memories: MemoriesDependency,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    before: Annotated[
        str | None,
        Query(max_length=LONGEST_POSITION, description="What `next` of the page before says"),
    ] = None,
) -> MemoriesResponse:
    position = None if before is None else MemoryPosition(*read_position(before))
    page = memories.list_page(position, limit)
    end = page.next
    return MemoriesResponse(
        memories=tuple(map(MemoryResponse.from_memory, page.memories)),
        next=None if end is None else format_position(end.created_at, end.id),
    )


@router.post(
    _ALL,
    status_code=201,
    responses={409: openapi.describe_problem("You have as many memories as allowed")},
    summary="Ask Quarry to remember something",
)
@requires(Permission.ASK)
def add_memory(body: MemoryBody, memories: MemoriesDependency) -> MemoryResponse:
    """At most 500, of 2,000 characters each. Answers to your questions may rest on them; what does is shown to nobody but you."""
    return MemoryResponse.from_memory(memories.add(body.text))


@router.delete(_ALL, status_code=204, summary="Delete everything that you asked Quarry to remember")
@requires(Permission.ASK)
def delete_memories(memories: MemoriesDependency) -> None:
    """Answers that rest on any of it are withheld from then on."""
    memories.delete_all()


@router.patch(_ONE, summary="Change what is remembered")
@requires(Permission.ASK)
def change_memory(
    memory_id: MemoryId, body: MemoryBody, memories: MemoriesDependency
) -> MemoryResponse:
    return MemoryResponse.from_memory(memories.edit(memory_id, body.text))


@router.delete(_ONE, status_code=204, summary="Delete what is remembered")
@requires(Permission.ASK)
def delete_memory(memory_id: MemoryId, memories: MemoriesDependency) -> None:
    """Answers that rest on it are withheld from then on."""
    memories.delete(memory_id)
