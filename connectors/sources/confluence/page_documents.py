"""A page or a blog post with its comments as one document."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from connectors.access import Access
from connectors.document import Document, Person, Place, Section
from connectors.extraction.registry import HTML
from connectors.sources.confluence import storage_format
from connectors.sources.confluence.models import Comment, Content, ContentKind, User
from connectors.sources.confluence.users_and_groups import UserDirectory
from connectors.text_cleaning import shorten_title, to_one_line

_FORMAT = 1
"""Raised when the same responses give another document, so that all are read again."""
_MAX_QUOTED = 100
"""Characters of the text to which an inline comment refers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentWithAccess:
    content: Content
    ancestor_titles: tuple[str, ...]
    """From the top of the space downwards."""
    labels: tuple[str, ...]
    access: Access

    @property
    def title(self) -> str:
        return shorten_title(to_one_line(self.content.title)) or self.content.id

    @property
    def parents(self) -> tuple[str, ...]:
        space = self.content.space
        return (space.name or space.key, *self.ancestor_titles)


def get_page_id(source: str, content_id: str) -> str:
    return f"{source}:{content_id}"


def get_page_version(content: Content, comments: Sequence[Comment]) -> str:
    # Every edit of a page, its title included, gives it a new version number; comments have their own.
    versions = ";".join(sorted(f"{one.id}/{one.version_number}" for one in comments))
    digest = hashlib.sha256(versions.encode()).hexdigest()[:12] if versions else ""
    return f"{_FORMAT}:{content.version_number}:{content.updated_at:%Y%m%dT%H%M%SZ}:{digest}"


def build_page(
    source: str, page: ContentWithAccess, comments: Sequence[Comment], users: UserDirectory
) -> Document:
    """Build the document of a page.

    Raises:
        ExtractionError: the body is not in the storage format.
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    content = page.content
    ordered = sorted(comments, key=lambda one: (one.created_at, one.id))
    sections = (
        *_link(storage_format.parse_sections(content.body, users.get_name), content.link),
        *(section for comment in ordered for section in _parse_comment(comment, users)),
    )
    return Document(
        id=get_page_id(source, content.id),
        source=source,
        title=page.title,
        sections=sections or (Section(text=page.title, link=content.link),),
        link=content.link,
        media_type=HTML,
        access=page.access,
        version=get_page_version(content, comments),
        metadata={
            "space": content.space.key,
            "kind": "page" if content.kind is ContentKind.PAGE else "blog post",
            **({"labels": page.labels} if page.labels else {}),
        },
        owners=get_owners(content.authors, users),
        created_at=content.created_at,
        updated_at=_get_last_change(content, comments),
        parents=page.parents,
    )


def get_owners(authors: Sequence[User], users: UserDirectory) -> tuple[Person, ...]:
    return tuple(dict.fromkeys(filter(None, map(users.get_person, authors))))


def _get_last_change(content: Content, comments: Sequence[Comment]) -> datetime:
    return max([content.updated_at, *(one.created_at for one in comments)])


def _parse_comment(comment: Comment, users: UserDirectory) -> Iterator[Section]:
    author = users.get_person(comment.author)
    quoted = to_one_line(comment.quoted)[:_MAX_QUOTED]
    parts = (
        author.name if author else "",
        f"{comment.created_at:%Y-%m-%d}",
        f"on “{quoted}”" if quoted else "",
    )
    heading = ", ".join(filter(None, parts))
    sections = storage_format.parse_sections(comment.body, users.get_name)
    for section in _link(sections, comment.link):
        path = (heading, *section.place.heading_path)
        yield replace(section, place=Place(heading_path=path))


def _link(sections: Sequence[Section], link: str) -> Iterator[Section]:
    for section in sections:
        yield replace(section, link=link or None)
