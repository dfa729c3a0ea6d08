"""A page or a blog post with all that was said on it, as one document."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from connectors.document import Access, Document, Person, Place, Section
from connectors.extraction.media_types import HTML
from connectors.extraction.result import one_line, shortened
from connectors.sources.confluence import storage_format
from connectors.sources.confluence.models import Comment, Content, ContentKind, Somebody
from connectors.sources.confluence.users_and_groups import People

_READING = 1
"""Goes up when the same answers are read into another document."""
_MOST_QUOTED = 100
"""Characters of the words that an inline comment is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A page, where it stands and who may read it."""

    content: Content
    above: tuple[str, ...]
    """Titles of its ancestors, from the top of the space downwards."""
    labels: tuple[str, ...]
    access: Access

    @property
    def title(self) -> str:
        return shortened(one_line(self.content.title)) or self.content.id

    @property
    def parents(self) -> tuple[str, ...]:
        space = self.content.space
        return (space.name or space.key, *self.above)


def page_id(source: str, content_id: str) -> str:
    return f"{source}:{content_id}"


def version(content: Content, comments: Sequence[Comment]) -> str:
    """Every edit of a page, its title with it, gives it another version; comments have their own."""
    told = ";".join(sorted(f"{one.id}/{one.number}" for one in comments))
    digest = hashlib.sha256(told.encode()).hexdigest()[:12] if told else ""
    return f"{_READING}:{content.number}:{content.updated_at:%Y%m%dT%H%M%SZ}:{digest}"


def document(
    source: str, standing: Standing, comments: Sequence[Comment], people: People
) -> Document:
    """
    Raises:
        CannotRead: its text is not as Confluence writes it.
        ActionRequiredError, TemporarilyUnavailableError: see `connectors.sources.confluence.site.Wiki`.
    """
    content = standing.content
    found = [
        *_linked(storage_format.sections(content.body, people.name), content.link),
        *(one for said in _in_order(comments) for one in _comment(said, people)),
    ]
    kind = "page" if content.kind is ContentKind.PAGE else "blog post"
    return Document(
        id=page_id(source, content.id),
        source=source,
        title=standing.title,
        sections=tuple(found) or (Section(text=standing.title, link=content.link),),
        link=content.link,
        media_type=HTML,
        access=standing.access,
        version=version(content, comments),
        metadata={
            "space": content.space.key,
            "kind": kind,
            **({"labels": standing.labels} if standing.labels else {}),
        },
        owners=owners(content.authors, people),
        created_at=content.created_at,
        updated_at=last_said(content, comments),
        parents=standing.parents,
    )


def owners(authors: Sequence[Somebody], people: People) -> tuple[Person, ...]:
    return tuple(dict.fromkeys(filter(None, map(people.person, authors))))


def last_said(content: Content, comments: Sequence[Comment]) -> datetime:
    return max([content.updated_at, *(one.at for one in comments)])


def _in_order(comments: Sequence[Comment]) -> list[Comment]:
    return sorted(comments, key=lambda one: (one.at, one.id))


def _comment(said: Comment, people: People) -> Iterator[Section]:
    by = people.person(said.by)
    quoted = one_line(said.quoted)[:_MOST_QUOTED]
    about = f"on “{quoted}”" if quoted else ""
    heading = ", ".join(filter(None, (by.name if by else "", f"{said.at:%Y-%m-%d}", about)))
    for one in _linked(storage_format.sections(said.body, people.name), said.link):
        yield replace(one, place=Place(heading_path=(heading, *one.place.heading_path)))


def _linked(sections: Sequence[Section], link: str) -> Iterator[Section]:
    for one in sections:
        yield replace(one, link=link or None)
