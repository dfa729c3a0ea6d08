"""The result of extracting a file, and the error if it cannot be extracted.

Sections are built from the headings, paragraphs and tables of a document, in order.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from connectors.document import Metadata, Person, Place, Section, SectionKind
from connectors.errors import HandledError
from connectors.text_cleaning import replace_unstorable, to_one_line

LONGEST_HEADING = 300
"""In characters. A longer one is body text with the wrong style."""

_LONGEST_NAME = 300

_MOST_SECTIONS = 200_000


class ExtractionError(HandledError):
    """A file cannot be read; the message says why, in words for its owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult:
    sections: tuple[Section, ...]
    """At least one, in the order of the file."""
    title: str | None = None
    """From the properties of the file, else the first heading."""
    metadata: Metadata = field(default_factory=dict)
    authors: tuple[Person, ...] = ()
    created_at: datetime | None = None
    """In UTC, with time zone."""
    updated_at: datetime | None = None


class SizeLimit:
    """Counts up to a maximum; `message` describes a file that exceeds it."""

    def __init__(self, maximum: int, message: str) -> None:
        self._remaining = maximum
        self._message = message

    def add(self, amount: int) -> None:
        """Count so much more. Raises ExtractionError: the maximum is exceeded."""
        self._remaining -= amount
        if self._remaining < 0:
            raise ExtractionError(self._message)


def make_section(text: str, place: Place, kind: SectionKind = "text") -> Section:
    path = tuple(filter(None, map(to_one_line, place.heading_path)))
    return Section(
        text=replace_unstorable(text), kind=kind, place=replace(place, heading_path=path)
    )


def parse_people(names: Iterable[str]) -> tuple[Person, ...]:
    """Parse names as files contain them: `Ann Lee`, `Ann Lee <ann@example.com>`."""
    lines = (to_one_line(name[:_LONGEST_NAME]) for name in names)
    return tuple(dict.fromkeys(map(_parse_person, filter(None, lines))))


def _parse_person(text: str) -> Person:
    if match := re.fullmatch(r"(?:(.*?)\s*)<?([^\s<>@]+@[^\s<>@]+)>?", text):
        return Person(match[1].strip('" ') or match[2], match[2].lower())
    return Person(text)


class HeadingStack:
    """The headings above the current position, outermost first."""

    def __init__(self) -> None:
        self.first: str | None = None
        self._open: list[tuple[int, str]] = []

    def push(self, level: int, text: str) -> None:
        """Start the part below a heading; 1 is the outermost level."""
        title = to_one_line(text)
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        if title:
            self._open.append((level, title))
            self.first = self.first or title

    @property
    def level(self) -> int:
        """Level of the innermost heading; 0 above the first."""
        return self._open[-1][0] if self._open else 0

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(title for _, title in self._open)


class SectionBuilder:
    """Makes a section of each heading's own text and of each table.

    A heading without text below it becomes a section of its own, so that it can be found.
    """

    def __init__(self) -> None:
        self.headings = HeadingStack()
        self._sections: list[Section] = []
        self._blocks: list[str] = []
        self._has_bare_heading = False
        self._limit = SizeLimit(
            _MOST_SECTIONS, f"it has more than {_MOST_SECTIONS:,} headings and tables"
        )

    def add_heading(self, level: int, text: str) -> None:
        if len(text) > LONGEST_HEADING:
            self.add_paragraph(text)
            return
        self._flush()
        if level <= self.headings.level:
            self._add_bare_heading()
        self.headings.push(level, text)
        self._has_bare_heading = bool(text.strip())

    def add_paragraph(self, text: str) -> None:
        """Add a block of text."""
        if text.strip():
            self._blocks.append(f"\n\n{text}" if self._blocks else text)

    def add_list_item(self, text: str) -> None:
        """Add a list item, with its mark and indentation."""
        if text.strip():
            self._blocks.append(f"\n{text}" if self._blocks else text)

    def add_table(self, markdown: str | None) -> None:
        if markdown:
            self._flush()
            self._add_section(Section(text=replace_unstorable(markdown), kind="table"))

    def build(self) -> tuple[Section, ...]:
        self._flush()
        self._add_bare_heading()
        return tuple(self._sections)

    def _flush(self) -> None:
        text = "".join(self._blocks).strip("\n")
        self._blocks.clear()
        if text:
            self._add_section(Section(text=text))

    def _add_bare_heading(self) -> None:
        if self._has_bare_heading:
            self._add_section(Section(text=self.headings.path[-1]))

    def _add_section(self, piece: Section) -> None:
        self._limit.add(1)
        place = Place(heading_path=self.headings.path)
        self._sections.append(make_section(piece.text, place, piece.kind))
        self._has_bare_heading = False
