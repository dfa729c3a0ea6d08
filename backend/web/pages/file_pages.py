"""The page of a person's own files: what was uploaded, where it is used, and what can be done with it."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from backend.api.authorization import Permission, requires
from backend.api.file_dependencies import FileId, FilesDependency
from backend.files.file_service import MOST_NAMED
from backend.web.templates import page

FILES = "/files"

router = APIRouter(include_in_schema=False)


@router.get(FILES)
@requires(Permission.ASK)
def files_page(request: Request, files: FilesDependency) -> Response:
    found = files.list_all()
    values = {
        "files": found,
        "uses": files.count_uses(found),
        "named": files.list_uses(found),
        "most_named": MOST_NAMED,
    }
    return page(request, "files.html", "chat", values)


@router.post(f"{FILES}/{{file_id}}/delete")
@requires(Permission.ASK)
def delete_file(file_id: FileId, files: FilesDependency) -> Response:
    files.delete(file_id)
    return RedirectResponse(FILES, 303)
