"""Whose research runs a request is about, and what follows them."""

from typing import Annotated, TypeAlias

from fastapi import Depends, Path, Request

from backend.api.authorization import AskerDependency
from backend.api.conversation_dependencies import GateDependency, OwnerDependency
from backend.api.dependencies import AppStateDependency, ChatDependency, DatabaseDependency
from backend.api.readers_now import make_readers_now
from backend.api.request_context import RequestContextDependency
from backend.chat.readable_ids import make_own_memories
from backend.research.runs.followed_research import ResearchFollower
from backend.research.runs.service import ResearchService

ResearchId: TypeAlias = Annotated[str, Path(max_length=100)]


async def get_research(
    owner: OwnerDependency,
    asker: AskerDependency,
    gate: GateDependency,
    database: DatabaseDependency,
) -> ResearchService:
    return ResearchService(
        database=database,
        owner=owner,
        gate=gate,
        acting_as=tuple(sorted(asker.readers.tokens)),
    )


ResearchDependency = Annotated[ResearchService, Depends(get_research)]


async def get_research_follower(
    research_id: ResearchId,
    request: Request,
    owner: OwnerDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> ResearchFollower:
    return ResearchFollower(
        database=database,
        run_id=research_id,
        owner=owner,
        index=chat.engine.index,
        readers_now=make_readers_now(request, state.authenticator, database),
        own_memories=make_own_memories(database, owner),
        seconds=chat.settings.search_seconds,
        news=state.turns.news,
        cancel_token=context.cancel_token,
    )


ResearchFollowerDependency = Annotated[ResearchFollower, Depends(get_research_follower)]
