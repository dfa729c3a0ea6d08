"""The content of a site as its API returns it: spaces, pages and blog posts, comments, attachments."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ContentKind(StrEnum):
    PAGE = "page"
    BLOG_POST = "blogpost"


@dataclass(frozen=True, slots=True)
class Space:
    id: str
    key: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user as a response describes them; what it does not contain is empty."""

    key: str = ""
    """The account ID in the cloud, the user key on a server."""
    username: str = ""
    """On a server only."""
    name: str = ""
    email: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    id: str
    """In the cloud the id, on a server the name."""
    name: str


@dataclass(frozen=True, slots=True)
class Principals:
    """Those to whom a permission or a restriction applies."""

    users: Sequence[User] = ()
    groups: Sequence[Group] = ()

    def __bool__(self) -> bool:
        return bool(self.users or self.groups)


UNKNOWN_PRINCIPALS = Principals(users=(User(),))
"""For content that is restricted to people whom the token may not see: not empty, yet nobody."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    id: str
    title: str
    """Empty if the response does not contain it."""
    viewers: Principals
    """Those to whom it is restricted; empty if it is not restricted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentContext:
    """The ancestors of a page, its labels, and who may view it."""

    ancestors: Sequence[Ancestor] = ()
    """From the top of the space downwards."""
    viewers: Principals = Principals()
    labels: tuple[str, ...] = ()
    has_comments: bool = True
    """Whether it may have some."""
    has_attachments: bool = True
    """Whether it may have some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The current version of a page or a blog post."""

    id: str
    kind: ContentKind
    title: str
    space: Space
    parent: str
    """The id of the parent; empty if there is none, or if `context` contains it."""
    link: str
    body: str
    """In the storage format; empty if it was not requested."""
    version_number: int
    created_at: datetime
    updated_at: datetime
    authors: tuple[User, ...]
    """The creator, and the author of the last change."""
    context: ContentContext | None = None
    """If the response contains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    id: str
    version_number: int
    created_at: datetime
    author: User
    body: str
    quoted: str
    """The text of the page to which an inline comment refers."""
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    id: str
    title: str
    size: int | None
    """Bytes."""
    version_number: int
    updated_at: datetime
    created_at: datetime | None
    author: User
    link: str
    path: str
    """The path of its content below the URL of the API."""
