"""Verify that a cited passage supports the sentence that cites it.

Similarity alone is no support: the numbers, dates, codes, names and negations of the sentence must be
in the passage too, else the support is weak at most. Names and codes may be in the title and the
headings above the passage, which say what it is about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from backend.chat.citations.claim_checks import anchors, is_negated, split_clauses
from connectors.document import Span
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk
from indexing.chunking.sentences import split_sentences
from indexing.embedding.embedder import Embedder, Vector
from indexing.embedding.language_support import Understanding
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.identifiers import find_identifiers
from indexing.text.normalization import fold
from indexing.text.tokenizer import plain_words, words

SUPPORTED_SCORE = 0.6
WEAK_SCORE = 0.35
EMBEDDED_PASSAGES = 24
"""Passages of one sentence that are compared by meaning: those that share most words with it."""
EMBEDDED_TEXTS = 192
"""Passages of all sentences together; of many sentences, each has fewer."""
PAIR_PENALTY = 0.1
"""Two sentences are quoted only if they score so much higher than one."""
ANCHOR_WEIGHT = 0.3
"""Bonus of a passage that has all numbers, dates, codes and names."""


class Verdict(StrEnum):
    SUPPORTED = "supported"
    WEAK = "weak"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class Passage:
    """One sentence, or two neighbouring ones, of a section."""

    text: str
    section: int
    """Number of the section in its document."""
    span: Span
    """Of `text` in that section."""
    heading: str = ""
    """The title and headings above it."""
    sentences: int = 1

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(words(self.text))

    @cached_property
    def anchors(self) -> frozenset[str]:
        """Everything that a sentence may take from it; any of its words may be a name."""
        named = {f"name:{word}" for word in plain_words(f"{self.text}\n{self.heading}")}
        above = {f"code:{fold(span.of(self.heading))}" for span in find_identifiers(self.heading)}
        return anchors(self.text) | named | above


@dataclass(frozen=True, slots=True)
class Support:
    quote: str
    section: int
    span: Span
    score: float
    """0 to 1: the mean of cosine and of the share of the sentence's words in the quote."""
    verdict: Verdict


def split_passages(chunks: Sequence[Chunk]) -> list[Passage]:
    """Split chunks into sentences, and pairs of neighbouring sentences; each chunk counts once."""
    once = {chunk.key: chunk for chunk in chunks}
    return [passage for chunk in once.values() for passage in _passages(chunk)]


def _passages(chunk: Chunk) -> list[Passage]:
    spans = split_sentences(chunk.text)
    pairs = [Span(a.start, b.end) for a, b in pairwise(spans)]
    heading = " ".join((chunk.title, *chunk.heading_path))
    return [
        Passage(
            text=span.of(chunk.text),
            section=chunk.section,
            span=Span(chunk.span.start + span.start, chunk.span.start + span.end),
            heading=heading,
            sentences=count,
        )
        for count, found in ((1, spans), (2, pairs))
        for span in found
    ]


def find_support(
    claims: Sequence[tuple[str, Sequence[Passage]]],
    embedder: Embedder,
    understanding: Understanding,
    deadline: Deadline,
) -> list[Support | None]:
    """Find for each sentence the passage that supports it best; None if it has no passages.

    All sentences share one call of the embedder. If it is late, does not answer, or does not support
    the language, words alone decide.

    Raises:
        ActionRequiredError: as the embedder does.
    """
    compared = [_Claim.of(sentence, passages, len(claims)) for sentence, passages in claims]
    texts = [text for claim in compared for text in claim.texts()]
    vectors = _embed(list(dict.fromkeys(texts)), embedder, deadline)
    return [claim.support(vectors, understanding.share_of(claim.sentence)) for claim in compared]


def _embed(texts: Sequence[str], embedder: Embedder, deadline: Deadline) -> dict[str, Vector]:
    if not texts:
        return {}
    try:
        vectors = embedder.embed_queries(texts, deadline)
    except (DeadlineExceededError, TemporarilyUnavailableError):
        return {}
    return dict(zip(texts, vectors, strict=True))


@dataclass(frozen=True, slots=True)
class _Claim:
    sentence: str
    words: frozenset[str]
    passages: tuple[Passage, ...]
    """Those that share most words with it."""

    @classmethod
    def of(cls, sentence: str, passages: Sequence[Passage], claims: int) -> "_Claim":
        wanted = frozenset(words(sentence))
        most = max(1, min(EMBEDDED_PASSAGES, EMBEDDED_TEXTS // claims))
        ordered = sorted(passages, key=lambda p: (-share(wanted, p.words), len(p.text)))
        return cls(sentence, wanted, tuple(ordered[:most]) if sentence.strip() else ())

    def texts(self) -> list[str]:
        return [self.sentence, *(p.text for p in self.passages)] if self.passages else []

    def support(self, vectors: dict[str, Vector], trust: float) -> Support | None:
        if not self.passages:
            return None
        scored = [(self._score(passage, vectors, trust), passage) for passage in self.passages]
        score, best = max(
            scored,
            key=lambda each: (
                each[0]
                + ANCHOR_WEIGHT * anchors_present(self.sentence, each[1])
                - PAIR_PENALTY * (each[1].sentences - 1),
                -len(each[1].text),
            ),
        )
        return Support(
            best.text, best.section, best.span, round(score, 4), self._verdict(best, score)
        )

    def _score(self, passage: Passage, vectors: dict[str, Vector], trust: float) -> float:
        by_words = share(self.words, passage.words)
        if not vectors or not trust:
            return by_words
        cosine = max(0.0, min(1.0, float(vectors[self.sentence] @ vectors[passage.text])))
        return (by_words + trust * cosine) / (1 + trust)

    def _verdict(self, passage: Passage, score: float) -> Verdict:
        if score < WEAK_SCORE:
            return Verdict.UNSUPPORTED
        confirmed = anchors_present(self.sentence, passage) and negations_match(
            self.sentence, passage.text
        )
        return Verdict.SUPPORTED if confirmed and score >= SUPPORTED_SCORE else Verdict.WEAK


def share(wanted: frozenset[str], held: frozenset[str]) -> float:
    """Return the share of the wanted words that are held, 0 to 1."""
    return len(wanted & held) / len(wanted) if wanted else 0.0


def anchors_present(sentence: str, passage: Passage) -> bool:
    """Whether all numbers, dates, codes and names of the sentence are in the passage.

    In a passage of two sentences, the one more similar to the sentence must not have another number
    while only the other has the right one.
    """
    wanted = anchors(sentence)
    if not wanted <= passage.anchors:
        return False
    if passage.sentences == 1:
        return True
    closest = max(
        (span.of(passage.text) for span in split_sentences(passage.text)),
        key=lambda text: len(frozenset(words(sentence)) & frozenset(words(text))),
    )
    return _numbers(wanted) <= _numbers(anchors(closest)) or not (
        _numbers(anchors(closest)) - _numbers(wanted)
    )


def _numbers(found: frozenset[str]) -> set[str]:
    return {anchor for anchor in found if anchor.startswith("number:")}


def negations_match(sentence: str, passage: str) -> bool:
    """Whether each clause of the sentence is negated exactly if its counterpart in the passage is.

    The counterpart of a clause is the one of the passage that shares most words with it; a clause
    that shares none has no counterpart, and matches unless it is negated.
    """
    parts = [(frozenset(words(part)), is_negated(part)) for part in split_clauses(passage)]
    for clause in split_clauses(sentence):
        wanted = frozenset(words(clause))
        most = max((len(wanted & held) for held, _ in parts), default=0)
        negations = {negation for held, negation in parts if len(wanted & held) == most and most}
        if is_negated(clause) not in (negations or {False}):
            return False
    return True
