"""The ledger: what the pipeline has to know of every document, and must not lose."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeAlias

from connectors.connector import Checkpoint
from connectors.document import Access, Document
from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import IndexedDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What decides whether a document has to be indexed again."""

    version: str
    content_hash: str
    generation: int
    access: Access
    kept: bool
    """Its sections are kept, so that it can be shown and indexed again without its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The index has this version. Whatever made the document fail before is over."""

    document: Document
    content_hash: str
    generation: int
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The index has the last version again, from the kept sections."""

    document_id: str
    content_hash: str
    generation: int
    chunks: int

    @classmethod
    def of(cls, held: IndexedDocument) -> "Restored":
        """As the index holds it."""
        return cls(
            document_id=held.id,
            content_hash=held.content_hash,
            generation=held.generation,
            chunks=held.chunks,
        )


@dataclass(frozen=True, slots=True)
class Noted:
    """The same content under this version; the document is readable."""

    document_id: str
    version: str


@dataclass(frozen=True, slots=True)
class Amended:
    """The index shows the document to these readers."""

    document_id: str
    access: Access


@dataclass(frozen=True, slots=True)
class Removed:
    """The index has it no more, and the ledger forgets it with its failures."""

    document_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It could not be read or indexed. What was indexed of it stays, and is to be read again."""

    source: str
    document_id: str
    item: str
    reason: str
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A listing has it, and it was never read: it is to be, like what has failed. What has failed stays as it is."""

    source: str
    document_id: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Its kept sections are gone: the source is to be read again, whatever version it has."""

    document_id: str


@dataclass(frozen=True, slots=True)
class Reached:
    """All that the source yielded before this checkpoint is saved; `None` begins again."""

    source: str
    checkpoint: Checkpoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A batch of changes has been carried out by the one who holds it, and is forgotten."""

    batch: int
    fence: int
    """The number of its lease: another one than the latest is nobody's."""
    counts: Mapping[str, int]
    """What came of it, added to those of its run."""
    item: str | None
    """What was worked on last."""


class LostLease(TemporarilyUnavailableError):
    """A batch is another's by now: this worker was not heard of for too long."""

    def __init__(self, batch: int) -> None:
        message = f"Batch {batch} was taken over: this worker was not heard of for too long."
        super().__init__(message, retry_after=timedelta(seconds=1))


LedgerChange: TypeAlias = (
    Stored | Restored | Noted | Amended | Removed | Failed | Unread | Lost | Reached | Finished
)


class Ledger(Protocol):
    """The truth about the documents of all sources; the index is made from it.

    What is said of a document that the ledger does not hold changes nothing, but for `Stored`,
    `Failed` and `Unread`, which enter it.
    """

    def sources(self) -> frozenset[str]:
        """The names of all sources."""
        ...

    def count(self, source: str) -> int:
        """How many documents of the source are held."""
        ...

    def versions(self, ids: Sequence[str]) -> Mapping[str, str]:
        """What `connectors.connector.Known` asks for."""
        ...

    def entries(self, ids: Sequence[str]) -> Mapping[str, Entry]:
        """What is held of these; ids that are not held are left out."""
        ...

    def document(self, document_id: str) -> Document | None:
        """The last version as it was stored, with its present access; `None` if it is not kept."""
        ...

    def save(self, changes: Sequence[LedgerChange]) -> None:
        """Save all of them, in the order given, or none.

        Raises:
            ValueError: a source that the ledger does not know.
            LostLease: a batch that another holds by now.
        """
        ...

    def unsettle(self, ids: Sequence[str]) -> None:
        """Note that the index is about to show these to others, until `Amended` or `Stored` says so."""
        ...

    def unsettled(self, source: str) -> list[str]:
        """The ids for which that never came."""
        ...

    def lost(self, source: str) -> Iterator[str]:
        """The ids whose kept sections have gone, `Lost` ones left out; `save` may be called between."""
        ...

    def scan(self, source: str, after: str) -> Iterator[IndexedDocument]:
        """What the index should hold of the source, by id, of ids above `after`."""
        ...

    def see(self, source: str, listing: int, ids: Sequence[str]) -> None:
        """Note that listing number `listing` has these."""
        ...

    def unseen(self, source: str, listing: int) -> Iterator[str]:
        """Documents and failures of the source that this listing did not have; each id once.

        `save` may be called between.
        """
        ...
