"""The interface of the parts in which a repository is read: issues, discussions, wiki, files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from connectors.access import Access
from connectors.connector import Change, DocumentListing, KnownVersions, Unreadable
from connectors.document import Document, Person
from connectors.http_client.api_client import AccessDeniedError
from connectors.http_client.response import ResponseError, ServerError
from connectors.sources.github.client import GitHubClient
from connectors.sources.github.graphql_client import GraphQLClient
from connectors.sources.github.repositories import Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryContext:
    """A repository during one run, with what is needed to read it."""

    source: str
    client: GitHubClient
    graphql: GraphQLClient
    repository: Repository
    access: Access
    find_email: Callable[[str], str | None]
    """Returns the e-mail address of an account, if it is known."""

    def get_owners(self, login: str) -> tuple[Person, ...]:
        """Return an author as the owner; none if the account was deleted."""
        return (Person(login, self.find_email(login)),) if login else ()

    def to_document_id(self, name: str) -> str:
        """Return the id of the document with that name within the repository."""
        return f"{self.source}:{self.repository.id}/{name}"

    def to_name(self, document_id: str) -> str:
        """Return the name of a document within the repository."""
        return document_id.removeprefix(self.to_document_id(""))

    def check_repository_gone(self, what: str) -> None:
        """Check that the repository was deleted, after a response that a part of it does not exist.

        Raises:
            AccessDeniedError: the repository exists; what is hidden from the token must not be taken
                for deleted.
            SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
        """
        if not self.client.get(self.repository.path).not_found:
            raise self.client.access_denied_error(
                what, "GitHub responds that there are none, in a repository that exists"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStart:
    """From where to read a part."""

    position: str = ""
    """The last `PartPosition` of an interrupted run."""
    since: str = ""
    """The time up to which the last complete run read it; empty if there is none."""
    end_state: str = ""
    """The end state of the last complete run, from its `PartCompleted`."""


@dataclass(frozen=True, slots=True)
class PartPosition:
    """A run may resume from here."""

    position: str
    """Only the part that made it can parse it."""


@dataclass(frozen=True, slots=True)
class PartCompleted:
    """The part was read to its end."""

    end_state: str = ""


class Part(Protocol):
    """One kind of content of a repository.

    Any method raises what `ApiClient` does; AccessDeniedError if the token may not read the part.
    """

    @property
    def name(self) -> str:
        """The name in checkpoints."""
        ...

    def owns(self, name: str) -> bool:
        """Return whether the document of that name within a repository belongs to this part."""
        ...

    def changes(
        self, context: RepositoryContext, start: PartStart, known: KnownVersions
    ) -> Iterator[Change | PartPosition | PartCompleted]:
        """Yield what changed, a `PartPosition` wherever resuming is safe, and `PartCompleted` last."""
        ...

    def refetch(self, context: RepositoryContext, document_ids: Sequence[str]) -> Iterator[Change]:
        """Read documents of this part again. See `Connector.refetch`."""
        ...

    def listing(
        self, context: RepositoryContext, position: str
    ) -> Iterator[DocumentListing | PartPosition]:
        """Yield the documents, and a `PartPosition` wherever resuming is safe.

        Args:
            position: the last `PartPosition` of an interrupted listing; empty for the beginning.
        """
        ...

    def probe(self, context: RepositoryContext) -> None:
        """Send one small request, to test the permission."""
        ...


def read_or_report(
    read_document: Callable[[], Document], unreadable: Unreadable
) -> Document | Unreadable:
    """Return the document, or `unreadable` with the reason: an error of one item ends no run.

    Raises:
        TemporarilyUnavailableError: the service does not respond at all, or asks to wait.
        SourceAuthError: the token is not valid.
    """
    try:
        return read_document()
    except (ResponseError, AccessDeniedError, ServerError) as error:
        return replace(unreadable, reason=str(error))
