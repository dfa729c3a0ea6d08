"""A running answer keeps to what its asker may read now, not to what it was when the answer began."""

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from backend.chat.citations.citation_processor import CitationInfo, SourceKind
from backend.chat.events import AnswerDone, ChatEvent, EarlierFindingsShown, MemoriesShown
from backend.chat.file_use import FilesGiven
from backend.chat.passages import PassagesShown
from backend.chat.readable_ids import OwnMemories, find_readable, is_sent_picture
from backend.search.events import SectionsSelected
from connectors.access import Readers
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

EVERY = 1.0
"""Seconds after which rights are read again, whatever is written."""

_READ_BY_OTHER_RULES = {SourceKind.WEB, SourceKind.RESEARCH}
"""Anybody may read the web; kept knowledge is read by whoever may read its documents, which an event before names."""

ReadersNow: TypeAlias = Callable[[], Readers | None]
"""Returns what the asker may read now; None if it is recognized no more, since its session or token has ended."""


class AskerGoneError(Exception):
    """The session or token of the asker has ended."""


class DocumentWithdrawnError(Exception):
    """A document or a memory that the answer draws on was deleted, or the asker may not read it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RightsWatch:
    readers_now: ReadersNow
    index: Index
    own_memories: OwnMemories
    deadline: Deadline
    documents: frozenset[str] = frozenset()
    """Those that the answer draws on from its start, memories included: earlier answers that the model is given rest on them."""

    def follow(self, events: Iterator[ChatEvent]) -> Generator[ChatEvent, None, None]:
        """Yield the events; read the rights again before each that cites or quotes, and once a second.

        The model has read the documents: what it goes on to write may be of any of them, cited or not. So the answer
        ends where one of them is withdrawn.

        Raises:
            AskerGoneError, DocumentWithdrawnError: the event is not yielded.
        """
        documents = set(self.documents)
        checked = time.monotonic()
        for event in events:
            shown = [one for one in list_documents(event) if not is_sent_picture(one)]
            documents.update(shown)
            if shown or time.monotonic() - checked >= EVERY:
                self._check(documents)
                checked = time.monotonic()
            yield event

    def _check(self, documents: set[str]) -> None:
        readers = self.readers_now()
        if readers is None:
            raise AskerGoneError
        readable = find_readable(documents, self.index, readers, self.own_memories, self.deadline)
        if not readable.issuperset(documents):
            raise DocumentWithdrawnError


def list_documents(event: ChatEvent) -> list[str]:
    """Return the documents that an event cites or quotes, or that the model is given."""
    match event:
        case FilesGiven(document_ids=given):
            return given
        case MemoriesShown(references=references):
            return list(references)
        case EarlierFindingsShown(document_ids=documents):
            return sorted(documents)
        case SectionsSelected(sections=sections):
            return [section.document_id for section in sections]
        case CitationInfo(kind=SourceKind.WEB | SourceKind.RESEARCH):
            return []
        case CitationInfo(document_id=document):
            return [document]
        case PassagesShown(passages=passages):
            return [passage.document_id for passage in passages]
        case AnswerDone(documents=documents):
            return [one.document_id for one in documents if one.kind not in _READ_BY_OTHER_RULES]
        case _:
            return []
