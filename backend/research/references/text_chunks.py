"""Cut texts into the chunks that are compared: sentences, joined until they say enough to be distinguished from others."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator

import regex

from connectors.document import Span
from indexing.chunking.chunk import split_in_half, split_sentences
from indexing.text.markdown_links import strip_links

LEAST_COLUMNS = 80
"""Of a chunk: 80 characters, or 40 of Chinese, Japanese and Korean, each of which takes two columns and says as much."""
MOST_CHARACTERS = 800
"""Of a chunk of a source; embedders cut off what is longer."""

_MARKS = regex.compile(r"(?m)^[ \t]*+(?:(?:[-*+>]|\#{1,6}|\d{1,9}[.)])[ \t]++)++|^[ \t]*+>")
_EMPHASIS = regex.compile(r"\*{1,3}|`+|~~|(?<!\w)_{1,3}|_{1,3}(?!\w)")


def join_sentences(
    text: str, sentences: Iterable[Span], may_end: Callable[[Span], bool]
) -> Iterator[Span]:
    """Yield runs of sentences of at least `LEAST_COLUMNS`, each as short as possible.

    What is left over at the end is part of none.

    Args:
        may_end: whether a run may end behind this sentence.
    """
    run: Span | None = None
    columns = 0
    for sentence in sentences:
        run = Span(run.start if run else sentence.start, sentence.end)
        columns += measure_columns(clean_chunk(sentence.of(text)))
        if columns >= LEAST_COLUMNS and may_end(sentence):
            yield run
            run, columns = None, 0


def measure_columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(1 + (unicodedata.east_asian_width(one) in "WF") for one in text)


def split_source(text: str) -> list[Span]:
    """Cut the text of a source into chunks that cover all of it; what is left over at its end is part of the last one."""
    sentences = split_sentences(text)
    if not sentences:
        return []
    *runs, last = list(join_sentences(text, sentences, lambda _: True)) or sentences[:1]
    found = [*runs, Span(last.start, sentences[-1].end)]
    return [piece for span in found for piece in _shorten(text, span)]


def _shorten(text: str, span: Span) -> Iterator[Span]:
    if span.end - span.start <= MOST_CHARACTERS:
        yield span
        return
    for half in split_in_half(text, span):
        yield from _shorten(text, half)


def clean_chunk(text: str) -> str:
    """Return a chunk as it is compared: on one line, without the marks of lists, quotations and emphasis, links as their labels."""
    return " ".join(_EMPHASIS.sub("", strip_links(_MARKS.sub("", text))).split())
