"""Answers without a language model: the best sentences of the best sections, each cited.

A sentence is scored by what it shares with the question in meaning (cosine) and in words (weighted
by how rare a word is among the candidates, after Robertson and Spärck Jones), and by how well its
section was found. Whether anything answers at all is decided on those raw figures.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import NDArray

from backend.search.sections import InferenceSection
from connectors.document import Span
from indexing.analysis import exact_terms, holds, words
from indexing.chunk import Chunk
from indexing.deadline import Deadline
from indexing.embedding import Embedder
from indexing.sentences import sentences
from indexing.understanding import Understanding

SECTIONS_READ = 6
SENTENCES_EMBEDDED = 48
SENTENCES_TOLD = 3
FURTHER_SHARE = 0.75
"""A further sentence is told when it scores at least this share of the best one."""
ANSWERS = 0.5
"""The least score of a sentence that answers; below it nothing is told."""

_RULE = regex.compile(r"\|[\s:|-]+\|?")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may answer."""

    section: InferenceSection
    chunk: Chunk
    span: Span
    """In the text of the chunk's section."""
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence of an extractive answer."""

    candidate: Candidate
    text: str
    """As a person reads it: the quote, or a table row with its column names."""
    score: float
    """0 to 1."""


def extract(
    question: str,
    sections: Sequence[InferenceSection],
    embedder: Embedder,
    understanding: Understanding,
    deadline: Deadline,
) -> tuple[Told, ...]:
    """The sentences that answer, best first; none where nothing answers.

    Raises:
        DeadlineExceeded, RetryLater, AskTheOwner: as the embedder does.
    """
    candidates = _candidates(sections[:SECTIONS_READ])
    if not candidates:
        return ()
    weights = _word_weights(question, candidates)
    by_words = np.array([_word_score(candidate, weights) for candidate in candidates])
    kept = np.argsort(-by_words, kind="stable")[:SENTENCES_EMBEDDED]
    read = [candidates[i] for i in kept]
    trust = understanding.share_of(question)
    meaning = _meaning(question, read, embedder, deadline) if trust else np.zeros(len(read))
    scores = _scores(question, read, by_words[kept], meaning, trust)
    return _told(read, scores)


def _candidates(sections: Sequence[InferenceSection]) -> list[Candidate]:
    return [
        Candidate(section, chunk, _within(chunk, span), span.of(chunk.text))
        for section in sections
        for chunk in section.chunks
        for span in sentences(chunk.text)
        if not _is_frame(span.of(chunk.text))
    ]


def _within(chunk: Chunk, span: Span) -> Span:
    return Span(chunk.span.start + span.start, chunk.span.start + span.end)


def _is_frame(text: str) -> bool:
    """A heading, a table's ruler, or a fragment: nothing that a sentence says."""
    return text.startswith("#") or _RULE.fullmatch(text) is not None or len(words(text)) < 3


def _context(chunk: Chunk) -> str:
    """What a sentence of this chunk is about, by its title and headings."""
    return " ".join((chunk.title, *chunk.heading_path))


def _word_weights(question: str, candidates: Sequence[Candidate]) -> dict[str, float]:
    """Each word of the question with its rarity among the candidates, summing to 1."""
    holders = Counter(word for c in candidates for word in set(words(c.text)))
    total = len(candidates)
    raw = {
        word: math.log(1 + (total - holders[word] + 0.5) / (holders[word] + 0.5))
        for word in set(words(question))
    }
    whole = sum(raw.values())
    return {word: weight / whole for word, weight in raw.items()} if whole else {}


def _word_score(candidate: Candidate, weights: dict[str, float]) -> float:
    """Weighted share of the question's words in the sentence; in its headings they count half."""
    own = set(words(candidate.text))
    around = set(words(_context(candidate.chunk)))
    return sum(
        weight * (1.0 if word in own else 0.5 if word in around else 0.0)
        for word, weight in weights.items()
    )


def _meaning(
    question: str, read: Sequence[Candidate], embedder: Embedder, deadline: Deadline
) -> NDArray[np.float64]:
    texts = [f"{_context(c.chunk)}: {c.text}" for c in read]
    vectors = embedder.embed_queries([question, *texts], deadline)
    cosines: NDArray[np.float64] = (vectors[1:] @ vectors[0]).astype(np.float64)
    return np.clip(cosines, 0.0, 1.0)


def _scores(
    question: str,
    read: Sequence[Candidate],
    by_words: NDArray[np.float64],
    meaning: NDArray[np.float64],
    trust: float,
) -> NDArray[np.float64]:
    """The mean of both figures, the vector's one weighing as much as the model is trusted."""
    mixed = (by_words + trust * meaning) / (1.0 + trust)
    codes = exact_terms(question)
    exact = np.array([any(holds(c.text, code) for code in codes) for c in read])
    scores: NDArray[np.float64] = np.where(exact, 0.5 + 0.5 * mixed, mixed)
    return scores


def _told(read: Sequence[Candidate], scores: NDArray[np.float64]) -> tuple[Told, ...]:
    order = [int(i) for i in np.argsort(-scores, kind="stable")]
    best = float(scores[order[0]])
    if best < ANSWERS:
        return ()
    near = [i for i in order[:SENTENCES_TOLD] if scores[i] >= FURTHER_SHARE * best]
    return tuple(Told(read[i], readable(read[i]), round(float(scores[i]), 4)) for i in near)


def readable(candidate: Candidate) -> str:
    """The sentence in one line; a table row as `column: cell; column: cell`."""
    text = " ".join(candidate.text.split())
    if not text.startswith("|"):
        return text.lstrip("-*•> ").strip()
    header = _header_of(candidate.chunk)
    cells = _cells(text)
    if len(header) != len(cells):
        return "; ".join(cell for cell in cells if cell)
    return "; ".join(f"{name}: {cell}" for name, cell in zip(header, cells, strict=True) if cell)


def _header_of(chunk: Chunk) -> list[str]:
    rows = [line for line in chunk.embedded_text.splitlines() if line.startswith("|")]
    return _cells(rows[0]) if rows else []


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]
