"""`/api/projects`: instructions and conversations that several people share."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from backend.api import conversation_responses as responses
from backend.api import openapi
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.conversation_dependencies import (
    FOLLOWING,
    HIGHEST,
    ConversationId,
    ConversationsDependency,
    FirstEventDependency,
    ProjectFollowerDependency,
    ProjectId,
    ProjectIdField,
    ProjectsDependency,
)
from backend.api.dependencies import AppStateDependency, AssistantsDependency
from backend.api.followed_answer import open_stream
from backend.api.routes.ask import TriedQuestion, read_history
from backend.api.server_sent_events import EventStream
from backend.api.try_outs import TryOutDependency
from backend.conversations.assistant_values import LONGEST_INSTRUCTIONS, LONGEST_NAME
from backend.conversations.project_service import ProjectService
from backend.schemas.conversation import ConversationResponse, OpenedConversationResponse
from backend.schemas.project import (
    ListedProjectResponse,
    ProjectConversationResponse,
    ProjectConversationsResponse,
    ProjectMembersResponse,
    ProjectResponse,
    ProjectsResponse,
)
from backend.store.chat.assistants import DEFAULT_ID
from backend.store.chat.projects import Project

router = APIRouter()
_ALL = "/api/projects"
_ONE = f"{_ALL}/{{project_id}}"
_MEMBERS = f"{_ONE}/members"
_CONVERSATIONS = f"{_ONE}/conversations"

MemberId: TypeAlias = Annotated[int, Path(ge=1, le=HIGHEST)]
Name: TypeAlias = Annotated[str, Field(max_length=LONGEST_NAME)]
Instructions: TypeAlias = Annotated[
    str,
    Field(
        max_length=LONGEST_INSTRUCTIONS,
        description="Given to the language model with each question in the project",
    ),
]


class ProjectBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"name": "New depot", "instructions": "The depot opens in May."}]
        },
    )

    name: Name
    instructions: Instructions = ""


class ChangeProjectBody(BaseModel):
    """What is left out, or null, stays as it is."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"name": "New depot"}]}
    )

    name: Name | None = None
    instructions: Instructions | None = None


class TryProjectBody(TriedQuestion):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"instructions": "The depot opens in May.", "question": "When does it open?"}
            ]
        },
    )

    instructions: Instructions | None = None


class ProjectOfConversationBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"project_id": None}]}
    )

    project_id: ProjectIdField | None = Field(
        description="The project that the conversation shall be in; null for none"
    )


class MemberBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"email": "bob@example.com"}]},
    )

    email: str = Field(max_length=254, description="E-mail address of the colleague to add")


@router.get(_ALL, summary="List the projects that you are in")
@requires(Permission.ASK)
def list_projects(projects: ProjectsDependency) -> ProjectsResponse:
    shown = tuple(
        ListedProjectResponse.from_listed(one, is_mine=projects.is_own(one.project))
        for one in projects.list_uses()
    )
    return ProjectsResponse(projects=shown)


@router.post(_ALL, status_code=201, summary="Make a project")
@requires(Permission.ASK)
def create_project(
    body: ProjectBody, projects: ProjectsDependency, response: Response
) -> ProjectResponse:
    """A conversation is begun in it by its `project_id` at POST /api/conversations."""
    created = projects.create(body.name, body.instructions)
    response.headers["Location"] = f"{_ALL}/{created.id}"
    return _show(projects, created)


@router.get(_ONE, summary="Return a project")
@requires(Permission.ASK)
def get_project(project_id: ProjectId, projects: ProjectsDependency) -> ProjectResponse:
    return _show(projects, projects.get(project_id))


@router.patch(_ONE, summary="Change the name or the instructions of a project")
@requires(Permission.ASK)
def change_project(
    project_id: ProjectId, body: ChangeProjectBody, projects: ProjectsDependency
) -> ProjectResponse:
    return _show(projects, projects.change(project_id, body.name, body.instructions))


@router.post(
    f"{_ONE}/try",
    status_code=200,
    response_class=EventStream,
    responses={200: openapi.describe_stream(openapi.ANSWER_EVENTS)},
    summary="Ask with instructions of a project that are not saved",
)
@requires(Permission.ASK)
def try_project(
    project_id: ProjectId,
    body: TryProjectBody,
    projects: ProjectsDependency,
    assistants: AssistantsDependency,
    try_out: TryOutDependency,
) -> EventStream:
    """Server-sent events as those of POST /api/ask. The default assistant answers as it does in the project, with its files. Nothing is
    kept. Instructions that are left out, or null, are as the project has them."""
    instructions = projects.find_changed_instructions(project_id, body.instructions)
    settings = assistants.find_settings(DEFAULT_ID).in_project(project_id, instructions)
    return try_out.open(body.question, read_history(body.history), settings)


@router.delete(_ONE, status_code=204, summary="Delete a project")
@requires(Permission.ASK)
def delete_project(project_id: ProjectId, projects: ProjectsDependency) -> None:
    """Its conversations stay with those who asked, its files with those who added them."""
    projects.delete(project_id)


@router.get(_MEMBERS, summary="List who is in a project besides its owner")
@requires(Permission.ASK)
def list_project_members(
    project_id: ProjectId, projects: ProjectsDependency
) -> ProjectMembersResponse:
    return ProjectMembersResponse.from_members(projects.list_members(project_id))


@router.post(_MEMBERS, summary="Add somebody to a project")
@requires(Permission.ASK)
def add_project_member(
    project_id: ProjectId, body: MemberBody, projects: ProjectsDependency
) -> ProjectMembersResponse:
    """Whoever has the address is in the project from now on, or as soon as they have an account: whether they have one is not shown."""
    projects.add_member(project_id, body.email)
    return ProjectMembersResponse.from_members(projects.list_members(project_id))


@router.delete(
    f"{_MEMBERS}/{{member_id}}", status_code=204, summary="Remove somebody from a project"
)
@requires(Permission.ASK)
def remove_project_member(
    project_id: ProjectId, member_id: MemberId, projects: ProjectsDependency
) -> None:
    """Members may remove themselves. What they asked in it is shown to nobody else then, and the files that they added leave with them:
    both stay theirs."""
    projects.remove_member(project_id, member_id)


@router.get(_CONVERSATIONS, summary="List the conversations of a project")
@requires(Permission.ASK)
def list_project_conversations(
    project_id: ProjectId, projects: ProjectsDependency
) -> ProjectConversationsResponse:
    found = projects.list_conversations(project_id)
    return ProjectConversationsResponse(
        conversations=tuple(
            ProjectConversationResponse.from_conversation(one, is_mine=one.author == projects.owner)
            for one in found
        )
    )


@router.get(f"{_CONVERSATIONS}/{{conversation_id}}", summary="Read a conversation of a project")
@requires(Permission.ASK)
def read_project_conversation(
    project_id: ProjectId,
    conversation_id: ConversationId,
    projects: ProjectsDependency,
    conversations: ConversationsDependency,
    state: AppStateDependency,
) -> OpenedConversationResponse:
    """As its author has it open, read only. An answer that rests on a document that you may not read now is withheld."""
    found = projects.get_conversation(project_id, conversation_id)
    opened = conversations.read_of(found.author, found.id)
    return responses.make_opened(opened, state.answer_html)


@router.get(
    f"{_ONE}/messages/{{message_id}}/events",
    status_code=200,
    response_class=EventStream,
    responses=dict(FOLLOWING),
    summary="Follow an answer of a project",
)
@requires(Permission.ASK)
def follow_project_events(
    follower: ProjectFollowerDependency,
    asker: AskerDependency,
    state: AppStateDependency,
    first: FirstEventDependency,
) -> Response:
    """As the events of an answer of your own, by what you may read yourself. Files that came with the question are not named."""
    return open_stream(follower, first, state, asker)


@router.put(
    "/api/conversations/{conversation_id}/project",
    summary="Move a conversation into a project, or out of it",
)
@requires(Permission.ASK)
def move_conversation(
    conversation_id: ConversationId,
    body: ProjectOfConversationBody,
    projects: ProjectsDependency,
    conversations: ConversationsDependency,
) -> ConversationResponse:
    """One of your own, and a project that you are in. Who is in the project may then read its title and its questions, and each answer
    of which they may read all sources; the instructions of the project count from the next question on."""
    projects.move_conversation(conversation_id, body.project_id)
    return ConversationResponse.from_conversation(conversations.get(conversation_id))


def _show(projects: ProjectService, project: Project) -> ProjectResponse:
    return ProjectResponse.from_project(project, is_mine=projects.is_own(project))
