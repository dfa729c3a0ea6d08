"""Whose conversations a request is about, and what answers in them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Header, Path, Query, Request
from pydantic import Field

from backend.api import openapi
from backend.api.authorization import AskerDependency, get_asker
from backend.api.dependencies import (
    AppStateDependency,
    AssistantsDependency,
    ChatDependency,
    DatabaseDependency,
    OpeningReadersDependency,
)
from backend.api.languages import find_language
from backend.api.problem_details import Problem, problem
from backend.api.readers_now import make_readers_now
from backend.api.request_context import RequestContextDependency
from backend.api.turn_maker import TurnAsker, TurnMaker
from backend.chat.readable_ids import make_own_memories
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.followed_turn import AnswerPlace, FollowedAnswer, TurnFollower
from backend.conversations.project_service import ProjectService
from backend.conversations.service import ConversationService
from backend.store.owner import ConversationOwner
from indexing.runtime.deadline import Deadline

HIGHEST = 2**31 - 1
"""The highest id of a message, or number of an event."""

ConversationId: TypeAlias = Annotated[str, Path(max_length=100)]
ShareId: TypeAlias = Annotated[str, Path(max_length=100)]
MessageId: TypeAlias = Annotated[int, Path(ge=1, le=HIGHEST)]
ProjectId: TypeAlias = Annotated[str, Path(max_length=100)]
EventNumber: TypeAlias = Annotated[int, Field(ge=0, le=HIGHEST)]
ProjectIdField: TypeAlias = Annotated[str, Field(max_length=100)]
MakeFollower: TypeAlias = Callable[[FollowedAnswer], TurnFollower]


async def get_owner(request: Request) -> ConversationOwner:
    """Return whose conversations these are: a person's, or those of the owner of the machine.

    Raises:
        Problem: 403, a service token belongs to nobody.
    """
    owner = (await get_asker(request)).owner
    if owner is None:
        raise Problem(problem(403, "Conversations belong to people; use POST /api/ask."))
    return owner


OwnerDependency = Annotated[ConversationOwner, Depends(get_owner)]


async def get_projects(
    owner: OwnerDependency, asker: AskerDependency, database: DatabaseDependency
) -> ProjectService:
    return ProjectService(database=database, owner=owner, actor=asker.actor)


ProjectsDependency = Annotated[ProjectService, Depends(get_projects)]


async def get_gate(
    asker: AskerDependency,
    readers: OpeningReadersDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    context: RequestContextDependency,
) -> AnswerGate:
    """Return the gate of the asker, by what they may read now."""
    deadline = Deadline.after(chat.settings.search_seconds, context.cancel_token)
    return AnswerGate(
        index=chat.engine.index,
        readers=readers,
        own_memories=make_own_memories(database, asker.owner),
        deadline=deadline,
    )


GateDependency = Annotated[AnswerGate, Depends(get_gate)]


async def get_conversations(
    request: Request,
    owner: OwnerDependency,
    asker: AskerDependency,
    gate: GateDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    state: AppStateDependency,
    assistants: AssistantsDependency,
    projects: ProjectsDependency,
) -> ConversationService:
    return ConversationService(
        database=database,
        owner=owner,
        gate=gate,
        turns=state.turns.of_asker(
            TurnAsker(owner, asker.readers, asker.turn_key, find_language(request)),
            TurnMaker(chat, database, state.answer_html),
        ),
        assistants=assistants,
        projects=projects,
        files=state.files,
    )


ConversationsDependency = Annotated[ConversationService, Depends(get_conversations)]


async def get_make_follower(
    request: Request,
    asker: AskerDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> MakeFollower:
    readers_now = make_readers_now(request, state.authenticator, database)
    return lambda answer: TurnFollower(
        database=database,
        answer=answer,
        index=chat.engine.index,
        readers_now=readers_now,
        own_memories=make_own_memories(database, asker.owner),
        seconds=chat.settings.search_seconds,
        news=state.turns.news,
        is_announced=lambda: state.turns.announces(answer.message_id),
        cancel_token=context.cancel_token,
    )


MakeFollowerDependency = Annotated[MakeFollower, Depends(get_make_follower)]


async def get_follower(
    conversation_id: ConversationId,
    message_id: MessageId,
    owner: OwnerDependency,
    make_follower: MakeFollowerDependency,
) -> TurnFollower:
    place = AnswerPlace(owner, conversation_id)
    return make_follower(FollowedAnswer(message_id, lambda: place, is_own=True))


FollowerDependency = Annotated[TurnFollower, Depends(get_follower)]


async def get_project_follower(
    project_id: ProjectId,
    message_id: MessageId,
    projects: ProjectsDependency,
    make_follower: MakeFollowerDependency,
) -> TurnFollower:
    """Return what follows an answer of whoever is in the project, as long as the asker is in it too."""

    def find_place() -> AnswerPlace:
        found = projects.get_conversation_of(project_id, message_id)
        return AnswerPlace(found.author, found.id)

    return make_follower(FollowedAnswer(message_id, find_place, is_own=False))


async def find_first_event(
    after: Annotated[EventNumber, Query(description="Only events behind this number")] = 0,
    last_event_id: Annotated[
        EventNumber | None, Header(description="The same, as browsers send it")
    ] = None,
) -> int:
    """Return the number behind which a client wants the events of an answer."""
    return after if last_event_id is None else last_event_id


FirstEventDependency = Annotated[int, Depends(find_first_event)]
FOLLOWING: Mapping[int | str, dict[str, Any]] = MappingProxyType(
    {
        200: openapi.describe_stream(openapi.FOLLOWED_EVENTS),
        204: {"description": "Nothing follows any more: the message has the answer"},
    }
)
"""What a route that follows an answer responds with."""
ProjectFollowerDependency = Annotated[TurnFollower, Depends(get_project_follower)]
