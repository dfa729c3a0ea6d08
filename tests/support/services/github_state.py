"""The data of a fake GitHub: repositories with issues, discussions and comments."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

LONG_AGO = datetime(2026, 1, 5, 8, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment, a review, a comment on a line, or a reply."""

    by: str
    body: str
    at: datetime = LONG_AGO
    replies: tuple["Comment", ...] = ()
    """Of a comment on a discussion."""
    state: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    number: int
    title: str
    body: str | None = ""
    by: str | None = "ann"
    at: datetime = LONG_AGO
    """The time of the last change."""
    is_pull: bool = False
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    reviews: tuple[Comment, ...] = ()
    line_comments: tuple[Comment, ...] = ()
    status: int = 200
    """The status of replies about its comments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discussion:
    number: int
    title: str
    body: str = ""
    by: str | None = "ann"
    at: datetime = LONG_AGO
    """The time of the last change."""
    category: str = "General"
    answer: int | None = None
    """The index of the comment that answers it, in the category Q&A."""
    is_closed: bool = False
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    status: int = 200
    """The status of replies about its comments."""


@dataclass(slots=True, kw_only=True)
class Repo:
    """A repository that tests change between requests, so that it needs no lock."""

    id: int
    name: str
    visibility: str = "public"
    collaborators: list[str] = field(default_factory=list)
    """Logins."""
    issues: dict[int, Issue] = field(default_factory=dict)
    discussions: dict[int, Discussion] = field(default_factory=dict)
    has_issues: bool = True
    has_discussions: bool = False
    has_wiki: bool = False
    discussions_visible: bool = True
    collaborators_visible: bool = True
    former_name: str = ""
    """A name before a rename."""
    orphaned_comments: list[tuple[int, datetime]] = field(default_factory=list)
    """Comments on deleted issues, which the list of all comments contains for a while."""
    crowd: int = 0
    """The number of small issues generated on request, a second apart."""

    def put(self, *issues: Issue) -> None:
        self.issues |= {one.number: one for one in issues}

    def change(self, number: int, **values: Any) -> None:
        self.issues[number] = replace(self.issues[number], **values)

    def add_discussions(self, *discussions: Discussion) -> None:
        self.has_discussions = True
        self.discussions |= {one.number: one for one in discussions}

    def update_discussion(self, number: int, **values: Any) -> None:
        self.discussions[number] = replace(self.discussions[number], **values)


def format_time(moment: datetime) -> str:
    """Format a time as GitHub does."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
