"""Score how well sentences fit a question.

Meaning is the mean of two cosines with the question: of the sentence under its title and headings,
and of its whole chunk. Words are the question's words in the sentence, its headings and its chunk,
weighted by how rare they are among the candidates (after Robertson and Spärck Jones). If the embedder
does not support the question's language, words decide alone. A sentence that has nothing of the type of answer
asked for loses a little.

The weight of a word of the question is how far the question's vector moves when the word is left out (occlusion:
Li, Monroe and Jurafsky, "Understanding Neural Networks through Representation Erasure", 2016).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, heading_context
from backend.search.models import InferenceSection
from indexing.embedding.embedder import Vectors
from indexing.text.normalization import LETTER, fold
from indexing.text.stop_words import ENGLISH, FUNCTION_WORDS
from indexing.text.tokenizer import extract_keywords, words

MEANING_WEIGHT = 0.75
WORDS_WEIGHT = 0.25
MISMATCH_PENALTY = 0.1
"""Subtracted if the question asks for an amount, a time or a person and the sentence has none; half of
it if the sentence has a number, but of other things than the question counts."""
NEIGHBOUR_FACTOR = 0.9
"""The cosine of a chunk that was read only as a neighbour is estimated as the lowest found times this."""

Scores = NDArray[np.float64]
MAX_WORDS = 10
"""Words of a question whose weight is measured by leaving them out in turn."""
MAX_SURROUNDING_WORDS = 40
"""Words around the best candidate that are compared by meaning."""
SIMILARITY_RANGE = (0.3, 0.8)
"""Cosines of two single words: unrelated up to the first, synonyms from the second on."""
_WORD = regex.compile(rf"(?V1){LETTER}++(?:['’._-]{LETTER}++)*+")
_STOP_WORDS = ENGLISH | FUNCTION_WORDS["English"]
_MEASURE_ASKED = regex.compile(
    r"\bhow (?:long|much|many|often|far|old|high|soon|quickly|fast|large|big)\b", regex.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class WordShares:
    """Weighted shares of the question's words, 0 to 1, one for each candidate."""

    sentence: Scores
    """In the sentence."""
    with_headings: Scores
    """In the sentence and its headings."""
    chunk: Scores
    """In its chunk and the headings."""

    @property
    def mean(self) -> Scores:
        mean: Scores = (self.sentence + self.with_headings + 2 * self.chunk) / 4
        return mean


def question_keywords(question: str) -> str:
    """Return the words of a question that are looked for: "how long" stands for a type of answer alone."""
    return extract_keywords(_MEASURE_ASKED.sub(" ", question) or question)


def matched_rarity(
    question: str, best: Candidate, found: Sequence[Candidate]
) -> tuple[float, float, int]:
    """Return the rarity of the question's words that the chunk of a candidate holds and of those it lacks, in
    nats, and how many different words there are. Rarity is the inverse document frequency among the chunks."""
    wanted = frozenset(words(question_keywords(question)))
    chunks = {c.chunk.key: words_of_chunk(c) for c in found}
    holders = Counter(word for held in chunks.values() for word in wanted & held)
    rarity = {word: inverse_frequency(holders[word], len(chunks)) for word in sorted(wanted)}
    held = chunks[best.chunk.key]
    matched = sum(value for word, value in rarity.items() if word in held)
    return matched, sum(rarity.values()) - matched, len(wanted)


def words_of_chunk(candidate: Candidate) -> frozenset[str]:
    chunk = candidate.chunk
    return frozenset(words(f"{heading_context(chunk)}\n{chunk.embedded_text}"))


def inverse_frequency(holders: int, count: int) -> float:
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def word_shares(question: str, found: Sequence[Candidate]) -> WordShares:
    weights = _rarity_weights(question, found)
    chunks = {c.chunk.key: c.chunk for c in found}
    headings = {key: frozenset(words(heading_context(chunk))) for key, chunk in chunks.items()}
    wholes = {
        key: frozenset(words(chunk.embedded_text)) | headings[key] for key, chunk in chunks.items()
    }
    return WordShares(
        sentence=_shares(weights, [c.words for c in found]),
        with_headings=_shares(weights, [c.words | headings[c.chunk.key] for c in found]),
        chunk=_shares(weights, [wholes[c.chunk.key] for c in found]),
    )


def _rarity_weights(question: str, found: Sequence[Candidate]) -> dict[str, float]:
    """Weight each word of the question by its rarity among the candidates, summing to 1."""
    wanted = frozenset(words(question_keywords(question)))
    holders = Counter(word for c in found for word in wanted & c.words)
    raw = {word: inverse_frequency(holders[word], len(found)) for word in sorted(wanted)}
    whole = sum(raw.values())
    return {word: weight / whole for word, weight in raw.items()} if whole else {}


def _shares(weights: Mapping[str, float], held: Sequence[frozenset[str]]) -> Scores:
    return np.array([sum(weights[word] for word in weights.keys() & each) for each in held])


def chunk_cosines(found: Sequence[Candidate]) -> Scores:
    """Return the question's cosine with the chunk of each candidate, as the search measured it; 0 to 1."""
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
    unknown = NEIGHBOUR_FACTOR * min(known.values(), default=0.0)
    return {chunk.key: known.get(chunk.key, unknown) for chunk in section.chunks}


def combine_scores(meaning: Scores, shares: Scores, mismatches: Scores, trust: float) -> Scores:
    """Combine to 0 to 1; meaning counts as far as the embedder supports the question's language."""
    weight = trust * MEANING_WEIGHT
    mixed = (weight * meaning + WORDS_WEIGHT * shares) / (weight + WORDS_WEIGHT)
    bounded: Scores = np.clip(mixed - MISMATCH_PENALTY * mismatches, 0.0, 1.0)
    return bounded


def subject_words(question: str) -> list[str]:
    """Return the words of a question that carry its subject, as they are written, each once."""
    found = dict.fromkeys(_WORD.findall(question_keywords(question)))
    return [word for word in found if fold(word) not in _STOP_WORDS][:MAX_WORDS]


def remove_word(question: str, word: str) -> str:
    bare = regex.sub(rf"(?V1)(?<!{LETTER}){regex.escape(word)}(?!{LETTER})", "", question)
    return bare if bare.strip() else "?"


def surrounding_words(best: Candidate) -> list[str]:
    """Return the words of the sentence, its headings and its chunk, nearest first."""
    texts = (best.display_text, heading_context(best.chunk), best.chunk.embedded_text)
    found = dict.fromkeys(fold(word) for text in texts for word in _WORD.findall(text))
    return [word for word in found if len(word) > 1 and word not in _STOP_WORDS][
        :MAX_SURROUNDING_WORDS
    ]


def is_contained(word: str, best: Candidate) -> bool:
    """Whether the candidate, its headings or its chunk have the word, in any inflection."""
    return frozenset(words(word)) <= words_of_chunk(best)


def similarity(wanted: Vectors, present: Vectors) -> Scores:
    """Rate for each wanted word, 0 to 1, how similar the most similar present word is."""
    if not len(present):
        return np.zeros(len(wanted))
    least, most = SIMILARITY_RANGE
    nearest = (wanted @ present.T).max(axis=1).astype(np.float64)
    bounded: Scores = np.clip((nearest - least) / (most - least), 0.0, 1.0)
    return bounded
