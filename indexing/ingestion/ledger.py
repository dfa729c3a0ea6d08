"""The ledger: what must be known of every document, and must not be lost."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from connectors.access import Access
from connectors.connector import Checkpoint
from connectors.document import Document
from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import IndexedDocument, SelectedDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What decides whether a document has to be indexed again."""

    version: str
    content_hash: str
    generation: int
    access: Access
    kept: bool
    """Its sections are kept, so that it can be shown and indexed again without its source."""
    unlisted_since: datetime | None = None
    """Since when listings lack it, which its source's retention keeps; None if the last one contains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The index holds this version. Earlier failures of the document are over."""

    document: Document
    content_hash: str
    generation: int
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The index holds the last version again, from the kept sections."""

    document_id: str
    content_hash: str
    generation: int
    chunks: int

    @classmethod
    def of(cls, indexed: IndexedDocument) -> "Restored":
        return cls(
            document_id=indexed.id,
            content_hash=indexed.content_hash,
            generation=indexed.generation,
            chunks=indexed.chunks,
        )


@dataclass(frozen=True, slots=True)
class VersionSeen:
    """The held content was read with this version. Earlier failures of the document are over."""

    document_id: str
    version: str


@dataclass(frozen=True, slots=True)
class Touched:
    """The source gave this version to the content that it had before, without reading it again.

    A failure that lies in the content stays, with this version.
    """

    document_id: str
    version: str


@dataclass(frozen=True, slots=True)
class AccessAmended:
    """The index shows the document to these readers."""

    document_id: str
    access: Access


@dataclass(frozen=True, slots=True)
class Removed:
    """The document is deleted from the index; the ledger forgets it with its failures."""

    document_id: str


@dataclass(frozen=True, slots=True)
class Unlisted:
    """The source no longer lists the document, which stays. Its failures are over: it is not read again.

    Since when is saved with the first of these changes, until a listing contains the document.
    """

    document_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The document could not be read or indexed. Its indexed version stays, and it is to be read again."""

    source: str
    document_id: str
    item: str
    reason: str
    link: str | None = None
    version: str | None = None
    """Set if this version can never be read. It counts as known, and is not retried by itself."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A listing contains the document, and it was never read. It is retried like a failure.

    A failure that is already recorded stays as it is.
    """

    source: str
    document_id: str


@dataclass(frozen=True, slots=True)
class ContentLost:
    """The kept sections are gone: the document is to be read again, whatever its version."""

    document_id: str


@dataclass(frozen=True, slots=True)
class CheckpointReset:
    """The source is to be read from the beginning."""

    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFinished:
    """The worker that holds the batch has carried it out; the batch is deleted."""

    batch: int
    fence: int
    """The fencing token of the worker's lease; an outdated one is refused."""
    counts: Mapping[str, int]
    """Added to the counts of the batch's run. The ledger itself counts failures: each document once a run."""
    item: str | None
    """The last item worked on."""


class LeaseLostError(TemporarilyUnavailableError):
    """Another worker has taken the batch over, because this one had not renewed its lease in time."""

    def __init__(self, batch: int) -> None:
        message = f"Batch {batch} was taken over by another worker: its lease had expired."
        super().__init__(message, retry_after=timedelta(seconds=1))


LedgerChange: TypeAlias = (
    Stored
    | Restored
    | VersionSeen
    | Touched
    | AccessAmended
    | Removed
    | Unlisted
    | Failed
    | Unread
    | ContentLost
    | CheckpointReset
    | BatchFinished
)


@dataclass(frozen=True, slots=True)
class SetAssignment:
    """The document sets that documents belong to, and the projects and assistants that hold them."""

    version: int
    """Of the rules of all sets; it grows with every change of them."""
    labels: Mapping[str, frozenset[str]]
    """By document id, the labels that the index is to hold."""
    projects: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By document id, the projects that hold it; others are held by none. They do not count for the version."""
    personas: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """As the projects: assistants."""


class Ledger(Protocol):
    """The truth about the documents of all sources; the index is derived from it.

    A change of a document that the ledger does not hold has no effect, except for `Stored`, `Failed` and
    `Unread`, which add it.
    """

    def sources(self) -> frozenset[str]:
        """Return the names of all sources."""
        ...

    def count(self, source: str) -> int:
        """Return how many documents of the source are held."""
        ...

    def versions(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the versions of those documents that are held or, if they cannot be read for good, of these
        failures."""
        ...

    def entries(self, ids: Sequence[str]) -> Mapping[str, Entry]:
        """Return the entries of those documents that are held."""
        ...

    def document(self, document_id: str) -> Document | None:
        """Return the last stored version with its present access; `None` if it is not kept."""
        ...

    def save(self, changes: Sequence[LedgerChange]) -> None:
        """Save all changes in the given order, or none.

        Raises:
            ValueError: a source that the ledger does not know.
            LeaseLostError: a finished batch that another worker holds by now.
        """
        ...

    def save_conjunctions(self, granted: Collection[Access]) -> None:
        """Save what the derived tokens of these stand for, before the index carries them."""
        ...

    def mark_access_pending(self, ids: Sequence[str]) -> None:
        """Record that the index is about to show these to other readers, until their change is saved."""
        ...

    def assign_sets(self, documents: Sequence[SelectedDocument]) -> SetAssignment:
        """Return the sets that these documents belong to, by the rules of now."""
        ...

    def sets_version(self) -> int:
        """Return the version of the rules of all sets."""
        ...

    def access_pending(self, source: str) -> list[str]:
        """Return the marked documents whose change was never saved."""
        ...

    def lost_contents(self, source: str) -> Iterator[str]:
        """Yield the ids whose kept sections are gone, without those saved as `ContentLost`.

        `save` may be called between two of them.
        """
        ...

    def scan(self, source: str, after: str) -> Iterator[IndexedDocument]:
        """Yield what the index should hold of the source, in order of ids, from above the id `after`."""
        ...

    def list_ungrouped(self, source: str) -> Iterator[str]:
        """Yield the ids whose documents name no group or scope of the source, in order.

        `save` may be called between two of them.
        """
        ...

    def mark_seen(
        self, source: str, listing: int, ids: Sequence[str], reached: Checkpoint | None = None
    ) -> None:
        """Record that this listing contains the documents, and where it resumes after them."""
        ...

    def count_seen(self, source: str, listing: int) -> int:
        """Count the documents and failures of the source that the listing contains."""
        ...

    def unseen(self, source: str, listing: int) -> Iterator[str]:
        """Yield once each document and failure of the source that the listing did not contain.

        `save` may be called between two of them.
        """
        ...
