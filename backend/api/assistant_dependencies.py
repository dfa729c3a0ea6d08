"""Whose assistants a request is about."""

from typing import Annotated, TypeAlias

from fastapi import Depends, Path
from pydantic import Field

from backend.access.api_tokens import TokenScope
from backend.access.roles import Role
from backend.api.authorization import AskerDependency
from backend.api.dependencies import ChatDependency, DatabaseDependency, ReadersDependency
from backend.api.request_context import RequestContextDependency
from backend.conversations.assistant_service import AssistantService, AssistantUser
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline

_LONGEST_ID = 100
AssistantId: TypeAlias = Annotated[str, Path(max_length=_LONGEST_ID)]
AssistantIdField: TypeAlias = Annotated[str, Field(max_length=_LONGEST_ID)]


def get_assistants(
    asker: AskerDependency,
    readers: ReadersDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    context: RequestContextDependency,
) -> AssistantService:
    def find_sources() -> frozenset[str]:
        deadline = Deadline.after(chat.settings.search_seconds, context.cancel_token)
        return frozenset(chat.engine.index.facets(Filters(), readers, deadline).sources)

    user = AssistantUser(
        owner=asker.owner,
        readers=asker.readers,
        is_admin=asker.role is Role.ADMIN and TokenScope.ADMIN in asker.scopes,
        actor=asker.actor,
    )
    return AssistantService(database=database, user=user, find_sources=find_sources)


AssistantsDependency = Annotated[AssistantService, Depends(get_assistants)]
