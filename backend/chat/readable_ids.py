"""What of that which an answer rests on may be read now: documents by the index, memories by whose they are."""

import re
from collections.abc import Callable, Collection
from typing import TypeAlias

from backend.store.chat import memories
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

OwnMemories: TypeAlias = Callable[[Collection[str]], frozenset[str]]
"""Returns those of the memories with these ids that exist now and are the asker's."""

# The id of a document has a colon, behind the name of its source: no document has an id of these forms.
_MEMORY = re.compile(r"memory/([\w-]+)", re.ASCII)
_RESEARCH = re.compile(r"research/[\w-]+", re.ASCII)
_SENT_PICTURE = re.compile(r"request/picture/\d+", re.ASCII)


def make_memory_reference(memory_id: str) -> str:
    """Return the id under which an answer rests on a memory, among those of documents."""
    return f"memory/{memory_id}"


def is_memory_reference(reference: str) -> bool:
    return _MEMORY.fullmatch(reference) is not None


def make_research_reference(item_id: str) -> str:
    """Return the id under which an answer cites kept knowledge; what it rests on are the documents of that."""
    return f"research/{item_id}"


def find_knowledge_page(reference: str) -> str:
    """Return the path of the page of kept knowledge that an answer cites under this id."""
    return f"/knowledge/{reference.removeprefix('research/')}"


def is_research_reference(reference: str) -> bool:
    return _RESEARCH.fullmatch(reference) is not None


def make_sent_picture_id(number: int) -> str:
    """Return the id of a picture that came with the request itself: nobody else can read it, and nothing withdraws it."""
    return f"request/picture/{number}"


def is_sent_picture(document_id: str) -> bool:
    return _SENT_PICTURE.fullmatch(document_id) is not None


def make_own_memories(database: Database, owner: ConversationOwner | None) -> OwnMemories:
    """Return what finds the memories of an owner; nobody's are none."""
    if owner is None:
        return lambda _: frozenset()
    return lambda memory_ids: memories.find_own(database, owner, memory_ids)


def find_readable(
    ids: Collection[str],
    index: Index,
    readers: Readers,
    own_memories: OwnMemories,
    deadline: Deadline,
) -> frozenset[str]:
    """Return the ids of what exists and may be read, by one call of the index and one of `own_memories` at most."""
    memory_ids = {each: found[1] for each in ids if (found := _MEMORY.fullmatch(each))}
    documents = sorted(set(ids) - memory_ids.keys())
    # Each document has a first chunk.
    ranges = [ChunkRange(document, 0, 1) for document in documents]
    chunks = index.chunks(ranges, readers, deadline) if ranges else []
    readable = {one for one, found in zip(documents, chunks, strict=True) if found}
    own = own_memories(list(memory_ids.values())) if memory_ids else frozenset[str]()
    return frozenset(readable.union(each for each, found in memory_ids.items() if found in own))
