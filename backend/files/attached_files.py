"""The files that an answer may draw on: those of its project and its assistant, of its question and of the questions before it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from backend.access.readers import make_file_token
from backend.chat.context_files import ContextFile
from backend.chat.file_use import Holder, UnreadFiles, UnreadStatus
from backend.chat.pictures import Picture
from backend.files.file_types import is_picture
from backend.store.chat import shared_files
from backend.store.chat.messages import Message, SearchScope
from backend.store.chat.shared_files import FileHolder, FileHolders, SharedFile
from backend.store.database import Database
from backend.store.documents import documents
from backend.store.files import user_files
from backend.store.files.file_source import FILES_OF_ASSISTANT, FILES_OF_PROJECT
from backend.store.files.user_files import UserFile
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from connectors.document import Document

MOST_PICTURES = 10
"""That are shown to a model, the latest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedFiles:
    database: Database
    of_project: tuple[UserFile, ...] = ()
    of_assistant: tuple[UserFile, ...] = ()
    of_question: tuple[UserFile, ...] = ()
    """Its own first, then those of earlier ones. Each file is in one of the three."""
    unread: tuple[UnreadFiles, ...] = ()
    """Of the project and the assistant; a question has none: it is refused until its files are read."""
    deleted: int = 0
    """How many came with questions and were deleted since."""
    unlabelled: frozenset[str] = frozenset()
    """Documents of files whose labels the index may not have yet."""
    holders: FileHolders
    search_scope: SearchScope

    @property
    def texts(self) -> tuple[UserFile, ...]:
        return self.select_texts((*self.of_project, *self.of_assistant, *self.of_question))

    @property
    def own_texts(self) -> tuple[UserFile, ...]:
        return self.select_texts(self.of_question)

    def select_texts(self, files: Iterable[UserFile]) -> tuple[UserFile, ...]:
        """Return those of the files that are no pictures."""
        return tuple(file for file in files if not is_picture(file.media_type))

    @property
    def pictures(self) -> tuple[UserFile, ...]:
        every = (*self.of_question, *self.of_assistant, *self.of_project)
        return tuple(file for file in every if is_picture(file.media_type))

    @property
    def text_length(self) -> int:
        """Characters of all of them."""
        return sum(file.text_length or 0 for file in self.texts)

    @property
    def source_names(self) -> Mapping[str, str]:
        """What the source of each shared file is called, by the id of its document: to most it is not their own."""
        of_project = {file.document_id: FILES_OF_PROJECT for file in self.of_project}
        return of_project | {file.document_id: FILES_OF_ASSISTANT for file in self.of_assistant}

    def read_documents(self, readers: Readers) -> list[Document]:
        """Return what the files say, as far as the asker may read it."""
        found = (documents.find(self.database, file.document_id, readers) for file in self.texts)
        return [stored.document for stored in found if stored is not None]

    def read_pictures(self) -> tuple[Picture, ...]:
        chosen = self.pictures[:MOST_PICTURES]
        data = user_files.read_pictures(self.database, [one.id for one in chosen])
        return tuple(
            Picture(one.document_id, one.name, one.media_type, data[one.id])
            for one in chosen
            if one.id in data
        )


def find_attached(
    database: Database,
    owner: ConversationOwner | None,
    path: Sequence[Message],
    holders: FileHolders,
    readers: Readers,
) -> AttachedFiles | None:
    """Return the files of an answer; None if there are none, not even one that is not read yet or was deleted.

    Args:
        path: of the conversation, up to the question that is asked; empty for one that is not kept.
        readers: what the answer may draw on.
    """
    of_project = _list_shared(database, owner, _project(holders), readers)
    of_assistant = _list_shared(database, owner, _assistant(holders), readers)
    unread = _count_unread(of_project, of_assistant)
    deleted = user_files.count_deleted_of(database, [one.id for one in path])
    seen: set[str] = set()
    found = AttachedFiles(
        database=database,
        of_project=_take_new([shared.file for shared in of_project], seen),
        of_assistant=_take_new([shared.file for shared in of_assistant], seen),
        of_question=_take_new(_list_of_path(database, path), seen),
        unlabelled=frozenset(
            shared.file.document_id
            for shared in (*of_project, *of_assistant)
            if shared.file.status == "ready" and not shared.is_labelled
        ),
        unread=unread,
        deleted=deleted,
        holders=holders,
        search_scope=(path[-1].search_scope if path else None) or "files",
    )
    return found if seen or unread or deleted else None


def _take_new(files: Iterable[UserFile], seen: set[str]) -> tuple[UserFile, ...]:
    """Return those that are ready and not seen yet."""
    distinct = {file.id: file for file in files if file.status == "ready" and file.id not in seen}
    seen.update(distinct)
    return tuple(distinct.values())


def _count_unread(
    of_project: Sequence[SharedFile], of_assistant: Sequence[SharedFile]
) -> tuple[UnreadFiles, ...]:
    """Count those that are not ready; one that both have is of the project."""
    holders: dict[str, Holder] = {one.file.id: "assistant" for one in of_assistant}
    holders |= {one.file.id: "project" for one in of_project}
    statuses = {one.file.id: one.file.status for one in (*of_project, *of_assistant)}
    counted = Counter((holders[one], status) for one, status in statuses.items())
    return tuple(
        UnreadFiles(holder, status, number)
        for holder in get_args(Holder)
        for status in get_args(UnreadStatus)
        if (number := counted[holder, status])
    )


def _list_shared(
    database: Database, owner: ConversationOwner | None, holder: FileHolder | None, readers: Readers
) -> list[SharedFile]:
    if holder is None:
        return []
    found = shared_files.list_of(database, holder, owner)
    return [one for one in found if readers.hold_any([make_file_token(one.file.id)])]


def _project(holders: FileHolders) -> FileHolder | None:
    return None if holders.project_id is None else FileHolder("project", holders.project_id)


def _assistant(holders: FileHolders) -> FileHolder | None:
    return None if holders.assistant_id is None else FileHolder("assistant", holders.assistant_id)


def _list_of_path(database: Database, path: Sequence[Message]) -> list[UserFile]:
    """Return the files of its questions, those of the last one first."""
    of_messages = user_files.list_of_messages(database, [one.id for one in path])
    return [file for one in reversed(path) for file in of_messages.get(one.id, ())]


def to_context_file(document: Document) -> ContextFile:
    text = "\n\n".join(section.text for section in document.sections)
    return ContextFile(document_id=document.id, name=document.title, text=text, link=document.link)
