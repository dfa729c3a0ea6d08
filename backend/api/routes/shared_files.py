"""`/api/projects/{id}/files` and `/api/assistants/{id}/files`: files that are read with each question there."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.conversation_dependencies import ProjectId, ProjectsDependency
from backend.api.dependencies import AssistantId, AssistantsDependency
from backend.api.file_dependencies import FileId, FilesDependency
from backend.api.multipart import read_file
from backend.api.routes.files import UPLOAD_FORM
from backend.conversations.shared_file_service import SharedFileService
from backend.schemas.shared_file import SharedFilesResponse
from backend.store.chat.shared_files import FileHolder

router = APIRouter()
_OF_PROJECT = "/api/projects/{project_id}/files"
_OF_ASSISTANT = "/api/assistants/{assistant_id}/files"
_FULL: dict[int | str, dict[str, Any]] = {
    409: openapi.describe_problem("There are as many files as allowed")
}


def get_shared_files(
    files: FilesDependency, projects: ProjectsDependency, assistants: AssistantsDependency
) -> SharedFileService:
    return SharedFileService(files=files, projects=projects, assistants=assistants)


SharedFilesDependency = Annotated[SharedFileService, Depends(get_shared_files)]
_Form = Annotated[bytes, Body(media_type="multipart/form-data")]
_ContentType = Annotated[str, Header(include_in_schema=False)]


def _project(project_id: ProjectId) -> FileHolder:
    return FileHolder("project", project_id)


def _assistant(assistant_id: AssistantId) -> FileHolder:
    return FileHolder("assistant", assistant_id)


_Project = Annotated[FileHolder, Depends(_project)]
_Assistant = Annotated[FileHolder, Depends(_assistant)]


@router.get(_OF_PROJECT, summary="List the files of a project")
@requires(Permission.ASK)
def list_project_files(holder: _Project, shared: SharedFilesDependency) -> SharedFilesResponse:
    return SharedFilesResponse.from_list(shared.list_of(holder))


@router.post(
    _OF_PROJECT,
    status_code=202,
    responses=_FULL,
    openapi_extra=UPLOAD_FORM,
    summary="Upload a file to a project",
)
@requires(Permission.ASK)
def upload_project_file(
    holder: _Project, shared: SharedFilesDependency, body: _Form, content_type: _ContentType = ""
) -> SharedFilesResponse:
    """As POST /api/files. Everybody in the project can read it, in conversations of the project."""
    return SharedFilesResponse.from_list(shared.upload(holder, read_file(content_type, body)))


@router.put(f"{_OF_PROJECT}/{{file_id}}", responses=_FULL, summary="Add your file to a project")
@requires(Permission.ASK)
def add_project_file(
    holder: _Project, file_id: FileId, shared: SharedFilesDependency
) -> SharedFilesResponse:
    return SharedFilesResponse.from_list(shared.add(holder, file_id))


@router.delete(
    f"{_OF_PROJECT}/{{file_id}}", status_code=204, summary="Remove a file from a project"
)
@requires(Permission.ASK)
def remove_project_file(holder: _Project, file_id: FileId, shared: SharedFilesDependency) -> None:
    """It stays its uploader's. Answers that rest on it are withheld from the others."""
    shared.remove(holder, file_id)


@router.get(_OF_ASSISTANT, summary="List the files of an assistant")
@requires(Permission.ASK)
def list_assistant_files(holder: _Assistant, shared: SharedFilesDependency) -> SharedFilesResponse:
    return SharedFilesResponse.from_list(shared.list_of(holder))


@router.post(
    _OF_ASSISTANT,
    status_code=202,
    responses=_FULL,
    openapi_extra=UPLOAD_FORM,
    summary="Upload a file to an assistant of yours",
)
@requires(Permission.ASK)
def upload_assistant_file(
    holder: _Assistant, shared: SharedFilesDependency, body: _Form, content_type: _ContentType = ""
) -> SharedFilesResponse:
    """As POST /api/files. Everyone who may use the assistant can read it, when they ask the assistant."""
    return SharedFilesResponse.from_list(shared.upload(holder, read_file(content_type, body)))


@router.put(
    f"{_OF_ASSISTANT}/{{file_id}}", responses=_FULL, summary="Add your file to your assistant"
)
@requires(Permission.ASK)
def add_assistant_file(
    holder: _Assistant, file_id: FileId, shared: SharedFilesDependency
) -> SharedFilesResponse:
    return SharedFilesResponse.from_list(shared.add(holder, file_id))


@router.delete(
    f"{_OF_ASSISTANT}/{{file_id}}", status_code=204, summary="Remove a file from an assistant"
)
@requires(Permission.ASK)
def remove_assistant_file(
    holder: _Assistant, file_id: FileId, shared: SharedFilesDependency
) -> None:
    """It stays its uploader's. Answers that rest on it are withheld from the others."""
    shared.remove(holder, file_id)
