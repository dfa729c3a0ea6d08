"""The Connector protocol that every source implements: the changes that it yields, its checkpoints, and what it reaches."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from connectors.access import Access
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.text_cleaning import parse_time

_SOURCE_NAME = re.compile(r"[^\s:/]{1,100}")

KnownVersions: TypeAlias = Callable[[Sequence[str]], Mapping[str, str]]
"""Maps document ids to the `Document.version` that Quarry stores; unknown ids are left out. A document that
could not be read for good has its `Unreadable.version`.

A source that cannot detect changes by time (a folder: moved files keep their times) compares
versions, a few hundred ids at a time, so that its memory use stays constant.
"""


def validate_source_name(text: str) -> str:
    """Check that document ids can begin with this name of a source, and return it.

    Raises:
        ValueError: it contains whitespace, a colon or a slash, is empty or too long.
    """
    if not _SOURCE_NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} cannot name a source: use 1 to 100 characters without spaces, ':' and '/'"
        )
    return text


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a source may resume; opaque to all but the source that made it."""

    value: str


@dataclass(frozen=True, slots=True)
class Deletion:
    document_id: str


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The same content under a new version (a touched file): only the version is stored."""

    document_id: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A document that could not be read. It does not fail the run."""

    document_id: str
    item: str
    """Its name as people know it."""
    reason: str
    link: str | None = None
    version: str | None = None
    """Set if this version can never be read: it is not tried again until the document has another one."""


@dataclass(frozen=True, slots=True)
class DocumentCount:
    """How many documents a source has, readable or not.

    Yielded before the documents themselves, where the source knows it at little cost: a first sync shows how much there
    is to read.
    """

    documents: int


Change: TypeAlias = Document | Deletion | Unchanged | Unreadable | Checkpoint | DocumentCount


@dataclass(frozen=True, slots=True)
class DocumentListing:
    """An existing document and its readers, for the deletion check and the permission sync."""

    document_id: str
    access: Access


ListingItem: TypeAlias = DocumentListing | Checkpoint


class Capability(StrEnum):
    CONTENT = "content"
    """The source yields documents."""
    LISTING = "listing"
    """The source lists all its documents, so that deletions are found."""
    ACCESS = "access"
    """The source knows who may read each document; otherwise its settings say it of all of them."""


FIXED_READERS = frozenset({Capability.CONTENT, Capability.LISTING})
"""What a source can do whose settings say who may read it."""


@dataclass(frozen=True, slots=True)
class Check:
    """Whether a source, with its settings and credential, has one of its capabilities."""

    capability: Capability
    fault: str | None = None
    """What is wrong and how to fix it; None if it works."""


def find_fault(probe: Callable[[], object]) -> str | None:
    """Return why a probe of a source fails, or None if it succeeds."""
    try:
        probe()
    except (ActionRequiredError, TemporarilyUnavailableError) as error:
        return str(error)
    return None


def make_checks(content: str | None, access: str | None) -> Iterator[Check]:
    """Yield a check of each capability from the problems with content and access: readable content can
    be listed too."""
    yield Check(Capability.CONTENT, content)
    yield Check(Capability.LISTING, content)
    yield Check(Capability.ACCESS, access)


class Connector(Protocol):
    @property
    def source(self) -> str:
        """The name of the source; the ids of its documents begin with it."""
        ...

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed since a checkpoint, and a checkpoint wherever resuming is safe.

        `None` starts from the beginning. The last checkpoint completes the run: the next run starts
        from there.

        Raises:
            TemporarilyUnavailableError: the source does not answer at present.
            ActionRequiredError: a person must change something first.
        """
        ...

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """Read documents again, changed or not: yield a Document, an Unreadable or a Deletion for each.

        Raises:
            TemporarilyUnavailableError: the source does not answer at present.
            ActionRequiredError: a person must change something first.
        """
        ...

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        """Yield every existing document, readable or not, in a stable order, and a checkpoint wherever resuming is
        safe.

        A document whose readers are unknown is listed as readable by nobody. `None` starts from the beginning, as
        does a checkpoint that cannot be read; a checkpoint of `changes` is none of a listing. From a checkpoint on
        come all documents that were not listed before it; one that was may come again. A source that is listed
        with few requests, or from a local disk, need not yield any.

        Raises:
            TemporarilyUnavailableError: the source does not answer at present.
            ActionRequiredError: a person must change something first.
        """
        ...

    def check(self) -> Iterator[Check]:
        """Test each capability with as little traffic as possible. Errors of the source are reported in
        the checks, not raised."""
        ...


@dataclass(frozen=True, slots=True)
class ReaderGroup:
    """A group of a source, or a scope: what many documents share, such as a channel or a repository.

    Documents name its token instead of its members, so that nothing is indexed again when one joins.
    """

    token: str
    """`external:<id of the source>:<id of the group in the source>`."""
    members: frozenset[str]
    """Reader tokens: of people, or of other groups of the source."""
    name: str = ""
    """As people at the source know it."""


GroupItem: TypeAlias = ReaderGroup | Checkpoint


@runtime_checkable
class ListsGroups(Protocol):
    """A connector whose documents name groups and scopes, which a permission sync asks it for."""

    def groups(self, since: Checkpoint | None) -> Iterator[GroupItem]:
        """Yield once every group and scope that a document names, with all members that it has now, in a stable
        order, and a checkpoint wherever resuming is safe.

        One whose members cannot be read is yielded without members; one that is not yielded has none either.
        Checkpoints are as those of `Connector.listing`, whose errors it raises.
        """
        ...


@runtime_checkable
class DerivesAccess(Protocol):
    """A connector whose document ids say who may read them, by the channel or the repository in them.

    A permission sync asks it for groups alone: it compares no listing.
    """

    def derive_access(self, document_id: str) -> Access:
        """Return the access of a document, without asking the source."""
        ...


@runtime_checkable
class ProvidesOriginal(Protocol):
    """A connector that can also return the file that a document was read from."""

    def original(self, document_id: str, version: str) -> BufferedReader | None:
        """Open the file of that version, for the caller to close; None if it no longer exists."""
        ...


def load_checkpoint(since: Checkpoint | None) -> Any:
    """Return the value of a checkpoint; None, which starts from the beginning, if there is no valid one."""
    return parse_checkpoint_value(since.value) if since else None


def parse_checkpoint_value(text: str) -> Any:
    """Parse a checkpoint's text; None if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def format_timestamp(moment: datetime) -> str:
    """Format a time in UTC as ISO 8601, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def is_timestamp(text: str) -> bool:
    moment = parse_time(text)
    return moment is not None and format_timestamp(moment) == text


def find_no_links() -> Iterator[Path]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """What a source reaches besides the public internet: files of the server, and addresses in its networks.

    Every kind of source states it, so that a source of somebody who may not read the server is checked by that alone,
    whatever its kind.
    """

    paths: tuple[Path, ...] = ()
    """Files and folders of the server that are read or written."""
    private_hosts: tuple[str, ...] = ()
    """Hosts, addresses and networks that may be contacted although they are not public."""
    find_links: Callable[[], Iterator[Path]] = find_no_links
    """Yields what files at the paths lead to besides. Called only where the paths themselves are allowed."""


FindObjection: TypeAlias = Callable[[ServerAccess], str | None]
"""Returns why a source may not reach this, as a sentence; None if it may."""


def allow_all(access: ServerAccess) -> None:
    """Object to nothing, for a source of people who may read the server."""
    del access
