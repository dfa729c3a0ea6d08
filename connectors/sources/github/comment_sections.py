"""What people said, in Markdown, as sections under headings that tell who and when."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from connectors.document import Person, Place, Section
from connectors.extraction.media_types import MARKDOWN
from connectors.extraction.registry import extract
from connectors.extraction.result import CannotRead, safe
from connectors.sources.github.permissions import Rights

_RULE = re.compile(r"\A\s*---(?=[ \t]*\r?$)", re.MULTILINE)
"""A text that begins so has a rule there, no front matter as a file has."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Saying:
    """A comment, a review, a reply, or a comment on a line of a change."""

    at: datetime
    link: str
    heading: str
    text: str
    edited: str
    """When it last changed."""


def heading(login: str, at: datetime, besides: str = "") -> str:
    return ", ".join(filter(None, (login, f"{at:%Y-%m-%d}", besides)))


def sections(text: str, link: str, above: Sequence[str] = ()) -> Iterator[Section]:
    """None where it says nothing."""
    if not text.strip():
        return
    try:
        found = extract(_RULE.sub("***", safe(text)).encode(), MARKDOWN).sections
    except CannotRead:
        found = (Section(text=safe(text)),)
    for one in found:
        place = Place(heading_path=(*above, *one.place.heading_path))
        yield replace(one, place=place, link=link or None)


def author(login: str, rights: Rights) -> tuple[Person, ...]:
    """Nobody where the account is gone."""
    return (Person(login, rights.addresses.get(login.lower())),) if login else ()
