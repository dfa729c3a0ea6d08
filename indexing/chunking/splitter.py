"""Split a text that is too long: between units (sentences, rows), else between words, else anywhere."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors.document import Span
from indexing.embedding.token_counting import CHARACTERS_A_TOKEN

_BREAK = re.compile(r"\s|[，、；：](?=\S)")
_TINY_SHARE = 4
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


@dataclass(frozen=True, slots=True)
class TokenizedText:
    text: str
    ends: Sequence[int]
    """The end of each of its tokens in code points, ascending."""

    def count_tokens(self, span: Span) -> int:
        """Count the tokens that end within the span."""
        return bisect_right(self.ends, span.end) - bisect_right(self.ends, span.start)

    def fits(self, span: Span, room: int) -> bool:
        """Whether it has at most `room` tokens and not more characters than so many tokens usually have."""
        return (
            span.end - span.start <= room * CHARACTERS_A_TOKEN and self.count_tokens(span) <= room
        )

    def pack(self, units: Sequence[Span], room: int) -> list[Span]:
        """Join units to runs as long as possible; the last two are evened out if the last one would be tiny."""
        pieces = [piece for unit in units for piece in self._pieces(unit, room)]
        groups: list[list[Span]] = []
        for piece in pieces:
            if groups and self.fits(Span(groups[-1][0].start, piece.end), room):
                groups[-1].append(piece)
            else:
                groups.append([piece])
        return [Span(group[0].start, group[-1].end) for group in self._even_out(groups, room)]

    def _even_out(self, groups: list[list[Span]], room: int) -> list[list[Span]]:
        if len(groups) < 2 or self.count_tokens(_enclosing(groups[-1])) * _TINY_SHARE >= room:
            return groups
        both = [*groups[-2], *groups[-1]]
        half = self.count_tokens(_enclosing(both)) // 2
        last = len(groups[-2])
        while last > 1 and self.count_tokens(_enclosing(both[last - 1 :])) <= half:
            last -= 1
        return [*groups[:-2], both[:last], both[last:]]

    def _pieces(self, unit: Span, room: int) -> Iterator[Span]:
        """Yield the unit, or pieces of it that fit."""
        rest: Span | None = unit
        while rest is not None and not self.fits(rest, room):
            cut = self._cut_within(rest, room)
            piece = trim_span(self.text, Span(rest.start, cut))
            if piece is not None:
                yield piece
            rest = trim_span(self.text, Span(cut, rest.end))
        if rest is not None:
            yield rest

    def _cut_within(self, span: Span, room: int) -> int:
        last = bisect_right(self.ends, span.start) + room - 1
        most = span.start + room * CHARACTERS_A_TOKEN
        end = min(self.ends[last], most) if last < len(self.ends) else most
        return find_break(self.text, Span(span.start + (end - span.start) // 2, end))


def find_break(text: str, window: Span) -> int:
    """Return the last place in `window` to split at: between words, after a clause, else near its end."""
    if window.end < len(text) and text[window.end].isspace():
        return window.end
    breaks = [match.end() for match in _BREAK.finditer(text, window.start + 1, window.end)]
    if breaks:
        return breaks[-1]
    cut = window.end
    while cut > window.start + 1 and _joins_previous(text, cut):
        cut -= 1
    return cut


def _joins_previous(text: str, position: int) -> bool:
    """Whether the code point at `position` forms one character with the previous one."""
    if position >= len(text):
        return False
    return (
        unicodedata.combining(text[position]) > 0
        or text[position] in _JOINERS
        or text[position - 1] in _JOINERS
    )


def split_in_half(text: str, span: Span) -> list[Span]:
    """Split a span in two near its middle; a single character stays whole."""
    length = span.end - span.start
    if length < 2:
        return [span]
    middle = span.start + (length + 1) // 2
    cut = find_break(text, Span(middle - length // 4, middle))
    pieces = (trim_span(text, Span(span.start, cut)), trim_span(text, Span(cut, span.end)))
    return [piece for piece in pieces if piece is not None]


def trim_span(text: str, span: Span) -> Span | None:
    """Remove blanks at both ends of the span; return None if nothing is left."""
    piece = span.of(text)
    start = span.start + len(piece) - len(piece.lstrip())
    end = span.end - (len(piece) - len(piece.rstrip()))
    return Span(start, end) if start < end else None


def _enclosing(units: Sequence[Span]) -> Span:
    return Span(units[0].start, units[-1].end)
