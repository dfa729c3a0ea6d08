"""Where a text is cut when it is too long: at units (sentences, rows), else at words, else anywhere."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors.document import Span
from indexing.embedding.token_counting import CHARACTERS_A_TOKEN

_BREAK = re.compile(r"\s|[，、；：](?=\S)")
_RUNT_SHARE = 4
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


@dataclass(frozen=True, slots=True)
class TokenisedText:
    text: str
    ends: Sequence[int]
    """The end of each of its tokens in code points, ascending."""

    def tokens(self, span: Span) -> int:
        """Tokens that end within the span."""
        return bisect_right(self.ends, span.end) - bisect_right(self.ends, span.start)

    def fits(self, span: Span, room: int) -> bool:
        """Whether it is at most `room` tokens, and not longer than such tokens reasonably are."""
        return span.end - span.start <= room * CHARACTERS_A_TOKEN and self.tokens(span) <= room

    def packed(self, units: Sequence[Span], room: int) -> list[Span]:
        """Runs of units that fit, as long as they can be; the last two even, if one would be tiny."""
        pieces = [piece for unit in units for piece in self._pieces(unit, room)]
        groups: list[list[Span]] = []
        for piece in pieces:
            if groups and self.fits(Span(groups[-1][0].start, piece.end), room):
                groups[-1].append(piece)
            else:
                groups.append([piece])
        return [Span(group[0].start, group[-1].end) for group in self._evened(groups, room)]

    def _evened(self, groups: list[list[Span]], room: int) -> list[list[Span]]:
        if len(groups) < 2 or self.tokens(_hull(groups[-1])) * _RUNT_SHARE >= room:
            return groups
        both = [*groups[-2], *groups[-1]]
        half = self.tokens(_hull(both)) // 2
        last = len(groups[-2])
        while last > 1 and self.tokens(_hull(both[last - 1 :])) <= half:
            last -= 1
        return [*groups[:-2], both[:last], both[last:]]

    def _pieces(self, unit: Span, room: int) -> Iterator[Span]:
        """The unit, or where it does not fit pieces of it that do."""
        left: Span | None = unit
        while left is not None and not self.fits(left, room):
            cut = self._cut_within(left, room)
            piece = trimmed(self.text, Span(left.start, cut))
            if piece is not None:
                yield piece
            left = trimmed(self.text, Span(cut, left.end))
        if left is not None:
            yield left

    def _cut_within(self, span: Span, room: int) -> int:
        last = bisect_right(self.ends, span.start) + room - 1
        most = span.start + room * CHARACTERS_A_TOKEN
        end = min(self.ends[last], most) if last < len(self.ends) else most
        return cut_near(self.text, Span(span.start + (end - span.start) // 2, end))


def cut_near(text: str, window: Span) -> int:
    """The last place in `window` to cut at: between words, after a clause, else near its end."""
    if window.end < len(text) and text[window.end].isspace():
        return window.end
    breaks = [match.end() for match in _BREAK.finditer(text, window.start + 1, window.end)]
    if breaks:
        return breaks[-1]
    cut = window.end
    while cut > window.start + 1 and _clings(text, cut):
        cut -= 1
    return cut


def _clings(text: str, place: int) -> bool:
    """Whether what stands at `place` is of one character with what stands before."""
    if place >= len(text):
        return False
    return (
        unicodedata.combining(text[place]) > 0
        or text[place] in _JOINERS
        or text[place - 1] in _JOINERS
    )


def halves(text: str, span: Span) -> list[Span]:
    """A span in two, near its middle; a single character stays as it is."""
    length = span.end - span.start
    if length < 2:
        return [span]
    middle = span.start + (length + 1) // 2
    cut = cut_near(text, Span(middle - length // 4, middle))
    pieces = (trimmed(text, Span(span.start, cut)), trimmed(text, Span(cut, span.end)))
    return [piece for piece in pieces if piece is not None]


def trimmed(text: str, span: Span) -> Span | None:
    """The span without the blanks at its ends; None where nothing else is there."""
    piece = span.of(text)
    start = span.start + len(piece) - len(piece.lstrip())
    end = span.end - (len(piece) - len(piece.rstrip()))
    return Span(start, end) if start < end else None


def _hull(units: Sequence[Span]) -> Span:
    return Span(units[0].start, units[-1].end)
