"""Answers without a language model: the best sentences of the best sections, each cited.

Sentences are ranked by `relevance`; whether the best of them answers is decided by `answerability`.
Of two versions of one statement the newer is told, unless the question asks for the old.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np

from backend.chat.extractive.answerability import (
    BY_MEANING,
    BY_WORDS,
    Evidence,
    Model,
    held_words,
    likeness,
    margin,
    mattering_words,
    missing,
    stands_there,
    without,
)
from backend.chat.extractive.candidate_sentences import Candidate, candidates
from backend.chat.extractive.document_versions import newest_first
from backend.chat.extractive.relevance import (
    Scores,
    Shares,
    chunk_cosines,
    mismatches,
    scores,
    word_shares,
)
from backend.search.models import InferenceSection
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.embedding.language_support import Understanding
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.identifiers import codes
from indexing.text.normalization import fold
from indexing.text.tokenizer import holds

Embed: TypeAlias = Callable[[Sequence[str]], Vectors]

SENTENCES_EMBEDDED = 40
SENTENCES_TOLD = 3
MOST_CODES = 16
FURTHER_SHARE = 0.9
"""A further sentence is told when it stands this share as far above the bulk as the best one."""


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence of an extractive answer."""

    candidate: Candidate
    text: str
    """As a person reads it, in one line: the quote, or a table row with its column names."""
    score: float
    """0 to 1."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Candidates with what was found about them."""

    read: Sequence[Candidate]
    scores: Scores
    vectors: Vectors | None
    """Of the candidates under their headings; None where words alone decided."""
    evidence: Evidence
    model: Model

    @property
    def answers(self) -> bool:
        return self.model.probability(self.evidence) >= self.model.least


def extract(
    question: str,
    sections: Sequence[InferenceSection],
    embedder: Embedder,
    understanding: Understanding,
    deadline: Deadline,
) -> tuple[Told, ...]:
    """The sentences that answer, the best and what belongs to it first; none where nothing answers.

    An embedder that is late or does not answer costs the meaning; then words alone decide.

    Raises:
        ActionRequiredError: as the embedder does.
    """
    found = candidates(sections)
    if not found or not question.strip() or _asks_for_other_codes(question, found):
        return ()
    judged = judge(question, found, embedder, understanding, deadline)
    return _told(question, judged) if judged.answers else ()


def _asks_for_other_codes(question: str, found: Sequence[Candidate]) -> bool:
    """Whether the question is about codes, and nothing that was found holds any of them."""
    asked = [span.of(question) for span in islice(codes(question), MOST_CODES)]
    texts = {c.chunk.key: c.chunk.embedded_text for c in found}.values()
    return bool(asked) and not any(holds(text, code) for code in asked for text in texts)


def judge(
    question: str,
    found: Sequence[Candidate],
    embedder: Embedder,
    understanding: Understanding,
    deadline: Deadline,
) -> Judged:
    """The candidates that are worth it, scored, and what speaks for the best of them."""
    trust = understanding.share_of(question)
    shares = word_shares(question, found)
    if trust:
        try:
            return _by_meaning(
                question,
                found,
                shares,
                trust,
                lambda texts: embedder.embed_queries(texts, deadline),
            )
        except (DeadlineExceededError, TemporarilyUnavailableError):
            pass
    return _by_words(question, found, shares)


def _by_meaning(
    question: str, found: Sequence[Candidate], shares: Shares, trust: float, embed: Embed
) -> Judged:
    near = chunk_cosines(found)
    kept = np.argsort(-(trust * near + shares.all), kind="stable")[:SENTENCES_EMBEDDED]
    read = [found[i] for i in kept]
    matter = mattering_words(question)
    vectors = embed(
        [question, *(without(question, word) for word in matter), *(c.framed for c in read)]
    )
    asked, rests, framed = vectors[0], vectors[1 : len(matter) + 1], vectors[len(matter) + 1 :]
    meaning = (np.clip(framed @ asked, 0.0, 1.0) + near[kept]) / 2
    scored = scores(meaning, shares.all[kept], mismatches(question, read), trust)
    weights = 1.0 - (rests @ asked).astype(np.float64)
    held = _held(matter, read[int(np.argmax(scored))], embed)
    evidence = Evidence(margin(scored, BY_MEANING), missing(weights, held))
    return Judged(read, scored, framed, evidence, BY_MEANING)


def _held(matter: Sequence[str], best: Candidate, embed: Embed) -> Scores:
    """For each word of the question, how near something around the best candidate comes, 0 to 1."""
    held = np.array([float(stands_there(word, best)) for word in matter])
    absent = [i for i, word in enumerate(matter) if not held[i]]
    around = held_words(best)
    if absent and around:
        vectors = embed([*(fold(matter[i]) for i in absent), *around])
        held[absent] = likeness(vectors[: len(absent)], vectors[len(absent) :])
    return held


def _by_words(question: str, found: Sequence[Candidate], shares: Shares) -> Judged:
    scored = scores(np.zeros(len(found)), shares.all, mismatches(question, found), 0.0)
    best = int(np.argmax(scored))
    evidence = Evidence(margin(scored, BY_WORDS), 1.0 - float(shares.chunk[best]))
    return Judged(found, scored, None, evidence, BY_WORDS)


def _told(question: str, judged: Judged) -> tuple[Told, ...]:
    """The best sentence, and others that stand nearly as far above the bulk."""
    order = newest_first(question, judged.read, judged.scores, judged.vectors)
    best = judged.scores[order[0]]
    least = best - (1 - FURTHER_SHARE) * margin(judged.scores, judged.model)
    told: list[int] = []
    for i in order:
        if judged.scores[i] >= least and not any(
            _overlap(judged.read[i], judged.read[j]) for j in told
        ):
            told.append(i)
    return tuple(_tell(judged, i) for i in _in_reading_order(judged.read, told[:SENTENCES_TOLD]))


def _overlap(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates tell the same words."""
    if one.readable == other.readable:
        return True
    if (one.chunk.document_id, one.chunk.section) != (other.chunk.document_id, other.chunk.section):
        return False
    return one.span.start < other.span.end and other.span.start < one.span.end


def _in_reading_order(read: Sequence[Candidate], told: Sequence[int]) -> list[int]:
    """By chunk, that of the best sentence first; within a chunk in the order of its text."""
    places = {read[i].chunk.key: place for place, i in reversed([*enumerate(told)])}
    return sorted(told, key=lambda i: (places[read[i].chunk.key], read[i].span))


def _tell(judged: Judged, i: int) -> Told:
    candidate = judged.read[i]
    return Told(candidate, candidate.readable, round(float(judged.scores[i]), 4))
