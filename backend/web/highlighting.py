"""The words of a query in a text: which stretches of it the index would find."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, groupby

import regex

from backend.web.sanitizing import harmless
from connectors.document import Span
from indexing.chunking.sentences import sentences
from indexing.text.markdown_links import labels_alone
from indexing.text.normalization import JOINER, LETTER, SPACELESS, fold
from indexing.text.tokenizer import words

LONGEST_EXCERPT = 320

_SPACELESS = regex.compile(rf"[{SPACELESS}]")
_TOKENS = regex.compile(rf"(?V1)[{SPACELESS}]++|{LETTER}++(?:(?:{JOINER}|['’]){LETTER}++)*+")
_TABLE_RULE = regex.compile(r"(?m)^\|(?: *:?-+:? *\|)+ *(?:\n|$)")
_TABLE_ROW = regex.compile(r"(?m)^\| ?(.*?) ?\|$")
_CELL_END = regex.compile(r" *(?<!\\)\| *")
_ENDS = {"", ".", ";", ":", "!", "?", "。"}
_MARKDOWN = (
    (regex.compile(r"(?m)^ {0,3}(?:#{1,6}|[-*+>]) +"), ""),
    (regex.compile(r"(\*\*|__|`)(?=\S)([^\n]*?)(?<=\S)\1"), r"\2"),
)


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    marked: bool = False


def query_words(query: str) -> frozenset[str]:
    """The words of a query as the index has them."""
    return frozenset(words(query))


def pieces(text: str, wanted: frozenset[str]) -> tuple[Piece, ...]:
    """The whole of `text`, cut where a wanted word begins or ends."""
    marks = list(_marks(text, wanted)) if wanted else []
    inside = [False] * (len(text) + 1)
    for mark in marks:
        inside[mark.start : mark.end] = [True] * (mark.end - mark.start)
    runs = [(marked, len(list(run))) for marked, run in groupby(inside[: len(text)])]
    starts = accumulate((length for _, length in runs), initial=0)
    return tuple(
        Piece(text[start : start + length], marked)
        for start, (marked, length) in zip(starts, runs, strict=False)
    )


def excerpt(text: str, wanted: frozenset[str]) -> tuple[Piece, ...]:
    """The stretch of `text` that holds most of the wanted words, on one line."""
    spans = sentences(text)
    if not spans:
        return ()
    best = max(spans, key=lambda span: _worth(text, span, wanted))
    if len(text) - best.start < LONGEST_EXCERPT:
        # So near the end, more of what stands before it fits in.
        best = next(
            span for span in spans if len(text) - span.start <= LONGEST_EXCERPT or span == best
        )
    line = " ".join(harmless(text[best.start :]).split())
    cut = line if len(line) <= LONGEST_EXCERPT else f"{_at_word_end(line)} …"
    return pieces(f"{'… ' if best.start > spans[0].start else ''}{cut}", wanted)


def without_markup(text: str) -> str:
    """Markdown as one reads it aloud: cells apart by dots, no marks of emphasis, lists and links."""
    text = labels_alone(text)
    for pattern, instead in _MARKDOWN:
        text = pattern.sub(instead, text)
    return table_as_lines(text)


def table_as_lines(text: str) -> str:
    """Of a table, its cells apart by dots and its rows by semicolons."""
    return _TABLE_ROW.sub(_row, _TABLE_RULE.sub("", text)).removesuffix(";")


def _row(found: regex.Match[str]) -> str:
    line = " · ".join(filter(None, _CELL_END.split(found[1])))
    return line if line[-1:] in _ENDS else f"{line};"


def _worth(text: str, first: Span, wanted: frozenset[str]) -> tuple[int, int, int]:
    """Of an excerpt that begins with this sentence: the more of the words, and the sooner, the better."""
    window = text[first.start : first.start + LONGEST_EXCERPT]
    in_window, in_first = (len(wanted & query_words(part)) for part in (window, first.of(text)))
    return in_window, in_first, -first.start


def _at_word_end(line: str) -> str:
    cut = line[:LONGEST_EXCERPT]
    return cut.rpartition(" ")[0] or cut


def _marks(text: str, wanted: frozenset[str]) -> Iterator[Span]:
    for token in _TOKENS.finditer(text):
        run = token[0]
        if _SPACELESS.match(run):
            yield from _spaceless_marks(run, token.start(), wanted)
        elif not wanted.isdisjoint(words(run)):
            yield Span(token.start(), token.end())


def _spaceless_marks(run: str, at: int, wanted: frozenset[str]) -> Iterator[Span]:
    """Two neighbours that the query has; single characters only where it has them alone."""
    folded = [fold(character) for character in run]
    lone = _lone(wanted)
    for number, character in enumerate(folded):
        if "".join(folded[number : number + 2]) in wanted and number + 1 < len(run):
            yield Span(at + number, at + number + 2)
        elif character in lone:
            yield Span(at + number, at + number + 1)


def _lone(wanted: frozenset[str]) -> set[str]:
    pairs = "".join(word for word in wanted if len(word) > 1)
    return {word for word in wanted if len(word) == 1 and word not in pairs}
