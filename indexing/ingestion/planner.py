"""What one change asks of the index and of the ledger. Pure, but for the embedder's tokens."""

from collections.abc import Iterator
from dataclasses import dataclass

from connectors.connector import Deletion, Unchanged, Unreadable
from connectors.document import Document
from indexing.chunking.chunk import Chunk
from indexing.chunking.chunker import chunks_of, content_hash
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import Amend, Delete, IndexChange
from indexing.ingestion.batching import DocumentChange, document_id
from indexing.ingestion.ledger import (
    Amended,
    Entry,
    Failed,
    LedgerChange,
    Noted,
    Removed,
    Restored,
    Stored,
)
from indexing.ingestion.progress import Outcome

CONTENT_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""What odd content may raise in code that handles all ordinary content."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A version that is to be embedded and written."""

    item: str
    source: str
    chunks: tuple[Chunk, ...]
    then: Stored | Restored
    """What the ledger is told once the index has it."""

    def failed(self, error: Exception) -> Failed:
        return _failed(self.document_id, self.source, self.item, error)

    @property
    def characters(self) -> int:
        return sum(len(chunk.embedded_text) for chunk in self.chunks)

    @property
    def document_id(self) -> str:
        return self.then.document.id if isinstance(self.then, Stored) else self.then.document_id


@dataclass(frozen=True, slots=True)
class Step:
    """What needs no embedding."""

    then: tuple[LedgerChange, ...]
    first: IndexChange | None = None
    outcome: Outcome | None = None

    @property
    def characters(self) -> int:
        """Of the texts to be embedded."""
        return 0


def planned(
    change: DocumentChange,
    entry: Entry | None,
    source: str,
    embedder: Embedder,
    lowest: int = 1,
) -> Prepared | Step:
    """`entry` is what the ledger holds of the document; `source` is whose change this is.

    No version is of a lower generation than `lowest`, and none that is later is deleted or amended: a batch
    that is carried out late, by a worker that nobody had heard of, undoes nothing of what came after it.
    """
    match change:
        case Document():
            return _planned_document(change, entry, embedder, lowest)
        case Deletion(gone):
            delete = Delete(gone, up_to=_latest(entry, lowest))
            return Step((Removed(gone),), delete, "deleted" if entry else None)
        case Unchanged(same, version):
            return Step((Noted(same, version),), outcome="unchanged")
        case Unreadable():
            return Step((_unreadable(change, source),))


def restored(document: Document, generation: int, embedder: Embedder) -> Prepared | Step:
    """The kept version, cut anew."""
    try:
        chunks = tuple(chunks_of(document, embedder))
        then = Restored(
            document_id=document.id,
            content_hash=content_hash(document),
            generation=generation,
            chunks=len(chunks),
        )
        return Prepared(document.title, document.source, chunks, then)
    except CONTENT_ERRORS as error:
        return Step((_failed(document.id, document.source, document.title, error),))


def _planned_document(
    document: Document, entry: Entry | None, embedder: Embedder, lowest: int
) -> Prepared | Step:
    try:
        _check_text(document)
        digest = content_hash(document)
        if entry and entry.kept and entry.content_hash == digest:
            return _same_content(document, entry, lowest)
        chunks = tuple(chunks_of(document, embedder))
    except CONTENT_ERRORS as error:
        return Step((_failed(document.id, document.source, document.title, error),))
    then = Stored(
        document=document,
        content_hash=digest,
        generation=max(entry.generation + 1 if entry else 1, lowest),
        chunks=len(chunks),
    )
    return Prepared(document.title, document.source, chunks, then)


def _failed(document: str, source: str, title: str, error: Exception) -> Failed:
    return Failed(
        source=source,
        document_id=document,
        item=printable(title) or document,
        reason=printable(f"it could not be indexed: {str(error) or type(error).__name__}"),
    )


def sound(change: DocumentChange, source: str) -> DocumentChange:
    """The change, or that its document is unreadable, if its id cannot be stored.

    Raises:
        ValueError: the id does not begin with the source's name and a colon.
    """
    name = owned(document_id(change), source)
    if name == document_id(change):
        return change
    return Unreadable(document_id=name, item=name, reason="its name is not valid text")


def owned(document: str, source: str) -> str:
    """The id as it can be stored. Raises as `sound` does."""
    if not document.startswith(f"{source}:"):
        raise ValueError(f"not an id of {source!r}: {document!r}")
    return printable(document)


def printable(text: str) -> str:
    """The text, with what no database and no file takes as text written as escapes."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")


def _latest(entry: Entry | None, lowest: int) -> int:
    """The generation that the index holds at most, unless another worker has gone on."""
    return max(entry.generation, lowest) if entry else lowest


def _same_content(document: Document, entry: Entry, lowest: int) -> Step:
    noted = Noted(document.id, document.version)
    if document.access == entry.access:
        return Step((noted,), outcome="unchanged")
    return Step(
        (Amended(document.id, document.access), noted),
        Amend(document_id=document.id, access=document.access, up_to=_latest(entry, lowest)),
        "amended",
    )


def _unreadable(change: Unreadable, source: str) -> Failed:
    return Failed(
        source=source,
        document_id=change.document_id,
        item=printable(change.item),
        reason=printable(change.reason),
        link=None if change.link is None else printable(change.link),
    )


def _check_text(document: Document) -> None:
    """Raises ValueError: some of it is not text that can be stored."""
    fields = (document.title, document.link, document.media_type, document.version)
    if any("\0" in field for field in fields):
        raise ValueError("its title, link, type or version holds a zero character")
    for text in (*fields, *_texts(document)):
        text.encode()


def _texts(document: Document) -> Iterator[str]:
    yield from document.parents
    for section in document.sections:
        yield from (section.text, section.link or "", section.place.sheet or "")
        yield from section.place.heading_path
    for key, value in document.metadata.items():
        yield from (key, *((value,) if isinstance(value, str) else value))
    for owner in document.owners:
        yield from (owner.name, owner.email or "")
