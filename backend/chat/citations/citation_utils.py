"""Merge the citations of several texts into one numbering, without citing a document twice in a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from backend.chat.citations.citation_processor import CitedDocument
from backend.chat.citations.marker_parser import Marker, split_markers


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
    parts: list[str] = []
    blank = ""
    beside: set[int] = set()
    for piece in split_markers(answer):
        if isinstance(piece, Marker):
            text = numbering.renumber(piece, beside)
            parts += [blank, text] if text else []
            blank = ""
        elif beside and not piece.strip(" \t"):
            blank = piece
        else:
            parts.append(piece)
            beside = set()
    return CollapsedText("".join([*parts, blank]), numbering.mapping)


class _Renumbering:
    def __init__(
        self, mapping: Mapping[int, CitedDocument], into: Mapping[int, CitedDocument]
    ) -> None:
        self.mapping = dict(into)
        self._old = mapping
        self._new = {document.document_id: number for number, document in into.items()}
        self._next = max(into, default=0) + 1

    def renumber(self, marker: Marker, beside: set[int]) -> str:
        """Renumber a marker without numbers that adjacent markers have (`beside`); its own are added there."""
        numbers = dict.fromkeys(self._number(old) for old in marker.numbers if old in self._old)
        fresh = [number for number in numbers if number not in beside]
        beside.update(fresh)
        cited = f"[{', '.join(map(str, fresh))}]" if fresh else ""
        return cited + "".join(rf"\[{old}\]" for old in marker.numbers if old not in self._old)

    def _number(self, old: int) -> int:
        document = self._old[old]
        number = self._new.setdefault(document.document_id, self._next)
        if number == self._next:
            self.mapping[number] = document
            self._next += 1
        return number
