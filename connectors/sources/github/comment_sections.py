"""Comments in Markdown as sections under headings with author and date."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from connectors.document import Place, Section
from connectors.extraction.registry import MARKDOWN, extract
from connectors.extraction.result import ExtractionError
from connectors.text_cleaning import replace_unstorable

_LEADING_RULE = re.compile(r"\A\s*---(?=[ \t]*\r?$)", re.MULTILINE)
"""A horizontal rule at the start of a comment; at the start of a file it begins front matter."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Comment:
    """A comment, a review, a reply, or a comment on a line of a change."""

    created_at: datetime
    link: str
    heading: str
    text: str
    edited: str
    """When it was last changed, as a stamp."""


def format_heading(login: str, created_at: datetime, suffix: str = "") -> str:
    return ", ".join(filter(None, (login, f"{created_at:%Y-%m-%d}", suffix)))


def to_sections(text: str, link: str, headings: Sequence[str] = ()) -> Iterator[Section]:
    """Convert Markdown to sections below the headings; none if the text is blank."""
    if not text.strip():
        return
    try:
        sections = extract(
            _LEADING_RULE.sub("***", replace_unstorable(text)).encode(), MARKDOWN
        ).sections
    except ExtractionError:
        sections = (Section(text=replace_unstorable(text)),)
    for section in sections:
        place = Place(heading_path=(*headings, *section.place.heading_path))
        yield replace(section, place=place, link=link or None)
