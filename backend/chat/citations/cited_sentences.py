"""Which words of an answer a citation stands for."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from connectors.document import Span
from indexing.chunking.sentences import sentences

LEAST_CLAIM = 12
"""Characters; less before a marker ("according to [1]") claims nothing by itself."""

_LEAD = regex.compile(r"^(?:[-*+•>#]+|\d{1,3}[.)])\s+")
_LOOSE = regex.compile(r"\s+(?=[.,;:!?])")


@dataclass(frozen=True, slots=True)
class Mark:
    offset: int
    """In the answer without its markers."""
    number: int


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """One citation, and what it is given for."""

    number: int
    sentence: str
    """The whole sentence, without markers."""
    claim: str
    """The part of it up to this citation from the one before; the whole where it has one only."""


def cited_sentences(plain: str, marks: Sequence[Mark]) -> list[CitedSentence]:
    """Every mark with its sentence, in the order of the text.

    A marker belongs to the sentence in which, or right after which, it stands; at the start of a
    line, to the sentence that follows.

    Args:
        plain: an answer without its markers.
        marks: where they stood, by offset.
    """
    spans = sentences(plain)
    starts = [span.start for span in spans]
    by_sentence: dict[int, list[Mark]] = {}
    for mark in marks:
        if spans:
            by_sentence.setdefault(_sentence_of(mark, plain, starts), []).append(mark)
    return [
        cited for at in sorted(by_sentence) for cited in _claims(plain, spans[at], by_sentence[at])
    ]


def _sentence_of(mark: Mark, plain: str, starts: Sequence[int]) -> int:
    before = mark.offset
    while before and plain[before - 1] in " \t":
        before -= 1
    if not before or plain[before - 1] == "\n":
        return min(bisect_left(starts, mark.offset), len(starts) - 1)
    return max(bisect_left(starts, before) - 1, 0)


def _claims(plain: str, span: Span, marks: Sequence[Mark]) -> Iterator[CitedSentence]:
    sentence = _clean(span.of(plain))
    ends = sorted({min(max(mark.offset, span.start), span.end) for mark in marks})
    ends[-1] = span.end
    begins = dict(zip(ends, [span.start, *ends], strict=False))
    for mark in marks:
        end = ends[min(bisect_left(ends, mark.offset), len(ends) - 1)]
        claim = _clean(plain[begins[end] : end])
        whole = len(ends) == 1 or len(claim) < LEAST_CLAIM
        yield CitedSentence(mark.number, sentence, sentence if whole else claim)


def _clean(text: str) -> str:
    return _LOOSE.sub("", " ".join(_LEAD.sub("", text.strip()).split()))
