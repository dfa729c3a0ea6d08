"""The interface that Confluence Cloud and Data Center implement, each with its own API."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from connectors.sources.confluence.client import ConfluenceClient
from connectors.sources.confluence.models import (
    Attachment,
    Comment,
    Content,
    ContentContext,
    ContentKind,
    Group,
    Principals,
    Space,
    User,
)
from connectors.sources.confluence.pagination import PageIterator


@dataclass(frozen=True, slots=True)
class ContentPage:
    """One page of a list of contents."""

    contents: Sequence[Content]
    next: str | None


@dataclass(frozen=True, slots=True)
class AttachmentWithParent:
    attachment: Attachment
    content_id: str
    kind: ContentKind


class Site(Protocol):
    """One site during one run.

    Any method raises what `ApiClient` does: SourceAuthError, TemporarilyUnavailableError, ResponseError.
    """

    @property
    def client(self) -> ConfluenceClient: ...

    @property
    def iterate_search(self) -> PageIterator:
        """How the results of a search are paged."""
        ...

    def list_spaces(self) -> Iterator[Space]:
        """Yield the current spaces, in any order, each at least once."""
        ...

    def list_contents(self, space: Space, kind: ContentKind, start: str) -> Iterator[ContentPage]:
        """Yield the current contents of a space with their bodies; empty `start` for the beginning."""
        ...

    def find_content(
        self, content_id: str, kind: ContentKind | None, spaces: Mapping[str, Space]
    ) -> Content | None:
        """Return a current content with its body.

        Args:
            kind: None if it is not known.
            spaces: by id; a content that was deleted or is in no such space is None.
        """
        ...

    def read_contexts(self, contents: Sequence[Content]) -> Iterator[ContentContext]:
        """Yield the context of each content, in their order."""
        ...

    def list_comments(self, content: Content) -> Iterator[Comment]:
        """Yield all comments and replies, in any order."""
        ...

    def list_attachments(self, content: Content) -> Iterator[Attachment]:
        """Yield the current attachments, each at least once."""
        ...

    def find_attachment(self, attachment_id: str) -> AttachmentWithParent | None: ...

    def read_viewers(self, space: Space) -> Principals:
        """Return those who may view a space, except anonymous visitors."""
        ...

    def is_public(self, space: Space) -> bool:
        """Return whether anonymous visitors may view a space, found by a request without credential."""
        ...

    def list_groups(self) -> Iterator[Group]:
        """Yield all groups, in any order, each at least once."""
        ...

    def list_members(self, group: Group) -> Iterator[User]: ...

    def read_user(self, user: User) -> User:
        """Return the user with the name and, if the site shows it, the e-mail address."""
        ...
