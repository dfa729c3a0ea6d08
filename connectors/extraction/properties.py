"""What office files state about themselves: title, authors, dates."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from connectors.document import Metadata, Person
from connectors.extraction.extracted import one_line, people, utc

_PLACEHOLDERS = {"untitled", "anonymous", "unspecified", "none", "word document"}
_FILE_NAME = re.compile(r"[^\s]+\.\w{2,4}|Microsoft (?:Word|PowerPoint|Excel) - .*")
_LIBRARIES = {"python-docx", "python-pptx", "openpyxl", "anonymous"}
_TEMPLATES = {
    datetime(2013, 12, 23, 23, 15, tzinfo=UTC),
    datetime(2013, 1, 27, 9, 14, 16, tzinfo=UTC),
    datetime(2013, 1, 27, 9, 15, 58, tzinfo=UTC),
}


def stated_title(text: object) -> str | None:
    """A title, unless it is one that a program put there: a placeholder, or the file's name."""
    title = one_line(text) if isinstance(text, str) else ""
    if title.strip("()[]. ").lower() in _PLACEHOLDERS or _FILE_NAME.fullmatch(title):
        return None
    return title or None


def stated_authors(texts: Iterable[object]) -> tuple[Person, ...]:
    """Authors, unless it is the library that wrote the file."""
    names = (name for text in texts if isinstance(text, str) for name in text.split(";"))
    return people(name for name in names if one_line(name).lower() not in _LIBRARIES)


def stated_time(moment: object) -> datetime | None:
    """A date, unless it is that of the template from which a library made the file."""
    found = utc(moment) if isinstance(moment, datetime) else None
    return None if found in _TEMPLATES else found


def stated_metadata(**texts: object) -> Metadata:
    found = {name: one_line(text) for name, text in texts.items() if isinstance(text, str)}
    return {name: text for name, text in found.items() if text}
