"""JSON of projects."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Self

from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.conversations.project_service import ListedProject
    from backend.store.chat.projects import Project, ProjectConversation, ProjectMember


class ProjectResponse(Schema):
    model_config = with_example(
        id="kD3vT0cWqXe2mYbR9sLhGg",
        name="New depot",
        instructions="The depot in Leeds opens in May.",
        mine=True,
        created_at="2026-03-02T09:30:00Z",
    )

    id: str
    name: str
    instructions: str
    """Given to the language model with each question in it."""
    mine: bool
    """Whether you own it: only the owner changes it, and who is in it."""
    created_at: datetime

    @classmethod
    def from_project(cls, project: "Project", *, is_mine: bool) -> Self:
        return cls(
            id=project.id,
            name=project.name,
            instructions=project.instructions,
            mine=is_mine,
            created_at=project.created_at,
        )


class ListedProjectResponse(ProjectResponse):
    model_config = with_example(
        **ProjectResponse.example().model_dump(mode="json"),
        owner="Ann Lee",
        members=3,
        files=2,
        conversations=12,
        used_at="2026-03-04T16:05:00Z",
    )

    owner: str
    """The name or the address of a person; nothing for the owner of the machine."""
    members: int
    """Who is in it besides its owner."""
    files: int
    """That everybody in it may read."""
    conversations: int
    """Of those who are in it now."""
    used_at: datetime | None
    """When the last question of these was asked."""

    @classmethod
    def from_listed(cls, listed: "ListedProject", *, is_mine: bool) -> Self:
        shown = ProjectResponse.from_project(listed.project, is_mine=is_mine)
        return cls(
            **shown.model_dump(),
            owner=listed.use.owner_name,
            members=listed.use.members,
            files=listed.files,
            conversations=listed.use.conversations,
            used_at=listed.use.used_at,
        )


class ProjectsResponse(Schema):
    model_config = with_example(projects=[ListedProjectResponse.example().model_dump(mode="json")])

    projects: tuple[ListedProjectResponse, ...]


class ProjectMemberResponse(Schema):
    model_config = with_example(id=7, name="Bob Day", email="bob@example.com")

    id: int
    """Of the membership."""
    name: str
    """Empty until they have asked in the project or added a file: whether an address has an account is not shown."""
    email: str
    """As it was added."""


class ProjectMembersResponse(Schema):
    model_config = with_example(members=[ProjectMemberResponse.example().model_dump(mode="json")])

    members: tuple[ProjectMemberResponse, ...]
    """Who is in it besides its owner, by their addresses."""

    @classmethod
    def from_members(cls, members: "Iterable[ProjectMember]") -> Self:
        return cls(members=tuple(map(ProjectMemberResponse.model_validate, members)))


class ProjectConversationResponse(Schema):
    model_config = with_example(
        id="kD3vT0cWqXe2mYbR9sLhGg",
        title="When does the depot open?",
        author="Bob Day",
        mine=False,
        updated_at="2026-03-02T09:30:00Z",
    )

    id: str
    title: str
    author: str
    """The name or the address of a person; nothing for the owner of the machine."""
    mine: bool
    updated_at: datetime
    """When its last question was asked."""

    @classmethod
    def from_conversation(cls, found: "ProjectConversation", *, is_mine: bool) -> Self:
        return cls(
            id=found.id,
            title=found.title,
            author=found.author_name,
            mine=is_mine,
            updated_at=found.updated_at,
        )


class ProjectConversationsResponse(Schema):
    model_config = with_example(
        conversations=[ProjectConversationResponse.example().model_dump(mode="json")]
    )

    conversations: tuple[ProjectConversationResponse, ...]
    """The last used one first, at most 200."""
