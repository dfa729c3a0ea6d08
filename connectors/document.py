"""The document model: what every source yields."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from connectors.access import Access

SectionKind: TypeAlias = Literal["text", "table", "image"]
Metadata: TypeAlias = Mapping[str, str | tuple[str, ...]]

_NOT_BLANK = re.compile(r"\S")


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

    def trim(self, text: str) -> "Span | None":
        """Return the span without blanks at both ends; None if nothing is left.

        Takes as long as the blanks are many, however long the span is: the rest of a long text is trimmed after each piece
        that is cut off it.
        """
        start, end = self.start, min(self.end, len(text))
        if start < end and not (text[start].isspace() or text[end - 1].isspace()):
            return self
        first = _NOT_BLANK.search(text, start, end)
        if first is None:
            return None
        while text[end - 1].isspace():
            end -= 1
        return Span(first.start(), end)


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    email: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Position of a section in its document. What a format does not provide is left out."""

    page: int | None = None
    """Counted from 1."""
    heading_path: tuple[str, ...] = ()
    """The section's heading and those above it, outermost first."""
    sheet: str | None = None
    rows: tuple[int, int] | None = None
    """First and last row of the sheet or table, counted from 1, both included."""
    span: Span | None = None
    """In the decoded text of a text file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a document. A table is a Markdown table; an image is represented by its description."""

    text: str
    kind: SectionKind = "text"
    link: str | None = None
    place: Place = field(default_factory=Place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    id: str
    """Stable: the source's name, a colon, and the source's own id, in any script."""
    source: str
    title: str
    sections: tuple[Section, ...]
    link: str
    """URL where a person reads the document."""
    media_type: str
    access: Access
    version: str
    """Compared by the source to detect changes; opaque to all others."""
    metadata: Metadata = field(default_factory=dict)
    owners: tuple[Person, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    parents: tuple[str, ...] = ()
    """Folder, space or channel, outermost first."""

    def __post_init__(self) -> None:
        for moment in (self.created_at, self.updated_at):
            if moment is not None and moment.utcoffset() is None:
                raise ValueError(f"{self.id}: a time without a time zone: {moment}")
