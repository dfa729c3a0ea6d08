"""Does a cited passage bear out the sentence that cites it?

Likeness alone is no support: the numbers, dates, codes, names and negations of the sentence must
stand in the passage too, else it is weak at most. Names and codes may stand in the title and the
headings above the passage, which say what it is about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from backend.chat.citations.claim_checks import anchors, clauses, negated
from connectors.document import Span
from connectors.errors import TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk
from indexing.chunking.sentences import sentences
from indexing.embedding.embedder import Embedder, Vector
from indexing.embedding.language_support import Understanding
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.identifiers import codes
from indexing.text.normalization import fold
from indexing.text.tokenizer import plain_words, words

SUPPORTED_SCORE = 0.6
WEAK_SCORE = 0.35
EMBEDDED_PASSAGES = 24
"""Passages for one sentence that are compared by meaning: those that share most words."""
EMBEDDED_TEXTS = 192
"""Passages for all sentences together; of many sentences, each has fewer."""
PAIR_COST = 0.1
"""Two sentences are quoted only where they say so much more than one."""
ANCHOR_WEIGHT = 0.3
"""How much a passage gains over others by holding all numbers, dates, codes and names."""


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
    """In the text of that section; `text` stands there verbatim."""
    heading: str = ""
    """The title and headings above it."""
    sentences: int = 1

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(words(self.text))

    @cached_property
    def anchors(self) -> frozenset[str]:
        """All that may be taken from it; any of its words may be a name."""
        named = {f"name:{word}" for word in plain_words(f"{self.text}\n{self.heading}")}
        above = {f"code:{fold(span.of(self.heading))}" for span in codes(self.heading)}
        return anchors(self.text) | named | above


@dataclass(frozen=True, slots=True)
class Support:
    quote: str
    section: int
    span: Span
    score: float
    """0 to 1: the mean of cosine and of the share of the sentence's words that the quote holds."""
    verdict: Verdict


def passages_of(chunks: Sequence[Chunk]) -> list[Passage]:
    """The sentences of the chunks, and each with the one after it; each chunk once."""
    once = {chunk.key: chunk for chunk in chunks}
    return [passage for chunk in once.values() for passage in _passages(chunk)]


def _passages(chunk: Chunk) -> list[Passage]:
    spans = sentences(chunk.text)
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


def best_supports(
    claims: Sequence[tuple[str, Sequence[Passage]]],
    embedder: Embedder,
    understanding: Understanding,
    deadline: Deadline,
) -> list[Support | None]:
    """For each sentence, the one of its passages that bears it out best; None where it has none.

    All sentences share one call of the embedder. Where it is late, does not answer, or does not
    understand the sentence, words alone decide.

    Raises:
        ActionRequiredError: as the embedder does.
    """
    compared = [_Claim.of(sentence, passages, len(claims)) for sentence, passages in claims]
    texts = [text for claim in compared for text in claim.texts()]
    vectors = _vectors(list(dict.fromkeys(texts)), embedder, deadline)
    return [claim.support(vectors, understanding.share_of(claim.sentence)) for claim in compared]


def _vectors(texts: Sequence[str], embedder: Embedder, deadline: Deadline) -> dict[str, Vector]:
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
                + ANCHOR_WEIGHT * stands_in(self.sentence, each[1])
                - PAIR_COST * (each[1].sentences - 1),
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
        stands = stands_in(self.sentence, passage) and denies_alike(self.sentence, passage.text)
        return Verdict.SUPPORTED if stands and score >= SUPPORTED_SCORE else Verdict.WEAK


def share(wanted: frozenset[str], held: frozenset[str]) -> float:
    """Share of the wanted words that are held, 0 to 1."""
    return len(wanted & held) / len(wanted) if wanted else 0.0


def stands_in(sentence: str, passage: Passage) -> bool:
    """Whether all numbers, dates, codes and names of the sentence stand in the passage.

    Of a passage of two sentences, the one that is more like the sentence must not have another
    number where the second has the right one.
    """
    wanted = anchors(sentence)
    if not wanted <= passage.anchors:
        return False
    if passage.sentences == 1:
        return True
    likest = max(
        (span.of(passage.text) for span in sentences(passage.text)),
        key=lambda text: len(frozenset(words(sentence)) & frozenset(words(text))),
    )
    return _numbers(wanted) <= _numbers(anchors(likest)) or not (
        _numbers(anchors(likest)) - _numbers(wanted)
    )


def _numbers(found: frozenset[str]) -> set[str]:
    return {anchor for anchor in found if anchor.startswith("number:")}


def denies_alike(sentence: str, passage: str) -> bool:
    """Whether each clause of the sentence denies just where its counterpart in the passage does.

    The counterpart of a clause is the one of the passage that shares most words with it; a clause
    that shares none has no counterpart, and agrees unless it denies.
    """
    parts = [(frozenset(words(part)), negated(part)) for part in clauses(passage)]
    for clause in clauses(sentence):
        wanted = frozenset(words(clause))
        most = max((len(wanted & held) for held, _ in parts), default=0)
        denials = {denies for held, denies in parts if len(wanted & held) == most and most}
        if negated(clause) not in (denials or {False}):
            return False
    return True
