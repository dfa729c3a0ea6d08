"""The files of a question, with those of the questions before it."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.chat.context_files import ContextFile
from backend.chat.pictures import Picture
from backend.files.file_types import is_picture
from backend.store import documents, user_files
from backend.store.conversations import ConversationOwner
from backend.store.database import Database
from backend.store.messages import Message, SearchScope
from backend.store.user_files import UserFile
from connectors.access import Readers
from connectors.document import Document

MOST_PICTURES = 10
"""That are shown to a model, the latest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedFiles:
    database: Database
    owner: ConversationOwner
    texts: tuple[UserFile, ...]
    """Those of the question first, then those of earlier ones."""
    pictures: tuple[UserFile, ...]
    search_scope: SearchScope

    @property
    def text_length(self) -> int:
        """Characters of all of them."""
        return sum(file.text_length or 0 for file in self.texts)

    def read_documents(self, readers: Readers) -> list[Document]:
        """Return what the files say, as far as the asker may read it."""
        found = (documents.find(self.database, file.document_id, readers) for file in self.texts)
        return [stored.document for stored in found if stored is not None]

    def read_pictures(self) -> tuple[Picture, ...]:
        chosen = self.pictures[:MOST_PICTURES]
        data = user_files.read_pictures(self.database, self.owner, [one.id for one in chosen])
        return tuple(
            Picture(one.document_id, one.name, one.media_type, data[one.id])
            for one in chosen
            if one.id in data
        )


def find_attached(
    database: Database, owner: ConversationOwner, path: Sequence[Message]
) -> AttachedFiles | None:
    """Return the files of the questions of a path, which ends with the one that is asked; None if there are none."""
    of_messages = user_files.list_of_messages(database, [one.id for one in path])
    latest_first = [file for one in reversed(path) for file in of_messages.get(one.id, ())]
    distinct = list({file.id: file for file in latest_first if file.status == "ready"}.values())
    if not distinct:
        return None
    return AttachedFiles(
        database=database,
        owner=owner,
        texts=tuple(_without_pictures(distinct)),
        pictures=tuple(file for file in distinct if is_picture(file.media_type)),
        search_scope=path[-1].search_scope or "files",
    )


def _without_pictures(files: Sequence[UserFile]) -> list[UserFile]:
    return [file for file in files if not is_picture(file.media_type)]


def to_context_file(document: Document) -> ContextFile:
    text = "\n\n".join(section.text for section in document.sections)
    return ContextFile(document_id=document.id, name=document.title, text=text, link=document.link)
