"""The files of one person: upload, list, delete."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backend.files.file_contents import FileContent, read_content
from backend.files.file_keeper import FileKeeper
from backend.files.file_types import MOST_FILES, UploadedFile, check_file
from backend.store.database import Database
from backend.store.files import file_source, file_usage, user_files
from backend.store.files.file_usage import FileUsage, FileUses
from backend.store.files.user_files import NewFile, UserFile
from backend.store.owner import ConversationOwner
from backend.store.random_ids import make_random_id
from connectors.errors import ConflictError

MOST_NAMED = 5
"""Of what has a file, so many are named."""


@dataclass(frozen=True, slots=True)
class FileService:
    database: Database
    owner: ConversationOwner
    keeper: FileKeeper

    def upload(self, uploaded: UploadedFile) -> UserFile:
        """Take a file, which is read soon; the same one once more is the one that there is.

        Raises:
            InvalidInputError, ConflictError, TemporarilyUnavailableError
        """
        name, media_type = check_file(uploaded)
        file_id = make_random_id()
        new = NewFile(
            id=file_id,
            name=name,
            media_type=media_type,
            size=len(uploaded.data),
            sha256=hashlib.sha256(uploaded.data).hexdigest(),
            document_id=file_source.make_document_id(file_id),
            data=uploaded.data,
        )
        file = user_files.add(self.database, self.owner, new, MOST_FILES)
        self.keeper.wake()
        return file

    def list_all(self) -> Sequence[UserFile]:
        self.keeper.wake_sometimes()
        return user_files.list_files(self.database, self.owner, MOST_FILES)

    def get(self, file_id: str) -> UserFile:
        """Return one's own file. Raises NotFoundError."""
        self.keeper.wake_sometimes()
        return user_files.find(self.database, self.owner, file_id)

    def count_uses(self, files: Sequence[UserFile]) -> Mapping[str, FileUsage]:
        """Return where each of one's own files is used."""
        return file_usage.count_uses(self.database, [one.id for one in files])

    def read_content(self, file_id: str) -> FileContent:
        """Return what is kept of a file. Raises NotFoundError, ConflictError."""
        return read_content(self.database, self.owner, self.get(file_id))

    def list_uses(self, files: Sequence[UserFile]) -> Mapping[str, FileUses]:
        """Return what has each of one's own files."""
        return file_usage.list_uses(self.database, [one.id for one in files])

    def delete(self, file_id: str) -> None:
        """Delete a file, whatever has it. Raises NotFoundError."""
        user_files.mark_for_removal(self.database, self.owner, file_id)
        self.keeper.wake()

    def delete_unused(self, file_id: str) -> None:
        """Delete a file that nothing has.

        Raises:
            NotFoundError
            ConflictError: something has the file, which the message names.
        """
        if not user_files.mark_if_unused(self.database, self.owner, file_id):
            file = user_files.find(self.database, self.owner, file_id)
            named = _name_uses(self.list_uses([file])[file.id])
            raise ConflictError(
                f"{file.name} is used by {named}."
                if named
                else f"{file.name} was in use a moment ago. Try again."
            )
        self.keeper.wake()


def _name_uses(uses: FileUses) -> str:
    named = (
        *(f"the project “{name}”" for name in uses.projects),
        *(f"the assistant “{name}”" for name in uses.assistants),
        *(f"the conversation “{title}”" for title in uses.conversations),
    )
    more = len(named) - MOST_NAMED
    return ", ".join(named[:MOST_NAMED] + ((f"{more:,} more",) if more > 0 else ()))
