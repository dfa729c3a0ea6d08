"""Find the parts of a Markdown text that a reference can stand behind.

These are sentences of paragraphs, also of those in lists and quotations. What is in a heading, a table, a block of code or
of HTML, or a definition of a link or a footnote gets no marker, and none stands within code, links, brackets or formulas.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex
from markdown_it import MarkdownIt

from backend.research.text_chunks import join_sentences
from connectors.document import Span
from indexing.chunking.splitter import split_sentences, trim_span

_PARSER = MarkdownIt("commonmark").enable("table").disable("inline")
_LINE_END = regex.compile(r"\r\n?|\n")
_DEFINITION = regex.compile(r"[\s>]*+(?:[-*+][ \t]++)*+\[[^\[\]\n]*+\]:")
_MARKS = regex.compile(r"(?:\s*+(?:>|(?:[-*+]|\d{1,9}[.)])(?=\s)))*+\s*+")
_FORMULA_BLOCK = regex.compile(r"(?s)\$\$.{0,2000}?\$\$|\\\[.{0,2000}?\\\]")
_BRACKETS = r"\[(?:[^\[\]\\]|\\.|\[(?:[^\[\]\\]|\\.|\[[^\[\]]*+\])*+\])*+\]"
_PROTECTED = regex.compile(
    rf"""(?sx)
      (?P<code> (?<!`)(?P<ticks>`++)(?!`) .*? (?<!`)(?P=ticks)(?!`) )
    | \\\( .{0, 2000}? \\\)
    | \$ (?=[^\s$]) [^$\n]*? (?<=[^\s\\]) \$ (?!\d)
    | \\ [^\w\s]
    | !?{_BRACKETS} (?: \( [^()\n]*+ (?:\([^()\n]*+\)[^()\n]*+)*+ \) )?+
    | < [A-Za-z/!?] [^<>]*+ >
    | (?P<address> (?:https?://|www\.) [^\s<]++ )
    """
)
_CLOSED = regex.compile(r"[\p{Sentence_Terminal}…][\p{Pe}\p{Pf}\p{Pi}\"'*_~]*+\Z")
_LONGEST_CLOSING = 16
_JOINS_MARKER = frozenset("([:")
"""Behind a marker in brackets, these would make a link or a definition of it."""


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """A paragraph of a text, and the parts of it that no marker may stand in."""

    text: str
    span: Span
    protected: Sequence[Sequence[Span]]
    """Each in order, none over another."""
    addresses: frozenset[int]
    """The ends of bare addresses, which a marker would become part of."""

    def may_end(self, sentence: Span) -> bool:
        """Whether a marker may stand behind the sentence."""
        at = sentence.end
        is_closed = at == self.span.end or _CLOSED.search(
            self.text, max(self.span.start, at - _LONGEST_CLOSING), at
        )
        return (
            bool(is_closed)
            and at not in self.addresses
            and not any(_holds(spans, at) for spans in self.protected)
            and self.text[at - 1] not in "\\]^"
            and self.text[at : at + 1] not in _JOINS_MARKER
        )


def split_answer(text: str) -> list[Span]:
    """Return the chunks of a Markdown text that a marker may stand behind, in order."""
    formulas = [Span(*found.span()) for found in _FORMULA_BLOCK.finditer(text)]
    return [
        chunk
        for span in _find_paragraphs(text)
        if not any(one.start <= span.start and span.end <= one.end for one in formulas)
        for chunk in _split_paragraph(_read_paragraph(text, span, formulas))
    ]


def _find_paragraphs(text: str) -> Iterator[Span]:
    starts = [0, *(found.end() for found in _LINE_END.finditer(text)), len(text)]
    tokens = _PARSER.parse(text)
    for opened, inner in pairwise(tokens):
        if opened.type == "paragraph_open" and inner.map:
            first, behind = inner.map
            span = trim_span(text, Span(starts[first], starts[min(behind, len(starts) - 1)]))
            if span and not _DEFINITION.match(text, span.start, span.end):
                yield Span(_skip_marks(text, span), span.end)


def _skip_marks(text: str, span: Span) -> int:
    """Return where the words of a paragraph begin, behind the marks of lists and quotations."""
    marks = _MARKS.match(text, span.start, span.end)
    return marks.end() if marks and marks.end() < span.end else span.start


def _read_paragraph(text: str, span: Span, formulas: Sequence[Span]) -> _Paragraph:
    found = list(_PROTECTED.finditer(text, span.start, span.end))
    inline = [Span(*one.span()) for one in found]
    across = [one for one in formulas if one.start < span.end and span.start < one.end]
    addresses = frozenset(one.end() for one in found if one["address"])
    return _Paragraph(text, span, (inline, across), addresses)


def _holds(spans: Sequence[Span], at: int) -> bool:
    """Whether one of the spans begins before and ends behind this place."""
    before = bisect_left(spans, at, key=lambda one: one.start)
    return before > 0 and at < spans[before - 1].end


def _split_paragraph(paragraph: _Paragraph) -> Iterator[Span]:
    start = paragraph.span.start
    sentences = (
        Span(start + one.start, start + one.end)
        for one in split_sentences(paragraph.span.of(paragraph.text))
    )
    yield from join_sentences(paragraph.text, sentences, paragraph.may_end)
