"""What reading a file gives, and the one way in which it fails."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from connectors.document import Metadata, Person, Place, Section, SectionKind

LONGEST_HEADING = 300
"""Characters. What is longer was meant as text."""

_LONGEST_NAME = 300
_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")


class CannotRead(Exception):
    """The file cannot be read; the message says why, in words for the person who owns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    sections: tuple[Section, ...]
    """At least one; in the order of the file."""
    title: str | None = None
    """As the format states it, else the first heading."""
    metadata: Metadata = field(default_factory=dict)
    authors: tuple[Person, ...] = ()
    created_at: datetime | None = None
    """Aware, UTC."""
    updated_at: datetime | None = None


class Allowance:
    """How much of something may still be read; `limit` says in words what is too much."""

    def __init__(self, most: int, limit: str) -> None:
        self._left = most
        self._limit = limit

    def take(self, amount: int) -> None:
        """
        Raises:
            CannotRead: more than is left.
        """
        self._left -= amount
        if self._left < 0:
            raise CannotRead(self._limit)


def safe(text: str) -> str:
    """`text` without what UTF-8 or a database cannot hold; every character keeps its place."""
    return _FORBIDDEN.sub("\ufffd", text)


def one_line(text: str) -> str:
    return " ".join(safe(text).split())


def shortened(text: str) -> str:
    """A title of a length that people and prompts can bear."""
    return text if len(text) <= LONGEST_HEADING else f"{text[:LONGEST_HEADING]}…"


def section(text: str, place: Place, kind: SectionKind = "text") -> Section:
    path = tuple(filter(None, map(one_line, place.heading_path)))
    return Section(text=safe(text), kind=kind, place=replace(place, heading_path=path))


def utc(moment: datetime | None) -> datetime | None:
    """`moment` in UTC; one without a zone is taken for UTC, one out of all bounds for none."""
    if moment is None:
        return None
    if moment.utcoffset() is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def parsed_time(text: str) -> datetime | None:
    """The moment that an ISO 8601 text states, in UTC."""
    try:
        return utc(datetime.fromisoformat(text.strip()))
    except ValueError:
        return None


def people(names: Iterable[str]) -> tuple[Person, ...]:
    """Persons from names as files state them: `Ann Lee`, `Ann Lee <ann@example.com>`."""
    lines = (one_line(name[:_LONGEST_NAME]) for name in names)
    return tuple(dict.fromkeys(map(_person, filter(None, lines))))


def _person(text: str) -> Person:
    if match := re.fullmatch(r"(?:(.*?)\s*)<?([^\s<>@]+@[^\s<>@]+)>?", text):
        return Person(match[1].strip('" ') or match[2], match[2].lower())
    return Person(text)
