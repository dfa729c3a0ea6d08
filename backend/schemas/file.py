"""JSON of people's own files."""

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.chat.file_use import FilesGiven
    from backend.store.files.file_usage import FileUsage
    from backend.store.files.user_files import UserFile

FILE: dict[str, JsonValue] = {
    "id": "q1WzYc0dX3pC5vJm2sT8bA",
    "name": "travel-plan.pdf",
    "media_type": "application/pdf",
    "size": 48_213,
    "text_length": 5_120,
    "status": "ready",
    "problem": None,
    "document_id": "Your files:q1WzYc0dX3pC5vJm2sT8bA",
    "created_at": "2026-03-02T09:30:00Z",
    "used": True,
}


_USES: dict[str, JsonValue] = {"conversations": 2, "projects": 1, "assistants": 0}


class FileResponse(Schema):
    model_config = with_example(**FILE)

    id: str
    name: str
    media_type: str
    size: int
    """Bytes."""
    text_length: int | None
    """Characters; null until it is read."""
    status: Literal["reading", "ready", "failed"]
    problem: str | None
    """Why it could not be read."""
    document_id: str
    """Its id among your documents, once it is ready."""
    created_at: datetime
    used: bool
    """Whether a question, a project or an assistant has it."""

    @classmethod
    def from_file(cls, file: "UserFile") -> Self:
        return cls.model_validate(file)


class ListedFileResponse(FileResponse):
    model_config = with_example(**FILE, **_USES)

    conversations: int
    """In how many of your conversations it is."""
    projects: int
    """In how many projects it is, where others read it."""
    assistants: int
    """How many assistants have it, whose users read it."""

    @classmethod
    def from_listed(cls, file: "UserFile", uses: "FileUsage") -> Self:
        known = FileResponse.from_file(file).model_dump()
        return cls.model_validate(known | asdict(uses))


class FilesResponse(Schema):
    model_config = with_example(files=[FILE | _USES])

    files: tuple[ListedFileResponse, ...]
    """The newest first."""


class UnreadFilesResponse(Schema):
    holder: Literal["project", "assistant"]
    status: Literal["reading", "failed"]
    """They were still being read when the question was asked; or could not be."""
    number: int


class FilesGivenResponse(Schema):
    """The event `files`: what becomes of the files of the question and of those before it, of its project and its assistant."""

    model_config = with_example(
        use="scope",
        sentence="Only these 30 files are searched: together they are too long to be read whole.",
        names=["travel-plan.pdf"],
        unseen=[],
        unread=[],
    )

    use: Literal["whole", "scope", "everything", "added"]
    """`whole`: they are read whole. `scope`: they do not fit, and they alone are searched. `everything`: they do not fit, and all is searched.
    `added`: those of an assistant do not fit, and are searched with what it is limited to."""
    sentence: str
    """What to say to the asker; empty where there is nothing to say."""
    names: tuple[str, ...]
    """Of the files that came with questions; and of those of the project and the assistant if they are read whole."""
    unseen: tuple[str, ...]
    """Pictures that were not looked at."""
    unread: tuple[UnreadFilesResponse, ...] = ()
    """Files of the project and of the assistant that were not used, since they were not read; without their names."""

    @classmethod
    def from_given(cls, given: "FilesGiven") -> Self:
        return cls(
            use=given.use,
            sentence=given.sentence,
            names=given.names,
            unseen=tuple(file.name for file in given.unseen),
            unread=tuple(map(UnreadFilesResponse.model_validate, given.unread)),
        )
