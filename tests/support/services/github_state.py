"""What a GitHub of a test holds: repositories, and what is said in them."""

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
    """To a comment on a discussion."""
    state: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    number: int
    title: str
    body: str | None = ""
    by: str | None = "ann"
    at: datetime = LONG_AGO
    """When it last changed."""
    is_pull: bool = False
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    reviews: tuple[Comment, ...] = ()
    line_comments: tuple[Comment, ...] = ()
    status: int = 200
    """With which what was said on it is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discussion:
    number: int
    title: str
    body: str = ""
    by: str | None = "ann"
    at: datetime = LONG_AGO
    """When it last changed."""
    category: str = "General"
    answer: int | None = None
    """Which of the comments answers it; in the category Q&A alone."""
    is_closed: bool = False
    labels: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    status: int = 200
    """With which what was said on it is answered."""


@dataclass(slots=True, kw_only=True)
class Repo:
    """What tests change while it is served; a lock is not needed: they do so between requests."""

    id: int
    name: str
    visibility: str = "public"
    collaborators: list[str] = field(default_factory=list)
    """Logins; those who may push are not told from others."""
    issues: dict[int, Issue] = field(default_factory=dict)
    discussions: dict[int, Discussion] = field(default_factory=dict)
    has_issues: bool = True
    has_discussions: bool = False
    has_wiki: bool = False
    discussions_visible: bool = True
    collaborators_visible: bool = True
    former_name: str = ""
    """A name that it had."""
    orphaned_comments: list[tuple[int, datetime]] = field(default_factory=list)
    """Comments on items that are not there, which the list of all comments tells for a while."""
    crowd: int = 0
    """So many small issues, made as they are asked for, a second apart."""

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
    """As GitHub writes it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
