"""What Quarry holds of a source, kept as a pipeline keeps it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from connectors.access import PUBLIC, Readers
from connectors.connector import (
    Change,
    Checkpoint,
    Connector,
    Deletion,
    DocumentCount,
    DocumentListing,
    ListsGroups,
    ReaderGroup,
    Unchanged,
    Unreadable,
)
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from tests.contract.connector_worlds.world import number_of


class Held:
    """Documents and versions by id, those that could not be read, and where to go on."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.versions: dict[str, str] = {}
        self.unreadable: dict[str, Unreadable] = {}
        self.since: Checkpoint | None = None
        self.most_asked = 0

    @property
    def numbers(self) -> list[int]:
        return sorted(number_of(one.title) for one in self.documents.values())

    def known(self, ids: Sequence[str]) -> Mapping[str, str]:
        self.most_asked = max(self.most_asked, len(ids))
        return {one: self.versions[one] for one in ids if one in self.versions}

    def take(self, change: Change) -> None:
        match change:
            case Document():
                self.documents[change.id] = change
                self.versions[change.id] = change.version
                self.unreadable.pop(change.id, None)
            case Unchanged():
                self.versions[change.document_id] = change.version
            case Deletion():
                self._drop(change.document_id)
            case Unreadable():
                self.unreadable[change.document_id] = change
                if change.version is not None:
                    self.versions[change.document_id] = change.version
            case Checkpoint():
                self.since = change
            case DocumentCount():
                pass

    def prune(self, listing: Iterable[DocumentListing]) -> None:
        """Drop what is no longer listed."""
        listed = {one.document_id for one in listing}
        for gone in (self.documents.keys() | self.unreadable.keys()) - listed:
            self._drop(gone)

    def _drop(self, document_id: str) -> None:
        self.documents.pop(document_id, None)
        self.versions.pop(document_id, None)
        self.unreadable.pop(document_id, None)


def run(connector: Connector, held: Held) -> list[Change]:
    """A run from where the last one ended, whole."""
    return list(taking(connector, held))


def taking(connector: Connector, held: Held) -> Iterator[Change]:
    for change in connector.changes(held.since, held.known):
        held.take(change)
        yield change


def run_into(
    connector: Connector, held: Held
) -> TemporarilyUnavailableError | ActionRequiredError | None:
    """A run, and what ended it before its end."""
    try:
        run(connector, held)
    except (TemporarilyUnavailableError, ActionRequiredError) as error:
        return error
    return None


def list_documents(
    connector: Connector, since: Checkpoint | None = None
) -> Iterator[DocumentListing]:
    """What a listing from there on contains, without its checkpoints."""
    for item in connector.listing(since):
        if isinstance(item, DocumentListing):
            yield item


def list_groups(connector: Connector) -> list[ReaderGroup]:
    """The groups and scopes of a connector that has some, without checkpoints."""
    assert isinstance(connector, ListsGroups)
    return [item for item in connector.groups(None) if isinstance(item, ReaderGroup)]


def resolve(groups: Iterable[ReaderGroup], token: str) -> Readers:
    """What somebody holds who holds this token, with groups and their groups."""
    held, listed = {token, PUBLIC}, list(groups)
    while joined := {one.token for one in listed if one.members & held} - held:
        held |= joined
    return Readers(frozenset(held))


def documents(changes: Iterable[Change]) -> list[Document]:
    return [change for change in changes if isinstance(change, Document)]


def numbers(changes: Iterable[Change]) -> list[int]:
    """Of the items whose documents are among the changes, as they come."""
    return [number_of(one.title) for one in documents(changes)]
