"""What a site holds, as its answers tell it: spaces, pages and blog posts, comments, attachments."""

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
class Somebody:
    """A person as an answer names them; what it does not tell is empty."""

    key: str = ""
    """The account ID in the cloud, the user key on a server."""
    username: str = ""
    """On a server only."""
    name: str = ""
    email: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    id: str
    """In the cloud its id, on a server its name."""
    name: str


@dataclass(frozen=True, slots=True)
class Subjects:
    """Those whom a permission or a restriction names."""

    people: Sequence[Somebody] = ()
    groups: Sequence[Group] = ()

    def __bool__(self) -> bool:
        return bool(self.people or self.groups)


UNTOLD = Subjects(people=(Somebody(),))
"""Of what is restricted to people who are not told."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    id: str
    title: str
    """Empty where it is not told."""
    viewers: Subjects
    """Those it is restricted to; none where it is not restricted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands around a page: above it, on it, and who may view it."""

    ancestors: Sequence[Ancestor] = ()
    """From the top of the space downwards."""
    viewers: Subjects = Subjects()
    labels: tuple[str, ...] = ()
    has_comments: bool = True
    """Whether it may have some."""
    has_attachments: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A page or a blog post as it is now."""

    id: str
    kind: ContentKind
    title: str
    space: Space
    parent: str
    """Id of what it stands below; empty where it is told by `around`, or there is none."""
    link: str
    body: str
    """In the storage format; empty where it was not asked for."""
    number: int
    """Of its version."""
    created_at: datetime
    updated_at: datetime
    authors: tuple[Somebody, ...]
    """Who made it, and who changed it last."""
    around: Around | None = None
    """Where it was told with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    id: str
    number: int
    at: datetime
    by: Somebody
    body: str
    quoted: str
    """The words of the page that an inline comment is about."""
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    id: str
    title: str
    size: int | None
    """Bytes."""
    number: int
    updated_at: datetime
    created_at: datetime | None
    by: Somebody
    link: str
    path: str
    """Where its bytes are, from where the site begins."""
