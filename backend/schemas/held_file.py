"""JSON of the files of projects and assistants."""

from datetime import datetime
from typing import TYPE_CHECKING, Self

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example
from backend.schemas.file import FILE, FileResponse

if TYPE_CHECKING:
    from backend.conversations.held_file_service import HeldFileList
    from backend.store.held_files import HeldFile

_HELD: dict[str, JsonValue] = {
    "file": FILE,
    "added_at": "2026-03-02T09:31:00Z",
    "uploader": "Bob Day",
    "mine": False,
    "may_remove": True,
}


class HeldFileResponse(Schema):
    model_config = with_example(**_HELD)

    file: FileResponse
    added_at: datetime
    uploader: str
    """The name or the address of a person; nothing for the owner of the machine."""
    mine: bool
    may_remove: bool

    @classmethod
    def from_held(cls, held: "HeldFile", listed: "HeldFileList") -> Self:
        return cls(
            file=FileResponse.from_file(held.file),
            added_at=held.added_at,
            uploader=held.uploader_name,
            mine=held.uploader == listed.owner,
            may_remove=listed.may_remove(held),
        )


class HeldFilesResponse(Schema):
    model_config = with_example(files=[_HELD], may_add=True)

    files: tuple[HeldFileResponse, ...]
    """In the order in which they were added. Those that you may not read are left out."""
    may_add: bool

    @classmethod
    def from_list(cls, listed: "HeldFileList") -> Self:
        return cls(
            files=tuple(HeldFileResponse.from_held(one, listed) for one in listed.files),
            may_add=listed.rights.refusal is None,
        )
