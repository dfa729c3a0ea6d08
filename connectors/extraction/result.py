"""What reading a file gives, and the one way in which it fails."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from connectors.document import Metadata, Person, Place, Section, SectionKind
from connectors.text_cleaning import replace_unstorable, to_one_line

LONGEST_HEADING = 300
"""Characters. What is longer was meant as text."""

_LONGEST_NAME = 300


class ExtractionError(Exception):
    """The file cannot be read; the message says why, in words for the person who owns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult:
    sections: tuple[Section, ...]
    """At least one; in the order of the file."""
    title: str | None = None
    """As the format states it, else the first heading."""
    metadata: Metadata = field(default_factory=dict)
    authors: tuple[Person, ...] = ()
    created_at: datetime | None = None
    """Aware, UTC."""
    updated_at: datetime | None = None


class SizeLimit:
    """How much of something may still be read; `limit` says in words what is too much."""

    def __init__(self, most: int, limit: str) -> None:
        self._left = most
        self._limit = limit

    def take(self, amount: int) -> None:
        """
        Raises:
            ExtractionError: more than is left.
        """
        self._left -= amount
        if self._left < 0:
            raise ExtractionError(self._limit)


def make_section(text: str, place: Place, kind: SectionKind = "text") -> Section:
    path = tuple(filter(None, map(to_one_line, place.heading_path)))
    return Section(
        text=replace_unstorable(text), kind=kind, place=replace(place, heading_path=path)
    )


def parse_people(names: Iterable[str]) -> tuple[Person, ...]:
    """Persons from names as files state them: `Ann Lee`, `Ann Lee <ann@example.com>`."""
    lines = (to_one_line(name[:_LONGEST_NAME]) for name in names)
    return tuple(dict.fromkeys(map(_person, filter(None, lines))))


def _person(text: str) -> Person:
    if match := re.fullmatch(r"(?:(.*?)\s*)<?([^\s<>@]+@[^\s<>@]+)>?", text):
        return Person(match[1].strip('" ') or match[2], match[2].lower())
    return Person(text)
