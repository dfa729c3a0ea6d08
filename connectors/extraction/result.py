"""The result of extracting a file, and the error if it cannot be extracted."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from connectors.document import Metadata, Person, Place, Section, SectionKind
from connectors.errors import QuarryError
from connectors.text_cleaning import replace_unstorable, to_one_line

LONGEST_HEADING = 300
"""In characters. A longer one is body text with the wrong style."""

_LONGEST_NAME = 300


class ExtractionError(QuarryError):
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
        """
        Raises:
            ExtractionError: the maximum is exceeded.
        """
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
