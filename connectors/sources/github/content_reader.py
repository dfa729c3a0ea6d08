"""What is read of a repository comes in parts: conversations, discussions, wiki, files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from connectors.connector import Change, Known, Listed, Unreadable
from connectors.document import Document
from connectors.http_client.response import BadAnswer, Failing
from connectors.sources.github.client import Api, Refused
from connectors.sources.github.graphql_client import Graph
from connectors.sources.github.permissions import Rights
from connectors.sources.github.repositories import Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A repository, as one run came to it."""

    source: str
    api: Api
    graph: Graph
    repository: Repository
    rights: Rights

    def id_of(self, own: str) -> str:
        """The document of that name within the repository."""
        return f"{self.source}:{self.repository.id}/{own}"

    def check_gone(self, what: str) -> None:
        """After an answer that there is no such thing: the repository went away meanwhile.

        Raises:
            Refused: it is still there; what is hidden from the token must not look as if it were deleted.
            ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
        """
        if not self.api.get(self.repository.path).gone:
            raise self.api.refused(
                what, "GitHub says that there are none, of a repository it shows"
            )

    def own_of(self, document_id: str) -> str:
        """The way back from `id_of`."""
        return document_id.removeprefix(self.id_of(""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """From where to read a part."""

    at: str = ""
    """What a run that was broken off came to: the last `At`."""
    since: str = ""
    """Up to when the last whole run read it; empty where none did."""
    until: str = ""
    """What the last whole run ended with: its `Read`."""


@dataclass(frozen=True, slots=True)
class At:
    """A run may go on from here."""

    position: str
    """Only the part that told it can read it."""


@dataclass(frozen=True, slots=True)
class Read:
    """The part was read to its end."""

    until: str = ""


class Part(Protocol):
    """What it raises: see `Api.get`; Refused where the token may not see it."""

    @property
    def name(self) -> str:
        """In checkpoints."""
        ...

    def owns(self, own: str) -> bool:
        """Whether a document of that name within a repository is of this part."""
        ...

    def changes(self, home: Home, start: Start, known: Known) -> Iterator[Change | At | Read]:
        """What changed; `At` wherever resuming is safe, and at the end `Read`."""
        ...

    def again(self, home: Home, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.again`; each is one that it owns."""
        ...

    def listing(self, home: Home) -> Iterator[Listed]: ...

    def probe(self, home: Home) -> None:
        """Ask for a little of it."""
        ...


def read(make: Callable[[], Document], unread: Unreadable) -> Document | Unreadable:
    """The document, or `unread` with the reason: what goes wrong with one alone makes no other wait.

    Raises:
        TemporarilyUnavailableError: the service does not answer at all, or asks to wait.
        ActionRequiredError: the token is not valid.
    """
    try:
        return make()
    except (BadAnswer, Refused, Failing) as error:
        return replace(unread, reason=str(error))
