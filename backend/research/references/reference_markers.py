"""The markers of references in a text, and the list of references below it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count, islice
from typing import Generic, TypeAlias, TypeVar

from backend.research.knowledge_items import Reference
from connectors.document import Span
from connectors.text_cleaning import replace_controls
from indexing.text.markdown_links import escape_markdown, safe_link

LONGEST_QUOTE = 300
"""Characters of a quote in the list."""
_BRACKETED = re.compile(r"\[[\s^]*(\d{1,9}(?:[\s,;–-]+\d{1,9})*)\s*\]")
_NUMBER = re.compile(r"\d+")


class MarkerStyle(StrEnum):
    BRACKETS = "brackets"
    """`[1]`"""
    FOOTNOTES = "footnotes"
    """`[^1]`, with the sources as the footnotes of Markdown."""

    def write(self, number: int) -> str:
        return f"[^{number}]" if self is MarkerStyle.FOOTNOTES else f"[{number}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureReference:
    """A picture of a source, and the part of an answer that it shows."""

    url: str
    """Of the picture."""
    text: str
    """What is said of the picture."""
    title: str
    """Of its source."""
    relevance_score: float
    answer_chunk: str
    answer_chunk_position: Span


Cited_co = TypeVar("Cited_co", bound=Reference | PictureReference, covariant=True)


@dataclass(frozen=True, slots=True)
class Numbered(Generic[Cited_co]):
    number: int
    marker: Span
    """In the text with its markers."""
    reference: Cited_co


NumberedReference: TypeAlias = Numbered[Reference]
NumberedPicture: TypeAlias = Numbered[PictureReference]
NumberedCitation: TypeAlias = Numbered[Reference | PictureReference]


def insert_markers(
    text: str, references: Sequence[Reference | PictureReference], style: MarkerStyle
) -> tuple[str, tuple[NumberedCitation, ...]]:
    """Put a marker behind the answer chunk of each reference.

    Numbers that the text has in brackets already mean something else: they are passed over.

    Args:
        references: in the order of the text; of two of one place, the one whose marker comes first.
    """
    parts: list[str] = []
    numbered: list[NumberedCitation] = []
    at, inserted = 0, 0
    numbers = islice(_list_free_numbers(text), len(references))
    for number, reference in zip(numbers, references, strict=True):
        end, marker = reference.answer_chunk_position.end, style.write(number)
        parts += (text[at:end], marker)
        start, at = end + inserted, end
        inserted += len(marker)
        numbered.append(Numbered(number, Span(start, end + inserted), reference))
    return "".join([*parts, text[at:]]), tuple(numbered)


def _list_free_numbers(text: str) -> Iterator[int]:
    taken = {
        int(number) for found in _BRACKETED.finditer(text) for number in _NUMBER.findall(found[1])
    }
    return (number for number in count(1) if number not in taken)


def write_reference_list(citations: Iterable[NumberedCitation], style: MarkerStyle) -> str:
    """Return the references in Markdown, to stand below the text; nothing of a source can be read as markup."""
    return "\n".join(_write_item(one, style) for one in citations)


def _write_item(one: NumberedCitation, style: MarkerStyle) -> str:
    marker = style.write(one.number)
    lead = f"{marker}:" if style is MarkerStyle.FOOTNOTES else f"- {marker}"
    return f"{lead} {_describe(one.reference)}"


def _describe(cited: Reference | PictureReference) -> str:
    match cited:
        case Reference(exact_quote=quote, date_time=date_time):
            date = f", {date_time:%Y-%m-%d}" if date_time else ""
            return f"{_name_source(cited)}{date}: {quote_on_one_line(quote)}"
        case PictureReference(text=text):
            return f"{_name_source(cited)}, a picture: {quote_on_one_line(text)}"


def _name_source(cited: Reference | PictureReference) -> str:
    title = _to_line(cited.title) or _to_line(cited.url) or "Untitled"
    link = safe_link(cited.url)
    return f"[{title}]({link})" if link else title


def quote_on_one_line(text: str) -> str:
    """Return a quote of a source in Markdown, in its first characters where it is long."""
    return f"“{_to_line(_shorten(text))}”"


def _shorten(quote: str) -> str:
    return quote if len(quote) <= LONGEST_QUOTE else f"{quote[:LONGEST_QUOTE].rstrip()}…"


def _to_line(text: str) -> str:
    return escape_markdown(" ".join(replace_controls(text).split()))
