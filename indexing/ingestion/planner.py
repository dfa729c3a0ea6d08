"""Decides what one change requires of the index and of the ledger.

The functions are pure, except that the embedder counts tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from connectors.connector import Deletion, Unchanged, Unreadable
from connectors.document import Document
from indexing.chunking.chunk import Chunk
from indexing.chunking.chunker import chunk_document, compute_content_hash
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import Amend, Delete, IndexChange
from indexing.ingestion.batching import DocumentChange, document_id
from indexing.ingestion.ledger import (
    AccessAmended,
    Entry,
    Failed,
    LedgerChange,
    Removed,
    Restored,
    Stored,
    Touched,
    VersionSeen,
)
from indexing.ingestion.progress import Outcome

CONTENT_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""What malformed content may raise in code that handles all ordinary content."""


@dataclass(frozen=True, slots=True)
class EmbedStep:
    """A document version that is to be embedded and written."""

    item: str
    source: str
    chunks: tuple[Chunk, ...]
    ledger_change: Stored | Restored
    """Saved once the index holds the version."""

    def to_failure(self, error: Exception) -> Failed:
        return _to_failure(self.document_id, self.source, self.item, error)

    @property
    def characters(self) -> int:
        return sum(len(chunk.embedded_text) for chunk in self.chunks)

    @property
    def document_id(self) -> str:
        change = self.ledger_change
        return change.document.id if isinstance(change, Stored) else change.document_id


@dataclass(frozen=True, slots=True)
class WriteStep:
    """A change that needs no embedding: first the index is written, then the ledger."""

    ledger_changes: tuple[LedgerChange, ...]
    index_change: IndexChange | None = None
    outcome: Outcome | None = None

    @property
    def characters(self) -> int:
        """The characters that are to be embedded."""
        return 0


Step: TypeAlias = EmbedStep | WriteStep


def plan_change(
    change: DocumentChange,
    entry: Entry | None,
    source: str,
    embedder: Embedder,
    min_generation: int,
) -> Step:
    """Decide what a change of a document requires.

    Args:
        entry: what the ledger holds of the document.
        source: the source that the change is from.
        min_generation: the number of the batch. No version gets a lower generation, and no higher one is
            deleted or amended. So a batch that a stalled worker writes late undoes nothing of later batches.
    """
    match change:
        case Document():
            return _plan_document(change, entry, embedder, min_generation)
        case Deletion(gone):
            delete = Delete(gone, up_to=_highest_generation(entry, min_generation))
            return WriteStep((Removed(gone),), delete, "deleted" if entry else None)
        case Unchanged(same, version):
            return WriteStep((Touched(same, version),), outcome="unchanged")
        case Unreadable():
            return WriteStep((_escape_unreadable(change, source),))


def plan_restore(document: Document, generation: int, embedder: Embedder) -> Step:
    """Chunk the kept version again, to write it as this generation."""
    try:
        chunks = tuple(chunk_document(document, embedder))
        restored = Restored(
            document_id=document.id,
            content_hash=compute_content_hash(document),
            generation=generation,
            chunks=len(chunks),
        )
        return EmbedStep(document.title, document.source, chunks, restored)
    except CONTENT_ERRORS as error:
        return WriteStep((_to_failure(document.id, document.source, document.title, error),))


def _plan_document(
    document: Document, entry: Entry | None, embedder: Embedder, min_generation: int
) -> Step:
    try:
        _check_text(document)
        digest = compute_content_hash(document)
        if entry and entry.kept and entry.content_hash == digest:
            return _plan_same_content(document, entry, min_generation)
        chunks = tuple(chunk_document(document, embedder))
    except CONTENT_ERRORS as error:
        return WriteStep((_to_failure(document.id, document.source, document.title, error),))
    stored = Stored(
        document=document,
        content_hash=digest,
        generation=max(entry.generation + 1 if entry else 1, min_generation),
        chunks=len(chunks),
    )
    return EmbedStep(document.title, document.source, chunks, stored)


def _plan_same_content(document: Document, entry: Entry, min_generation: int) -> WriteStep:
    seen = VersionSeen(document.id, document.version)
    if document.access == entry.access:
        return WriteStep((seen,), outcome="unchanged")
    up_to = _highest_generation(entry, min_generation)
    return WriteStep(
        (AccessAmended(document.id, document.access), seen),
        Amend(document_id=document.id, access=document.access, up_to=up_to),
        "amended",
    )


def _highest_generation(entry: Entry | None, min_generation: int) -> int:
    """Return the highest generation that the index can hold unless a later batch was written."""
    return max(entry.generation, min_generation) if entry else min_generation


def validate_change(change: DocumentChange, source: str) -> DocumentChange:
    """Return the change, or a failure of its document if its id cannot be stored.

    Raises:
        ValueError: the id is not one of this source.
    """
    checked = check_owner(document_id(change), source)
    if checked == document_id(change):
        return change
    return Unreadable(document_id=checked, item=checked, reason="its name is not valid text")


def check_owner(document: str, source: str) -> str:
    """Return the id as it can be stored.

    Raises:
        ValueError: the id does not begin with the source's name and a colon.
    """
    if not document.startswith(f"{source}:"):
        raise ValueError(f"not an id of {source!r}: {document!r}")
    return escape_invalid_text(document)


def escape_invalid_text(text: str) -> str:
    """Escape lone surrogates and zero characters, which neither databases nor files accept as text."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")


def _to_failure(document: str, source: str, title: str, error: Exception) -> Failed:
    return Failed(
        source=source,
        document_id=document,
        item=escape_invalid_text(title) or document,
        reason=escape_invalid_text(
            f"it could not be indexed: {str(error) or type(error).__name__}"
        ),
    )


def _escape_unreadable(change: Unreadable, source: str) -> Failed:
    return Failed(
        source=source,
        document_id=change.document_id,
        item=escape_invalid_text(change.item),
        reason=escape_invalid_text(change.reason),
        link=None if change.link is None else escape_invalid_text(change.link),
        version=change.version,
    )


def _check_text(document: Document) -> None:
    """Raise ValueError if a text of the document cannot be stored."""
    fields = (document.title, document.link, document.media_type, document.version)
    if any("\0" in field for field in fields):
        raise ValueError("its title, link, type or version contains a zero character")
    for text in (*fields, *_iterate_texts(document)):
        text.encode()


def _iterate_texts(document: Document) -> Iterator[str]:
    yield from document.parents
    for section in document.sections:
        yield from (section.text, section.link or "", section.place.sheet or "")
        yield from section.place.heading_path
    for key, value in document.metadata.items():
        yield from (key, *((value,) if isinstance(value, str) else value))
    for owner in document.owners:
        yield from (owner.name, owner.email or "")
