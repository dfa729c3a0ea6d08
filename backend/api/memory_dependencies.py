"""Whose memories a request is about."""

from typing import Annotated, TypeAlias

from fastapi import Depends, Path

from backend.api.conversation_dependencies import OwnerDependency
from backend.api.dependencies import DatabaseDependency
from backend.conversations.memory_service import MemoryService

MemoryId: TypeAlias = Annotated[str, Path(max_length=100)]


async def get_memories(owner: OwnerDependency, database: DatabaseDependency) -> MemoryService:
    return MemoryService(database=database, owner=owner)


MemoriesDependency = Annotated[MemoryService, Depends(get_memories)]
