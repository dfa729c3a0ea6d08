"""The gate of stored answers: what rests on a document that the asker may not read now, or on a memory that is gone or
not theirs, is shown to nobody, its owner included."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from backend.chat.readable_ids import OwnMemories, find_readable
from backend.store.chat.messages import Message
from connectors.access import Readers
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

WITHHELD = "This answer rests on sources that were deleted, or that you may not read."
"""One sentence for both: which of the two it is would tell whether there is such a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGate:
    index: Index
    readers: Readers
    """What the asker may read now."""
    own_memories: OwnMemories
    deadline: Deadline

    def find_readable(self, document_ids: Iterable[str]) -> frozenset[str]:
        """Return those of the documents and memories that exist and that the asker may read, by one call of the index."""
        return find_readable(
            set(document_ids), self.index, self.readers, self.own_memories, self.deadline
        )

    def allows(self, document_ids: Collection[str]) -> bool:
        return self.find_readable(document_ids).issuperset(document_ids)

    def find_withheld(self, messages: Collection[Message]) -> frozenset[int]:
        """Return the answers among these messages that may not be shown, by one call of the index."""
        readable = self.find_readable(one for each in messages for one in each.document_ids)
        return frozenset(each.id for each in messages if not readable.issuperset(each.document_ids))
