"""How well sentences go with a question: in meaning, in words, and by the kind of thing asked for.

Meaning is the mean of two cosines with the question: of the sentence under its title and headings,
and of its whole chunk. Words are the question's words that the sentence, its headings and its chunk
hold, weighted by how rare they are among the candidates (after Robertson and Spärck Jones). Where
the embedder does not understand the question, its words decide alone.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.chat.extractive.answer_types import (
    AnswerType,
    answer_type,
    counted,
    counts,
    holds_answer,
)
from backend.chat.extractive.candidate_sentences import Candidate, context
from backend.search.models import InferenceSection
from indexing.text.tokenizer import keywords, words

MEANING_WEIGHT = 0.75
WORDS_WEIGHT = 0.25
MISMATCH = 0.1
"""Taken off where a question asks for an amount, a time, a person, and the sentence holds none; half of
it where it holds a number, but of other things than are to be counted."""
UNFOUND = 0.9
"""A chunk that was read only as a neighbour is taken to be so near as the farthest one found, times this."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shares:
    """Weighted shares of the question's words, 0 to 1, one for each candidate."""

    own: Scores
    """In the sentence."""
    around: Scores
    """In the sentence and its headings."""
    chunk: Scores
    """In its chunk and the headings."""

    @property
    def all(self) -> Scores:
        mean: Scores = (self.own + self.around + 2 * self.chunk) / 4
        return mean


def word_shares(question: str, found: Sequence[Candidate]) -> Shares:
    weights = _word_weights(question, found)
    chunks = {c.chunk.key: c.chunk for c in found}
    headings = {key: frozenset(words(context(chunk))) for key, chunk in chunks.items()}
    wholes = {
        key: frozenset(words(chunk.embedded_text)) | headings[key] for key, chunk in chunks.items()
    }
    return Shares(
        own=_shares(weights, [c.words for c in found]),
        around=_shares(weights, [c.words | headings[c.chunk.key] for c in found]),
        chunk=_shares(weights, [wholes[c.chunk.key] for c in found]),
    )


def _word_weights(question: str, found: Sequence[Candidate]) -> dict[str, float]:
    """Each word of the question with its rarity among the candidates, summing to 1."""
    wanted = frozenset(words(keywords(question)))
    holders = Counter(word for c in found for word in wanted & c.words)
    raw = {
        word: math.log(1 + (len(found) - holders[word] + 0.5) / (holders[word] + 0.5))
        for word in sorted(wanted)
    }
    whole = sum(raw.values())
    return {word: weight / whole for word, weight in raw.items()} if whole else {}


def _shares(weights: Mapping[str, float], held: Sequence[frozenset[str]]) -> Scores:
    return np.array([sum(weights[word] for word in weights.keys() & each) for each in held])


def chunk_cosines(found: Sequence[Candidate]) -> Scores:
    """The question's cosine with the chunk of each candidate, as the search measured it; 0 to 1."""
    cosines: dict[tuple[str, int], float] = {}
    for section in {id(c.section): c.section for c in found}.values():
        cosines |= _cosines_of(section)
    return np.clip([cosines[c.chunk.key] for c in found], 0.0, 1.0)


def _cosines_of(section: InferenceSection) -> dict[tuple[str, int], float]:
    known = {
        hit.chunk.key: hit.evidence.cosine
        for hit in (section.best, *section.hits)
        if hit.evidence.cosine is not None
    }
    unknown = UNFOUND * min(known.values(), default=0.0)
    return {chunk.key: known.get(chunk.key, unknown) for chunk in section.chunks}


def mismatches(question: str, found: Sequence[Candidate]) -> Scores:
    """How far each candidate lacks what the question asks for: 0, 0.5 or 1.

    All of it where no amount, time or person stands there that is asked for; half where it is asked
    how many there are of something, and a number stands there, but of other things.
    """
    kind, things = answer_type(question), counted(question)
    if kind is None:
        return np.zeros(len(found))
    return np.array([_lack(kind, things, candidate.readable) for candidate in found])


def _lack(kind: AnswerType, things: frozenset[str], text: str) -> float:
    if not holds_answer(kind, text):
        return 1.0
    return 0.5 if things and not counts(things, text) else 0.0


def scores(meaning: Scores, shares: Scores, lacking: Scores, trust: float) -> Scores:
    """0 to 1; meaning weighs as much as the embedder is trusted with the question, 0 to 1."""
    weight = trust * MEANING_WEIGHT
    mixed = (weight * meaning + WORDS_WEIGHT * shares) / (weight + WORDS_WEIGHT)
    bounded: Scores = np.clip(mixed - MISMATCH * lacking, 0.0, 1.0)
    return bounded
