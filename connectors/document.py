"""What every source yields: a document, its sections, and who may read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from connectors.access import Access

SectionKind: TypeAlias = Literal["text", "table", "image"]
Metadata: TypeAlias = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """`[start, end)` in Unicode code points of a named text."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a span: [{self.start}, {self.end})")

    def of(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    email: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a section stands in its document. What a format does not know is left out."""

    page: int | None = None
    """Counted from 1."""
    heading_path: tuple[str, ...] = ()
    """The headings above and of the section, outermost first."""
    sheet: str | None = None
    rows: tuple[int, int] | None = None
    """First and last row of the sheet or table, counted from 1, both included."""
    span: Span | None = None
    """In the decoded text of the file, where it is a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One readable piece of a document. Tables are Markdown tables; an image is its description."""

    text: str
    kind: SectionKind = "text"
    link: str | None = None
    place: Place = field(default_factory=Place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    id: str
    """Stable within Quarry: the source's name, a colon, the source's own id, in any script."""
    source: str
    title: str
    sections: tuple[Section, ...]
    link: str
    """Opens where a person would read it."""
    media_type: str
    access: Access
    version: str
    """What the source compares to learn that a document has changed; opaque to all others."""
    metadata: Metadata = field(default_factory=dict)
    owners: tuple[Person, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    parents: tuple[str, ...] = ()
    """Folder, space or channel, outermost first."""

    def __post_init__(self) -> None:
        for moment in (self.created_at, self.updated_at):
            if moment is not None and moment.utcoffset() is None:
                raise ValueError(f"{self.id}: a time without its zone: {moment}")
