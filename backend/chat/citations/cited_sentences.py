"""Find the words of an answer that a citation supports."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from connectors.document import Span
from indexing.chunking.chunk import split_sentences

MIN_CLAIM_CHARACTERS = 12
"""Fewer before a marker ("according to [1]") claim nothing by themselves."""

_LEAD = regex.compile(r"^(?:[-*+•>#]+|\d{1,3}[.)])\s+")
_LOOSE = regex.compile(r"\s+(?=[.,;:!?])")


@dataclass(frozen=True, slots=True)
class MarkerOffset:
    offset: int
    """In the answer without its markers."""
    number: int


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """One citation, and what it supports."""

    number: int
    sentence: str
    """The whole sentence, without markers."""
    claim: str
    """The part of it from the citation before to this one; all of it if it has one citation only."""


def cited_sentences(plain: str, marks: Sequence[MarkerOffset]) -> list[CitedSentence]:
    """Return every citation with its sentence, in the order of the text.

    A marker belongs to the sentence that contains it or ends right before it; at the start of a
    line, to the sentence that follows.

    Args:
        plain: an answer without its markers.
        marks: the offsets of the markers.
    """
    spans = split_sentences(plain)
    by_sentence = group_by_sentence(plain, spans, marks)
    return [
        cited for at in sorted(by_sentence) for cited in _claims(plain, spans[at], by_sentence[at])
    ]


def uncited_spans(plain: str, marks: Sequence[MarkerOffset]) -> list[Span]:
    """Return the sentences that no marker belongs to, in the order of the text."""
    spans = split_sentences(plain)
    cited = group_by_sentence(plain, spans, marks)
    return [span for at, span in enumerate(spans) if at not in cited]


def group_by_sentence(
    plain: str, spans: Sequence[Span], marks: Sequence[MarkerOffset]
) -> dict[int, list[MarkerOffset]]:
    """Return the marks of each sentence that has any, by its place among `spans`, which are all sentences of the text."""
    starts = [span.start for span in spans]
    by_sentence: dict[int, list[MarkerOffset]] = {}
    for mark in marks:
        if spans:
            by_sentence.setdefault(_sentence_of(mark, plain, starts), []).append(mark)
    return by_sentence


def _sentence_of(mark: MarkerOffset, plain: str, starts: Sequence[int]) -> int:
    before = mark.offset
    while before and plain[before - 1] in " \t":
        before -= 1
    if not before or plain[before - 1] == "\n":
        return min(bisect_left(starts, mark.offset), len(starts) - 1)
    return max(bisect_left(starts, before) - 1, 0)


def _claims(plain: str, span: Span, marks: Sequence[MarkerOffset]) -> Iterator[CitedSentence]:
    sentence = clean_sentence(span.of(plain))
    ends = sorted({min(max(mark.offset, span.start), span.end) for mark in marks})
    ends[-1] = span.end
    begins = dict(zip(ends, [span.start, *ends], strict=False))
    for mark in marks:
        end = ends[min(bisect_left(ends, mark.offset), len(ends) - 1)]
        claim = clean_sentence(plain[begins[end] : end])
        whole = len(ends) == 1 or len(claim) < MIN_CLAIM_CHARACTERS
        yield CitedSentence(mark.number, sentence, sentence if whole else claim)


def clean_sentence(text: str) -> str:
    """Return a sentence on one line, without the mark of a list or heading before it."""
    return _LOOSE.sub("", " ".join(_LEAD.sub("", text.strip()).split()))
