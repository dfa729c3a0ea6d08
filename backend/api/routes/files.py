"""`/api/files`: upload files of your own, to give them to questions."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Body, Header, Query
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.file_dependencies import FileId, FilesDependency
from backend.api.multipart import read_file
from backend.schemas.file import FileResponse, FilesResponse, ListedFileResponse

router = APIRouter()
_ONE = "/api/files/{file_id}"
UPLOAD_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                },
                "example": {"file": "travel-plan.pdf"},
            }
        },
    }
}


@router.post(
    "/api/files",
    status_code=202,
    responses={409: openapi.describe_problem("You have as many files as allowed")},
    openapi_extra=UPLOAD_FORM,
    summary="Upload a file of your own",
)
@requires(Permission.ASK)
def upload_file(
    files: FilesDependency,
    body: Annotated[bytes, Body(media_type="multipart/form-data")],
    content_type: Annotated[str, Header(include_in_schema=False)] = "",
) -> FileResponse:
    """A form with one file of at most 20,000,000 bytes, pictures of 5,000,000. It is read soon: its `status` then is `ready` or `failed`. Nobody
    but you finds it. What it says is kept; its bytes are kept of pictures alone."""
    return FileResponse.from_file(files.upload(read_file(content_type, body)))


@router.get("/api/files", summary="List your files")
@requires(Permission.ASK)
def list_files(files: FilesDependency) -> FilesResponse:
    found = files.list_all()
    uses = files.count_uses(found)
    listed = (ListedFileResponse.from_listed(one, uses[one.id]) for one in found)
    return FilesResponse(files=tuple(listed))


@router.get(_ONE, summary="Say whether a file is read")
@requires(Permission.ASK)
def show_file(file_id: FileId, files: FilesDependency) -> FileResponse:
    return FileResponse.from_file(files.get(file_id))


@router.get(
    f"{_ONE}/content",
    response_class=Response,
    responses={
        200: {
            "description": "The text, or the picture",
            "content": {
                "text/plain": {
                    "schema": {"type": "string"},
                    "example": "The office moves to Nantmoor in May.",
                }
            },
        },
        409: openapi.describe_problem("It was not read"),
    },
    summary="Download what is kept of a file",
)
@requires(Permission.ASK)
def download_file(file_id: FileId, files: FilesDependency) -> Response:
    """The text that was read of it, or the picture: the bytes of other files are not kept."""
    content = files.read_content(file_id)
    name = quote(content.name, safe="", errors="replace")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "no-store",
    }
    return Response(content.data, media_type=content.media_type, headers=headers)


@router.delete(
    _ONE,
    status_code=204,
    responses={409: openapi.describe_problem("It is in use, and `unless_used` is true")},
    summary="Delete a file",
)
@requires(Permission.ASK)
def delete_file(
    file_id: FileId,
    files: FilesDependency,
    unless_used: Annotated[  # noqa: FBT002 (a query parameter)
        bool, Query(description="Refuse it, naming what has the file, where something has it")
    ] = False,
) -> None:
    """Answers that rest on it are withheld from then on, and it is gone from the projects and assistants that have it. GET /api/files says
    how many have it."""
    if unless_used:
        files.delete_unused(file_id)
    else:
        files.delete(file_id)
