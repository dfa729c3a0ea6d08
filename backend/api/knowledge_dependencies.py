"""Whose kept knowledge a request is about, and what of it."""

from datetime import timedelta
from typing import Annotated, TypeAlias

from fastapi import Depends, Path, Query

from backend.api.conversation_dependencies import GateDependency, OwnerDependency, ProjectIdField
from backend.api.dependencies import ChatDependency, DatabaseDependency
from backend.research.knowledge.gate import KnowledgeGate
from backend.research.knowledge.service import KnowledgeService
from backend.store.research.knowledge_records import KnowledgePlace
from connectors.errors import InvalidInputError

LONGEST_QUERY = 2_000
_LONGEST_ID = 100
ItemId: TypeAlias = Annotated[str, Path(max_length=_LONGEST_ID)]


def get_knowledge(
    owner: OwnerDependency,
    database: DatabaseDependency,
    gate: GateDependency,
    chat: ChatDependency,
) -> KnowledgeService:
    return KnowledgeService(
        database=database,
        owner=owner,
        gate=KnowledgeGate(
            database=database,
            asker=owner,
            answers=gate,
            web_age=timedelta(days=chat.settings.knowledge_web_days),
        ),
    )


KnowledgeDependency = Annotated[KnowledgeService, Depends(get_knowledge)]


async def find_place(
    conversation_id: Annotated[
        str | None, Query(max_length=_LONGEST_ID, description="What belongs to this conversation")
    ] = None,
    project_id: Annotated[
        ProjectIdField | None, Query(description="What belongs to this project")
    ] = None,
) -> KnowledgePlace | None:
    """Return what the request names; None where it names nothing.

    Raises:
        InvalidInputError: it names both.
    """
    match conversation_id, project_id:
        case None, None:
            return None
        case str(conversation), None:
            return KnowledgePlace("conversation", conversation)
        case None, str(project):
            return KnowledgePlace("project", project)
        case _:
            raise InvalidInputError("Name a conversation or a project, not both.")


PlaceDependency = Annotated[KnowledgePlace | None, Depends(find_place)]
