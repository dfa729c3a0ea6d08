"""Does a cited passage bear out the sentence that cites it?

Likeness alone is no support: the numbers, dates, codes, names and negations of the sentence must
stand in the passage too, else it is weak at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from backend.chat.anchors import anchors, negated
from connectors.document import Span
from indexing.analysis import words
from indexing.chunk import Chunk
from indexing.deadline import Deadline
from indexing.embedding import Embedder
from indexing.sentences import sentences

SUPPORTED_SCORE = 0.6
WEAK_SCORE = 0.35
EMBEDDED_PASSAGES = 24
"""Passages of a section that are compared by meaning: those that share most words."""


class Verdict(StrEnum):
    SUPPORTED = "supported"
    WEAK = "weak"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Passage:
    """One sentence, or two neighbouring ones, of a section."""

    text: str
    section: int
    """Number of the section in its document."""
    span: Span
    """In the text of that section; `text` stands there verbatim."""


@dataclass(frozen=True, slots=True)
class Support:
    quote: str
    section: int
    span: Span
    score: float
    """0 to 1: the mean of cosine and of the share of the sentence's words that the quote holds."""
    verdict: Verdict


def passages_of(chunks: Sequence[Chunk]) -> list[Passage]:
    """The sentences of the chunks, and each with the one after it."""
    return [passage for chunk in chunks for passage in _passages(chunk)]


def _passages(chunk: Chunk) -> list[Passage]:
    spans = sentences(chunk.text)
    pairs = [Span(a.start, b.end) for a, b in zip(spans, spans[1:], strict=False)]
    return [_passage(chunk, span) for span in [*spans, *pairs]]


def _passage(chunk: Chunk, span: Span) -> Passage:
    start = chunk.span.start
    within = Span(start + span.start, start + span.end)
    return Passage(span.of(chunk.text), chunk.section, within)


def best_support(
    sentence: str, passages: Sequence[Passage], embedder: Embedder, deadline: Deadline
) -> Support | None:
    """The passage that bears the sentence out best; None where there is no passage at all.

    Raises:
        DeadlineExceeded, RetryLater, AskTheOwner: as the embedder does.
    """
    if not passages or not sentence.strip():
        return None
    claim = frozenset(words(sentence))
    by_words = sorted(passages, key=lambda p: -word_share(claim, p.text))[:EMBEDDED_PASSAGES]
    cosines = _cosines(sentence, by_words, embedder, deadline)
    scored = [
        (0.5 * cosine + 0.5 * word_share(claim, passage.text), -len(passage.text), i)
        for i, (passage, cosine) in enumerate(zip(by_words, cosines, strict=True))
    ]
    score, _, best = max(scored)
    passage = by_words[best]
    verdict = _verdict(sentence, passage.text, score)
    return Support(passage.text, passage.section, passage.span, round(score, 4), verdict)


def _cosines(
    sentence: str, passages: Sequence[Passage], embedder: Embedder, deadline: Deadline
) -> list[float]:
    vectors = embedder.embed_queries([sentence, *(p.text for p in passages)], deadline)
    return [float(c) for c in np.clip(vectors[1:] @ vectors[0], 0.0, 1.0)]


def word_share(wanted: frozenset[str], text: str) -> float:
    """Share of the wanted words that the text holds, 0 to 1."""
    return len(wanted.intersection(words(text))) / len(wanted) if wanted else 0.0


def _verdict(sentence: str, passage: str, score: float) -> Verdict:
    if score < WEAK_SCORE:
        return Verdict.UNSUPPORTED
    holds = anchors(sentence) <= anchors(passage) and negated(sentence) == negated(passage)
    return Verdict.SUPPORTED if holds and score >= SUPPORTED_SCORE else Verdict.WEAK
