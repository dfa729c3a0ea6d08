"""One numbering for several texts: citations renumbered, and each document cited once at a place."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from backend.chat.citations.citation_processor import CitedDocument
from backend.chat.citations.marker_parser import Marker, split_markers


@dataclass(frozen=True, slots=True)
class Collapsed:
    text: str
    mapping: Mapping[int, CitedDocument]
    """All of `into`, and what the text cites beyond it."""


def collapse_citations(
    answer: str,
    mapping: Mapping[int, CitedDocument],
    into: Mapping[int, CitedDocument] = MappingProxyType({}),
) -> Collapsed:
    """Renumber the citations of `answer`, whose numbers mean `mapping`, to go with `into`.

    A document that `into` knows takes its number there, any other the next free one, in the order
    of first citation. Markers that follow each other name a document once. A number that leads to
    no document would come to mean another one in the new numbering: it is escaped, `\\\\[7\\\\]`, which
    reads the same and cites nothing. Time is linear.

    Args:
        answer: a text with its markers kept.
    """
    numbering = _Numbering(mapping, into)
    told: list[str] = []
    blank = ""
    beside: set[int] = set()
    for piece in split_markers(answer):
        if isinstance(piece, Marker):
            text = numbering.renumbered(piece, beside)
            told += [blank, text] if text else []
            blank = ""
        elif beside and not piece.strip(" \t"):
            blank = piece
        else:
            told.append(piece)
            beside = set()
    return Collapsed("".join([*told, blank]), numbering.mapping)


class _Numbering:
    def __init__(
        self, mapping: Mapping[int, CitedDocument], into: Mapping[int, CitedDocument]
    ) -> None:
        self.mapping = dict(into)
        self._old = mapping
        self._new = {document.document_id: number for number, document in into.items()}
        self._next = max(into, default=0) + 1

    def renumbered(self, marker: Marker, beside: set[int]) -> str:
        """The marker without the numbers that stand `beside` it already; its own are added there."""
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
