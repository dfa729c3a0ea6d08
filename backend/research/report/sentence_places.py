"""Where the cited sentences of a text stand in it, markers included, so that one can be replaced."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from backend.chat.citations.cited_sentences import MarkerOffset, group_by_sentence
from backend.chat.citations.marker_parser import Marker, split_markers
from connectors.document import Span
from indexing.chunking.chunk import split_sentences


@dataclass(frozen=True, slots=True)
class PlacedSentence:
    span: Span
    """In the text with its markers."""
    numbers: tuple[int, ...]
    """That it cites, in the order of its markers; as often as it does."""


@dataclass(frozen=True, slots=True)
class _PlacedMarker:
    offset: int
    """In the text without markers."""
    span: Span
    """In the text with them."""
    numbers: tuple[int, ...]


def place_cited_sentences(text: str, known: Iterable[int]) -> list[PlacedSentence]:
    """Return the sentences that cite a known number, in the order of the text."""
    plain, markers = _split(text, frozenset(known))
    spans = split_sentences(plain)
    offsets = [MarkerOffset(one.offset, at) for at, one in enumerate(markers)]
    grouped = group_by_sentence(plain, spans, offsets)
    return [
        _place(spans[at], [markers[one.number] for one in grouped[at]], markers)
        for at in sorted(grouped)
    ]


def _split(text: str, known: frozenset[int]) -> tuple[str, list[_PlacedMarker]]:
    """Return the text without the markers of known numbers, and these."""
    parts: list[str] = []
    markers: list[_PlacedMarker] = []
    at = length = 0
    for piece in split_markers(text):
        written = piece if isinstance(piece, str) else piece.text
        cited = tuple(n for n in piece.numbers if n in known) if isinstance(piece, Marker) else ()
        if cited:
            markers.append(_PlacedMarker(length, Span(at, at + len(written)), cited))
        else:
            parts.append(written)
            length += len(written)
        at += len(written)
    return "".join(parts), markers


def _place(
    sentence: Span, own: Sequence[_PlacedMarker], markers: Sequence[_PlacedMarker]
) -> PlacedSentence:
    start = sentence.start + _count_before(markers, sentence.start)
    last = sentence.end - 1
    end = last + _count_before(markers, last) + 1
    numbers = tuple(number for one in own for number in one.numbers)
    return PlacedSentence(
        Span(
            min([start, *(one.span.start for one in own)]),
            max([end, *(one.span.end for one in own)]),
        ),
        numbers,
    )


def _count_before(markers: Iterable[_PlacedMarker], offset: int) -> int:
    """Return the characters of the markers that stand before a character of the text without them."""
    return sum(one.span.end - one.span.start for one in markers if one.offset <= offset)


def replace_sentences(text: str, places: Iterable[tuple[Span, str]]) -> str:
    """Put other texts in the places of some sentences; `places` are in order and do not overlap."""
    return "".join(_join(text, places))


def _join(text: str, places: Iterable[tuple[Span, str]]) -> Iterator[str]:
    at = 0
    for span, written in places:
        yield text[at : span.start]
        yield written
        at = max(at, span.end)
    yield text[at:]
