"""The one thing a source must do: say what changed, and, where it can, list what there is."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from io import BufferedReader
from typing import Protocol, TypeAlias, runtime_checkable

from connectors.access import Access
from connectors.document import Document

_SOURCE_NAME = re.compile(r"[^\s:/]{1,100}")


def validate_source_name(text: str) -> str:
    """A name by which the ids of a source's documents can begin.

    Raises:
        ValueError: it has a blank, a colon or a slash, is empty or too long.
    """
    if not _SOURCE_NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} cannot name a source: write 1 to 100 characters without blanks, ':' and '/'"
        )
    return text


KnownVersions: TypeAlias = Callable[[Sequence[str]], Mapping[str, str]]
"""Document ids to the `Document.version` that Quarry holds; ids it does not hold are left out.

A source that cannot say by itself what changed since a moment (a folder: moved files keep their
times) compares with this, a few hundred ids at a time, so that its memory stays flat.
"""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a source may resume. Only the source that made it can read it."""

    value: str


@dataclass(frozen=True, slots=True)
class Deletion:
    document_id: str


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The same content under a new version (a touched file): nothing to index, one thing to note."""

    document_id: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """One document that could not be read. It never fails a run."""

    document_id: str
    item: str
    """The name a person knows it by."""
    reason: str
    link: str | None = None


Change: TypeAlias = Document | Deletion | Unchanged | Unreadable | Checkpoint


@dataclass(frozen=True, slots=True)
class DocumentListing:
    """That a document exists, and who may read it: for pruning and for permissions."""

    document_id: str
    access: Access


class Capability(StrEnum):
    CONTENT = "content"
    """It yields documents."""
    LISTING = "listing"
    """It lists all there is, so that deletions are found."""
    ACCESS = "access"
    """It knows who may read what."""


@dataclass(frozen=True, slots=True)
class Check:
    """Whether a connection, with its settings and its credential, may do one of its things."""

    capability: Capability
    fault: str | None = None
    """What is missing and how to mend it; none where it works."""


def make_checks(content: str | None, access: str | None) -> Iterator[Check]:
    """Of each capability, by the fault of what is read and that of who may read it: what can be read can
    be listed."""
    yield Check(Capability.CONTENT, content)
    yield Check(Capability.LISTING, content)
    yield Check(Capability.ACCESS, access)


class Connector(Protocol):
    @property
    def source(self) -> str:
        """The name of the connection; the ids of its documents begin with it."""
        ...

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed since then, and a checkpoint wherever resuming is safe.

        `None` begins from the beginning. The checkpoint after the last change stands for a whole
        run: the next run begins from there.

        Raises:
            TemporarilyUnavailableError: the source does not answer now.
            ActionRequiredError: a person must mend something first.
        """
        ...

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """Read these anew, changed or not: for each a Document, an Unreadable, or a Deletion.

        Raises:
            TemporarilyUnavailableError: the source does not answer now.
            ActionRequiredError: a person must mend something first.
        """
        ...

    def listing(self) -> Iterator[DocumentListing]:
        """Yield every document there is, readable or not, in a stable order.

        One whose readers the source cannot tell is listed for nobody.

        Raises:
            TemporarilyUnavailableError: the source does not answer now.
            ActionRequiredError: a person must mend something first.
        """
        ...

    def check(self) -> Iterator[Check]:
        """Try each of the kind's capabilities, with as little traffic as can be. Raises nothing of the
        source's: what goes wrong is a fault."""
        ...


@runtime_checkable
class ProvidesOriginal(Protocol):
    """A connector that can also hand out what a document was read from."""

    def original(self, document_id: str, version: str) -> BufferedReader | None:
        """The bytes of that version, to be read and closed; nothing where they are no longer there."""
        ...
