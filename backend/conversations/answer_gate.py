"""The gate of stored answers: what rests on a document that the asker may not read now is shown to nobody, its owner included."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from backend.store.messages import Message
from connectors.access import Readers
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

WITHHELD = "This answer rests on sources that you may not read."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGate:
    index: Index
    readers: Readers
    """What the asker may read as of now."""
    deadline: Deadline

    def find_readable(self, document_ids: Iterable[str]) -> frozenset[str]:
        """Return those of the documents that exist and that the asker may read, by one call of the index."""
        documents = sorted(set(document_ids))
        # Each document has a first chunk.
        ranges = [ChunkRange(document, 0, 1) for document in documents]
        found = self.index.chunks(ranges, self.readers, self.deadline) if ranges else []
        return frozenset(one for one, chunks in zip(documents, found, strict=True) if chunks)

    def allows(self, document_ids: Collection[str]) -> bool:
        return self.find_readable(document_ids).issuperset(document_ids)

    def find_withheld(self, messages: Collection[Message]) -> frozenset[int]:
        """Return the answers among these messages that may not be shown, by one call of the index."""
        readable = self.find_readable(one for each in messages for one in each.document_ids)
        return frozenset(each.id for each in messages if not readable.issuperset(each.document_ids))
