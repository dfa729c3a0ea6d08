"""A section's text as blocks to be shown, with one passage of it marked."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Literal, TypeAlias

import regex

from backend.web import urls
from backend.web.markdown_lines import Lines, LinesKind, cut
from connectors.document import Section, Span
from connectors.extraction import registry
from connectors.text_cleaning import replace_controls
from indexing.text.markdown_links import TARGET_IN_BRACKETS

Style: TypeAlias = Literal["", "strong", "em", "code"]

_INLINE = regex.compile(
    r"(?P<code>`)(?P<text>[^`\n]++)`"
    r"|(?P<strong>\*\*|__)(?=\S)(?P<text>[^*_\n]++)(?<=\S)(?P=strong)"
    r"|(?<![\w*])(?P<em>\*)(?=[^\s*])(?P<text>[^*\n]++)(?<=\S)\*(?![\w*])"
    rf"|!?\[(?P<text>[^\[\]\n]++)\]{TARGET_IN_BRACKETS}"
)
_CELL = regex.compile(r"\|[ \t]*+(?P<cell>(?:[^|\\\n]|\\.)*+)(?=\|)")
_RULE = regex.compile(r"\|(?:[ \t]*+:?-++:?[ \t]*+\|)++[ \t]*+")
_FITTED = 0.88
"""A line of a page was broken to fit if with the next word it were longer than so much of the longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    text: str
    marked: bool = False
    style: Style = ""
    href: str | None = None


Line: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    kind: LinesKind
    line: Line
    mark: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class TableBlock:
    head: tuple[Line, ...]
    rows: tuple[tuple[Line, ...], ...]
    kind: Literal["table"] = "table"


Block: TypeAlias = Paragraph | TableBlock


def blocks(section: Section, media_type: str, passage: Span | None = None) -> list[Block]:
    """Return the blocks of a section; `passage` of its text is marked."""
    text = _Text(section.text, passage or Span(0, 0), media_type)
    if section.kind == "table" and (table := _table(text)):
        return [table]
    return [
        Paragraph(lines.kind, text.line(lines), lines.mark, lines.depth)
        for lines in cut(section.text, markdown=text.is_markdown)
    ]


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    passage: Span
    media_type: str

    @property
    def is_markdown(self) -> bool:
        return self.media_type == registry.MARKDOWN

    def line(self, lines: Lines) -> Line:
        """Return the pieces of all lines of a block, and of the line ends between them."""
        if self.is_markdown and lines.kind != "code":
            return tuple(self.styled(lines.spans))
        longest = max(span.end - span.start for span in lines.spans)
        pieces = list(self._verbatim(lines.spans[0]))
        for before, span in pairwise(lines.spans):
            flows = self._flows(before, span, longest)
            pieces.append(Piece(text=" " if flows else "\n", marked=self._marks(before.end)))
            pieces += self._verbatim(span)
        return tuple(pieces)

    def styled(self, spans: Sequence[Span]) -> Iterator[Piece]:
        """Yield the text of flowing lines, with Markdown's markup interpreted, across line ends too."""
        joined = _Joined(self.text, spans)
        at = 0
        if self.is_markdown:
            for found in _INLINE.finditer(joined.line):
                yield from self._pieces(joined.places(at, found.start()))
                inside = joined.places(*found.span("text"))
                yield from self._pieces(inside, _style(found), _target(found))
                at = found.end()
        yield from self._pieces(joined.places(at, len(joined.line)))

    def _pieces(
        self, spans: Iterable[Span], style: Style = "", href: str | None = None
    ) -> Iterator[Piece]:
        for span in spans:
            for piece in self._verbatim(span):
                # The end of a line is a blank.
                yield replace(piece, text=piece.text.replace("\n", " "), style=style, href=href)

    def _verbatim(self, span: Span) -> Iterator[Piece]:
        """Yield a stretch in up to three pieces: before, in and after the passage."""
        ends = (self.passage.start, self.passage.end)
        edges = {at for at in ends if span.start < at < span.end}
        for start, end in pairwise(sorted({span.start, span.end, *edges})):
            text = replace_controls(self.text[start:end])
            yield Piece(text=text, marked=self._marks(start))

    def _flows(self, before: Span, after: Span, longest: int) -> bool:
        """Return whether a line goes on in the next: of a page, if the next word had no room any more."""
        if self.media_type != registry.PDF:
            return False
        word = "".join(after.of(self.text).split(maxsplit=1)[:1])
        return before.end - before.start + 1 + len(word) > _FITTED * longest

    def _marks(self, at: int) -> bool:
        return self.passage.start <= at < self.passage.end


class _Joined:
    """Lines of a text as one, with a blank between two."""

    def __init__(self, text: str, spans: Sequence[Span]) -> None:
        self.line = " ".join(span.of(text) for span in spans)
        self._spans = spans
        lengths = (span.end - span.start + 1 for span in spans)
        self._starts = list(accumulate(lengths, initial=0))

    def places(self, start: int, end: int) -> Iterator[Span]:
        """Yield where in the text a stretch of the joined lines lies: a part of each line, with its end if included."""
        number = bisect_right(self._starts, start) - 1
        while number < len(self._spans) and self._starts[number] < end:
            span, place = self._spans[number], self._starts[number]
            first = span.start + max(0, start - place)
            yield Span(first, min(span.start + end - place, span.end + 1))
            number += 1


def _style(found: regex.Match[str]) -> Style:
    if found["code"]:
        return "code"
    if found["strong"]:
        return "strong"
    return "em" if found["em"] else ""


def _target(found: regex.Match[str]) -> str | None:
    return urls.elsewhere(found["target"]) if found["target"] else None


def _table(text: _Text) -> TableBlock | None:
    """Return a table; None where the text is none after all."""
    head: tuple[Line, ...] = ()
    rows: list[tuple[Line, ...]] = []
    start = 0
    for line in text.text.split("\n"):
        span = Span(start, start + len(line))
        start = span.end + 1
        if _RULE.fullmatch(line) and len(rows) == 1 and not head:
            head = rows.pop()
        elif cells := _cells(text, span):
            rows.append(cells)
        elif line.strip():
            return None
    return TableBlock(head, tuple(rows)) if head or rows else None


def _cells(text: _Text, row: Span) -> tuple[Line, ...]:
    cells: list[Line] = []
    at = row.start
    # Each cell begins where the one before ended: a row is read once, however odd it is.
    while found := _CELL.match(text.text, at, row.end):
        cell = text.styled([_trimmed(text.text, Span(*found.span("cell")))])
        cells.append(tuple(replace(piece, text=piece.text.replace("\\|", "|")) for piece in cell))
        at = found.end()
    return tuple(cells)


def _trimmed(text: str, span: Span) -> Span:
    return Span(span.start, span.start + len(span.of(text).rstrip()))
