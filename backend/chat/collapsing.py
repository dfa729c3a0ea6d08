"""One numbering for several texts: citations renumbered, and each document cited once at a place."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from backend.chat.citations import CitedDocument
from backend.chat.markers import Marker, split_markers


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
            if text := numbering.renumbered(piece, beside):
                told += [blank, text]
                blank = ""
        elif piece.isspace() and beside and "\n" not in piece:
            blank = piece
        else:
            told += [blank if not beside or piece[0].isspace() is False else "", piece]
            blank, beside = "", set()
    return Collapsed("".join([*told, blank]), numbering.mapping)
