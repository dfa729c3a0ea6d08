"""What the connector asks of the place where documents wait that programs have put in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from connectors.access import Access
from connectors.connector import DocumentListing
from connectors.document import Document


@dataclass(frozen=True, slots=True)
class PushedChange:
    """A document that was put in, changed or deleted."""

    push: int
    """The number of the request that did it; it grows with every request."""
    document_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedDocument:
    document: Document
    """Without sections as long as its file was not read."""
    file: bytes | None = None
    """What is still to be read."""
    problem: str | None = None
    """Why its file cannot be read."""


class PushedDocuments(Protocol):
    """The documents of one source."""

    def list_changes(self, after: int) -> Sequence[PushedChange]:
        """Return the changes of some of the next requests after this one, all of each, in their order."""
        ...

    def find(self, document_id: str) -> PushedDocument | None:
        """Return a document as it is now; None if it was deleted."""
        ...

    def keep_read(self, found: PushedDocument) -> None:
        """Keep what was read of a file, or why it cannot be, instead of its bytes; nothing if it was replaced since."""
        ...

    def list_existing(self, after: str) -> Sequence[DocumentListing]:
        """Return some of the next documents by id that are there, or that the index still has: these admit nobody.

        Where the index has a former version, they admit only those who may read both: the readers of one are never
        shown the other.
        """
        ...


class NothingPushed:
    """The documents of a source that is not stored."""

    def list_changes(self, after: int) -> Sequence[PushedChange]:
        del after
        return ()

    def find(self, document_id: str) -> PushedDocument | None:
        del document_id
        return None

    def keep_read(self, found: PushedDocument) -> None:
        """Keep nothing."""

    def list_existing(self, after: str) -> Sequence[DocumentListing]:
        del after
        return ()


def meet(one: Access, other: Access) -> Access:
    """Return the access of those whom both admit."""
    if not (one.clauses and other.clauses):
        return Access(frozenset())
    return Access.all_of([*one.clauses, *other.clauses])
