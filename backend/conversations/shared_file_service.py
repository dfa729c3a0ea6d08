"""The files of projects and assistants, for one asker: list, add, remove.

Whoever is in a project adds own files to it; whoever added one removes it, and so does the owner of the project. The files of an
assistant are its owner's; whoever may use it reads them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.access.shared_file_readers import may_read_files_of
from backend.conversations.assistant_service import AssistantRefusedError, AssistantService
from backend.conversations.project_service import ProjectRefusedError, ProjectService
from backend.files.file_service import FileService
from backend.files.file_types import MOST_OF_HOLDER, UploadedFile
from backend.store import audit
from backend.store.chat import assistants, shared_files
from backend.store.chat.assistants import Visibility
from backend.store.chat.shared_files import FileHolder, SharedFile
from backend.store.database import Database
from backend.store.files.user_files import make_missing_file_error
from backend.store.owner import ConversationOwner
from connectors.errors import ActionRequiredError, ConflictError

_FULL = f"The limit of {MOST_OF_HOLDER:,} files is reached. Remove some first."


@dataclass(frozen=True, slots=True)
class HolderRights:
    """What an asker may do with the files of a project or assistant that they see."""

    may_read: bool
    may_remove_all: bool
    refusal: ActionRequiredError | None
    """Why the asker may add no file; None if they may."""


@dataclass(frozen=True, slots=True)
class SharedFileList:
    files: Sequence[SharedFile]
    rights: HolderRights
    owner: ConversationOwner
    """The person who asks."""

    def may_remove(self, file: SharedFile) -> bool:
        return self.rights.may_remove_all or file.uploader == self.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFileService:
    files: FileService
    """Of the person who asks."""
    projects: ProjectService
    assistants: AssistantService

    @property
    def database(self) -> Database:
        return self.files.database

    def list_of(self, holder: FileHolder) -> SharedFileList:
        """List the files of a project or an assistant, none where the asker may not read them.

        Raises:
            NotFoundError: there is no such project or assistant for the asker.
        """
        rights, owner = self._find_rights(holder), self.files.owner
        self.files.keeper.wake_sometimes()
        found = shared_files.list_of(self.database, holder, owner) if rights.may_read else []
        return SharedFileList(found, rights, owner)

    def add(self, holder: FileHolder, file_id: str) -> SharedFileList:
        """Add a file that the asker has uploaded.

        Raises:
            NotFoundError: there is no such project or assistant for the asker, or they have no such file.
            ProjectRefusedError, AssistantRefusedError: they may add none.
            ConflictError: it has as many as allowed.
            InvalidInputError: the file could not be read.
        """
        self._check_may_add(holder)
        with self.database.transaction() as database:
            if shared_files.add(database, self.files.owner, holder, file_id, MOST_OF_HOLDER):
                self._record(database, "add_held_file", holder, file_id)
        self.files.keeper.wake()
        return self.list_of(holder)

    def upload(self, holder: FileHolder, uploaded: UploadedFile) -> SharedFileList:
        """Take a file, and add it. Raises as `add`, and as `FileService.upload`."""
        self._check_may_add(holder)
        if len(self.list_of(holder).files) >= MOST_OF_HOLDER:
            raise ConflictError(_FULL)
        return self.add(holder, self.files.upload(uploaded).id)

    def remove(self, holder: FileHolder, file_id: str) -> None:
        """Remove a file from a project or assistant; it stays its uploader's.

        Raises:
            NotFoundError
            ProjectRefusedError, AssistantRefusedError: it is somebody else's.
        """
        listed = self.list_of(holder)
        held = next((one for one in listed.files if one.file.id == file_id), None)
        if held is None:
            raise make_missing_file_error()
        if not listed.may_remove(held):
            sentence = (
                "Only the person who added this file, or the owner of the project, may remove it."
            )
            if holder.kind == "project":
                raise ProjectRefusedError(sentence)
            raise _only_owner()
        with self.database.transaction() as database:
            shared_files.remove(database, holder, file_id)
            self._record(database, "remove_held_file", holder, file_id)
        self.files.keeper.wake()

    def _record(self, database: Database, action: str, holder: FileHolder, file_id: str) -> None:
        """Record an action by ids alone: what a file is called is for those who may read it.

        What people keep for themselves, such as an assistant that they do not share, is not in the audit.
        """
        if holder.kind == "assistant":
            found = assistants.find(database, holder.id)
            if found is None or found.values.visibility is Visibility.MINE:
                return
        actor = self.assistants.user.actor
        audit.record(database, action, f"{holder.kind}:{holder.id}", {"file": file_id}, actor)

    def _check_may_add(self, holder: FileHolder) -> None:
        refusal = self._find_rights(holder).refusal
        if refusal is not None:
            raise refusal

    def _find_rights(self, holder: FileHolder) -> HolderRights:
        """Return what the asker may do with the files of a project or an assistant. Raises NotFoundError."""
        match holder.kind:
            case "project":
                is_own = self.projects.is_own(self.projects.get(holder.id))
                return HolderRights(may_read=True, may_remove_all=is_own, refusal=None)
            case "assistant":
                return self._find_rights_of_assistant(holder.id)

    def _find_rights_of_assistant(self, assistant_id: str) -> HolderRights:
        shown, user = self.assistants.get(assistant_id), self.assistants.user
        may_read = may_read_files_of(self.database, user.readers, user.owner, assistant_id)
        refusal = None if shown.is_mine else _only_owner()
        if shown.is_default:
            refusal = AssistantRefusedError("The default assistant has no files of its own.")
        return HolderRights(may_read, may_remove_all=shown.may_change, refusal=refusal)


def _only_owner() -> AssistantRefusedError:
    return AssistantRefusedError("Only the owner of this assistant adds and removes its files.")
