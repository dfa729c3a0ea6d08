"""Find the parts of a Markdown text that a reference can stand behind.

These are sentences of paragraphs, also of those in lists and quotations. What is in a heading, a table, a block of code or
of HTML, or a definition of a link or a footnote gets no marker, and none stands within code, links, brackets or formulas.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex
from markdown_it import MarkdownIt

from backend.research.references.text_chunks import join_sentences
from connectors.document import Span
from indexing.chunking.chunk import split_sentences

_PARSER = MarkdownIt("commonmark").enable("table").disable("inline")
_LINE_END = regex.compile(r"\r\n?|\n")
_DEFINITION = regex.compile(r"[\s>]*+(?:[-*+][ \t]++)*+\[[^\[\]\n]*+\]:")
_MARKS = regex.compile(r"(?:\s*+(?:>|(?:[-*+]|\d{1,9}[.)])(?=\s)))*+\s*+")
_FORMULA_BLOCK = regex.compile(r"(?s)\$\$.{0,2000}?\$\$|\\\[.{0,2000}?\\\]")
_VERBATIM = regex.compile(
    r"""(?sx)
      (?<!`)(?P<ticks>`++)(?!`) .*? (?<!`)(?P=ticks)(?!`)
    | < [A-Za-z/!?] [^<>]*+ >
    | (?P<escape> \\ [^\w\s()\[\]] )
    """
)
"""Code, HTML and addresses in angle brackets: whichever begins first; and escaped characters, which begin none."""
_FORMULA = regex.compile(
    r"(?s)\\\(.{0,2000}?\\\)|\$(?=[^\s$])[^$\n]*?(?<=[^\s\\])\$(?!\d)|(?P<escape>\\[()\[\]])"
)
_ESCAPE = regex.compile(r"\\[()\[\]]")
_BRACKETS = regex.compile(
    r"""(?x)
    !?\[ (?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*+\])*+\])*+ \] (?: \( [^()\n]*+ (?:\([^()\n]*+\)[^()\n]*+)*+ \) )?+
    """
)
_ADDRESS = regex.compile(r"(?:https?://|www\.)[^\s<]++")
_CLOSED = regex.compile(r"[\p{Sentence_Terminal}…][\p{Pe}\p{Pf}\p{Pi}\"']*+\Z")
_LONGEST_CLOSING = 16
_JOINS_MARKER = frozenset("([:")
"""Behind a marker in brackets, these would make a link or a definition of it."""
_SPOILT_BY_MARKER = frozenset("\\]^")
"""Before a marker: an escape of it, a link that its label would change, a footnote."""
_EMPHASIS = "*_~"


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """A paragraph of a text, and the parts of it that no marker may stand in."""

    text: str
    span: Span
    protected: Sequence[Sequence[Span]]
    """Each in order, none over another."""
    formulas: Sequence[Span]
    """Blocks of formulas that have a part in it."""
    addresses: frozenset[int]
    """The ends of bare addresses, which a marker would become part of."""

    def may_end(self, sentence: Span) -> bool:
        """Return whether a marker may stand behind the sentence."""
        at = sentence.end
        is_closed = at == self.span.end or _CLOSED.search(
            self.text, max(self.span.start, at - _LONGEST_CLOSING), at
        )
        return (
            bool(is_closed)
            and at not in self.addresses
            and not any(_holds(spans, at) for spans in self.protected)
            and self.text[at - 1] not in _SPOILT_BY_MARKER
            and not self.text[at - 1].isspace()
            and self.text[at : at + 1] not in _JOINS_MARKER
        )


def split_answer(text: str) -> list[Span]:
    """Return the chunks of a Markdown text that a marker may stand behind, in order."""
    formulas = [Span(*found.span()) for found in _FORMULA_BLOCK.finditer(text)]
    return [
        chunk
        for span in _find_paragraphs(text)
        for chunk in _split_paragraph(
            _read_paragraph(text, span, _find_overlapping(formulas, span))
        )
    ]


def _find_paragraphs(text: str) -> Iterator[Span]:
    starts = [0, *(found.end() for found in _LINE_END.finditer(text)), len(text)]
    tokens = _PARSER.parse(text)
    for opened, inner in pairwise(tokens):
        if opened.type == "paragraph_open" and inner.map:
            first, behind = inner.map
            lines = Span(starts[first], starts[min(behind, len(starts) - 1)])
            bare = _leave_emphasis(text, lines.trim(text) or Span(0, 0))
            span = bare.trim(text) if bare else None
            if span and not _DEFINITION.match(text, span.start, span.end):
                yield Span(_skip_marks(text, span), span.end)


def _skip_marks(text: str, span: Span) -> int:
    """Return where the words of a paragraph begin, behind the marks of lists and quotations."""
    marks = _MARKS.match(text, span.start, span.end)
    return marks.end() if marks and marks.end() < span.end else span.start


def _find_overlapping(spans: Sequence[Span], span: Span) -> Sequence[Span]:
    first = bisect_right(spans, span.start, key=lambda one: one.end)
    return spans[first : bisect_left(spans, span.end, key=lambda one: one.start)]


def _read_paragraph(text: str, span: Span, formulas: Sequence[Span]) -> _Paragraph:
    """Find what may hold no marker; what is found first is no markup of what is looked for next.

    Markdown itself knows no formulas, so that brackets are looked for in them as well.
    """
    verbatim, plain = _take_out(_VERBATIM, span.of(text), span.start)
    formulas_inside, without_formulas = _take_out(_FORMULA, plain, span.start)
    _, without_escapes = _take_out(_ESCAPE, plain, span.start)
    brackets, without_brackets = _take_out(_BRACKETS, without_escapes, span.start)
    others, _ = _take_out(_BRACKETS, without_formulas, span.start)
    addresses, _ = _take_out(_ADDRESS, without_brackets, span.start)
    ends = frozenset(one.end for one in addresses)
    found = (verbatim, formulas_inside, brackets, others)
    return _Paragraph(text, span, (*found, addresses, formulas), formulas, ends)


def _take_out(pattern: regex.Pattern[str], plain: str, offset: int) -> tuple[list[Span], str]:
    """Return the spans that a pattern matches, escapes left out, and the text with letters in place of all."""
    found = list(pattern.finditer(plain))
    spans = [
        Span(offset + one.start(), offset + one.end())
        for one in found
        if "escape" not in one.groupdict() or one["escape"] is None
    ]
    return spans, pattern.sub(lambda one: "x" * len(one[0]), plain)


def _holds(spans: Sequence[Span], at: int) -> bool:
    """Return whether one of the spans begins before and ends behind this place."""
    before = bisect_left(spans, at, key=lambda one: one.start)
    return before > 0 and at < spans[before - 1].end


def _split_paragraph(paragraph: _Paragraph) -> Iterator[Span]:
    text, start = paragraph.text, paragraph.span.start
    if any(one.start <= start and paragraph.span.end <= one.end for one in paragraph.formulas):
        return
    found = split_sentences(paragraph.span.of(text))
    sentences = (_leave_emphasis(text, Span(start + one.start, start + one.end)) for one in found)
    yield from join_sentences(text, filter(None, sentences), paragraph.may_end)


def _leave_emphasis(text: str, span: Span) -> Span | None:
    """Leave out the marks that end emphasis: behind them, a marker would let them begin some."""
    end = span.start + len(span.of(text).rstrip(_EMPHASIS))
    return Span(span.start, end) if end > span.start else None
