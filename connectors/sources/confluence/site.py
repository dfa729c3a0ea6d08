"""What the cloud and servers both offer, each in its own way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from connectors.sources.confluence.client import Api
from connectors.sources.confluence.models import (
    Around,
    Attachment,
    Comment,
    Content,
    ContentKind,
    Group,
    Somebody,
    Space,
    Subjects,
)
from connectors.sources.confluence.pagination import Listing


@dataclass(frozen=True, slots=True)
class Sheaf:
    """One page of a list of contents."""

    contents: Sequence[Content]
    next: str | None


@dataclass(frozen=True, slots=True)
class Hung:
    """An attachment, and the id and kind of what it hangs on."""

    attachment: Attachment
    content_id: str
    kind: ContentKind


class Wiki(Protocol):
    """One site, for the length of one run. Any of its methods raises:

    ActionRequiredError: the token is not valid; Refused, a kind of it: it may not see this.
    TemporarilyUnavailableError: not now.
    BadAnswer: the answer cannot be used.
    """

    @property
    def api(self) -> Api: ...

    @property
    def searching(self) -> Listing:
        """How the results of a search are paged."""
        ...

    def spaces(self) -> Iterator[Space]:
        """Those that are in use, in any order, each at least once."""
        ...

    def contents(self, space: Space, kind: ContentKind, start: str) -> Iterator[Sheaf]:
        """The current ones of a space, with their bodies; empty `start` for the beginning."""
        ...

    def content(
        self, content_id: str, kind: ContentKind | None, spaces: Mapping[str, Space]
    ) -> Content | None:
        """The current one, with its body; none where it is gone, or in none of these spaces (by id).
        `kind` is none where it is not known."""
        ...

    def surroundings(self, contents: Sequence[Content]) -> Iterator[Around]:
        """Of each, in their order."""
        ...

    def comments(self, content: Content) -> Iterator[Comment]:
        """All of them with all answers to them, in any order."""
        ...

    def attachments(self, content: Content) -> Iterator[Attachment]:
        """The current ones, each at least once."""
        ...

    def attachment(self, attachment_id: str) -> Hung | None: ...

    def viewers(self, space: Space) -> Subjects:
        """Those who may view a space, but for anonymous visitors."""
        ...

    def is_open(self, space: Space) -> bool:
        """Whether anonymous visitors see it: found by asking without the credential."""
        ...

    def members(self, group: Group) -> Iterator[Somebody]: ...

    def described(self, one: Somebody) -> Somebody:
        """With the name and, where the site shows it, the e-mail address."""
        ...
