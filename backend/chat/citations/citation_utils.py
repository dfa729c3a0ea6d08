"""Merge the citations of several texts into one numbering, or remove those of a text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from backend.chat.citations.citation_processor import (
    CitationMode,
    CitedDocument,
    DynamicCitationProcessor,
)
from backend.chat.citations.marker_parser import Marker, Piece, split_markers

_BRACKET = re.compile(r"\\.|[\[\]]", re.DOTALL)
"""Or an escape, in which it is none."""


def remove_citations(text: str) -> str:
    """Return the text without its markers and the addresses behind them."""
    processor = DynamicCitationProcessor(CitationMode.REMOVE)
    pieces = [*processor.process_token(text), *processor.process_token(None)]
    return "".join(piece for piece in pieces if isinstance(piece, str))


@dataclass(frozen=True, slots=True)
class CollapsedText:
    text: str
    mapping: Mapping[int, CitedDocument]
    """All of `into`, and the documents that the text cites in addition."""


def collapse_citations(
    answer: str,
    mapping: Mapping[int, CitedDocument],
    into: Mapping[int, CitedDocument] = MappingProxyType({}),
) -> CollapsedText:
    """Renumber the citations of `answer` from `mapping` to continue `into`.

    A document of `into` keeps its number there, any other takes the next free one, in the order of
    first citation. Adjacent markers name a document once. An unmapped number would come to mean
    another document in the new numbering: it is escaped, `\\[7\\]`, which reads the same and cites
    nothing. Time is linear.

    Args:
        answer: a text in which the markers were kept.
    """
    numbering = _Renumbering(mapping, into)
    pieces = split_markers(answer)
    written = _write(pieces, numbering)
    if written is None:
        # Around an unmapped number, which is escaped, brackets may have become the text of a link: `[see [7]][1]`.
        pieces = [
            piece if isinstance(piece, Marker) else _escape_unclosed(piece) for piece in pieces
        ]
        written = _write(pieces, numbering) or "".join(map(numbering.renumber_in_place, pieces))
    return CollapsedText(written, numbering.mapping)


def _write(pieces: Sequence[Piece], numbering: "_Renumbering") -> str | None:
    """Return the text with its new numbers; None where it would be read otherwise than it is meant."""
    text, cited = _collapse(pieces, numbering)
    if _list_markers(text) == cited:
        return text
    # A marker that was shortened or left out has made its neighbors a part of it, a link, an escape or code.
    text = "".join(map(numbering.renumber_in_place, pieces))
    numbers = [
        new for piece in pieces if isinstance(piece, Marker) and (new := numbering.renumber(piece))
    ]
    return text if [list(marker.numbers) for marker in _list_markers(text)] == numbers else None


def _list_markers(text: str) -> list[Marker]:
    return [piece for piece in split_markers(text) if isinstance(piece, Marker)]


def _escape_unclosed(text: str) -> str:
    """Escape the opening brackets that are not closed within the text, which then reads the same."""
    unclosed: list[int] = []
    for match in _BRACKET.finditer(text):
        if match[0] == "[":
            unclosed.append(match.start())
        elif match[0] == "]" and unclosed:
            unclosed.pop()
    ends = [0, *unclosed, len(text)]
    return "\\".join(text[start:end] for start, end in pairwise(ends))


def _collapse(pieces: Sequence[Piece], numbering: "_Renumbering") -> tuple[str, list[Marker]]:
    """Return the text with short markers, and these."""
    parts: list[str] = []
    cited: list[Marker] = []
    blank = ""
    beside: set[int] = set()
    for piece in pieces:
        if isinstance(piece, Marker):
            fresh = tuple(number for number in numbering.renumber(piece) if number not in beside)
            beside.update(fresh)
            cited += [Marker(_marker(fresh), fresh)] if fresh else []
            text = _marker(fresh) + numbering.escape_unmapped(piece)
            parts += [blank, text] if text else []
            blank = ""
        elif beside and not piece.strip(" \t"):
            blank = piece
        else:
            parts.append(piece)
            beside = set()
    return "".join([*parts, blank]), cited


class _Renumbering:
    def __init__(
        self, mapping: Mapping[int, CitedDocument], into: Mapping[int, CitedDocument]
    ) -> None:
        self.mapping = dict(into)
        self._old = mapping
        self._new = {document.document_id: number for number, document in into.items()}
        self._next = max(into, default=0) + 1

    def renumber(self, marker: Marker) -> list[int]:
        """Return the new numbers of the documents that the marker cites, each once."""
        return list(dict.fromkeys(self._number(n) for n in marker.numbers if n in self._old))

    def escape_unmapped(self, marker: Marker) -> str:
        return "".join(rf"\[{number}\]" for number in marker.numbers if number not in self._old)

    def renumber_in_place(self, piece: Piece) -> str:
        """Renumber a marker as it is written, so that it and its neighbors are read as before."""
        if isinstance(piece, str):
            return piece
        numbers = self.renumber(piece)
        return piece.renumbered(numbers) if numbers else self.escape_unmapped(piece)

    def _number(self, old: int) -> int:
        document = self._old[old]
        number = self._new.setdefault(document.document_id, self._next)
        if number == self._next:
            self.mapping[number] = document
            self._next += 1
        return number


def _marker(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]" if numbers else ""
