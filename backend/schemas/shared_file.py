"""JSON of the files of projects and assistants."""

from datetime import datetime
from typing import TYPE_CHECKING, Self

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example
from backend.schemas.file import FILE, FileResponse

if TYPE_CHECKING:
    from backend.conversations.shared_file_service import SharedFileList
    from backend.store.chat.shared_files import SharedFile

_SHARED: dict[str, JsonValue] = {
    "file": FILE,
    "added_at": "2026-03-02T09:31:00Z",
    "uploader": "Bob Day",
    "mine": False,
    "may_remove": True,
}


class SharedFileResponse(Schema):
    model_config = with_example(**_SHARED)

    file: FileResponse
    added_at: datetime
    uploader: str
    """The name or the address of a person; nothing for the owner of the machine."""
    mine: bool
    may_remove: bool

    @classmethod
    def from_file(cls, shared: "SharedFile", listed: "SharedFileList") -> Self:
        return cls(
            file=FileResponse.from_file(shared.file),
            added_at=shared.added_at,
            uploader=shared.uploader_name,
            mine=shared.uploader == listed.owner,
            may_remove=listed.may_remove(shared),
        )


class SharedFilesResponse(Schema):
    model_config = with_example(files=[_SHARED], may_add=True)

    files: tuple[SharedFileResponse, ...]
    """In the order in which they were added. Those that you may not read are left out."""
    may_add: bool

    @classmethod
    def from_list(cls, listed: "SharedFileList") -> Self:
        return cls(
            files=tuple(SharedFileResponse.from_file(one, listed) for one in listed.files),
            may_add=listed.rights.refusal is None,
        )
