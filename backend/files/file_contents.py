"""What is kept of a file, to be downloaded: the picture, or the text that was read of it."""

from dataclasses import dataclass

from backend.access.readers import add_own_files
from backend.files.file_types import is_picture
from backend.store.database import Database
from backend.store.documents import documents
from backend.store.files import user_files
from backend.store.files.user_files import UserFile, make_missing_file_error
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from connectors.errors import ConflictError

_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class FileContent:
    name: str
    media_type: str
    data: bytes


def read_content(database: Database, owner: ConversationOwner, file: UserFile) -> FileContent:
    """Return what is kept of a file: its text, or the picture.

    Raises:
        ConflictError: it is not read yet, or could not be read.
        NotFoundError: it was deleted meanwhile.
    """
    if file.status != "ready":
        raise ConflictError(f"{file.name} was not read, so nothing of it is kept.")
    if is_picture(file.media_type):
        return _read_picture(database, file)
    found = documents.find(database, file.document_id, add_own_files(Readers.of(), owner))
    if found is None:
        raise make_missing_file_error()
    text = "\n\n".join(section.text for section in found.document.sections)
    return FileContent(_name_text(file.name), _TEXT, text.encode())


def _read_picture(database: Database, file: UserFile) -> FileContent:
    data = user_files.read_pictures(database, [file.id]).get(file.id)
    if data is None:
        raise make_missing_file_error()
    return FileContent(file.name, file.media_type, data)


def _name_text(name: str) -> str:
    return name if name.endswith((".txt", ".md")) else f"{name}.txt"
