"""Decide whether the best sentence answers the question at all.

Two figures decide. *Margin*: how far the best candidate scores above the typical one, since texts
about the subject in general score alike, and an answer scores clearly higher. *Missing*: the weight of the most
important word of the question that nothing around the best candidate resembles. The weight of a word
is how far the question's vector moves when the word is left out (occlusion: Li, Monroe and Jurafsky,
"Understanding Neural Networks through Representation Erasure", 2016).

Both go into a logistic model. `tests/benchmarks/answerability.py` fits and evaluates the models; the
constants are what it printed on 2026-11-21 with all-MiniLM-L6-v2: from 130 English
questions of XQuAD (Artetxe et al., 2020), for `BY_WORDS` also 59 Chinese ones, each asked of its 240
paragraphs with and without the one that answers it. On held-out halves the AUC of right
against wrong sentences is 0.91 to 0.94 (`BY_WORDS` 0.93, in Chinese 0.86 to 0.88; there the missing
word adds nothing to the margin, and has no weight).

`least` is a choice: rather show a wrong sentence, which can be checked by its quote, than withhold a
right one. It was made, like the choice of figures, with the questions on the sample handbook in view,
so the rates reached there are no estimate for other documents. At this `least` 98 to 100 % of the
right sentences of XQuAD are shown, and 37 to 48 % of the questions declined whose paragraph was removed
(`BY_WORDS` 100 % and 11 to 24 %). On questions of MTRAG (Katsis et al., 2025), which were not fitted,
the AUC is 0.58: 97 % of the right sentences are shown, and only 12 % of the questions without their
passages declined.
"""

import math
from dataclasses import dataclass

import numpy as np
import regex

from backend.chat.extractive.candidate_sentences import Candidate, heading_context
from backend.chat.extractive.relevance import Scores
from indexing.embedding.embedder import Vectors
from indexing.text.normalization import LETTER, fold
from indexing.text.stop_words import ENGLISH, FUNCTION_WORDS
from indexing.text.tokenizer import extract_keywords, words

MAX_WORDS = 10
"""Words of a question whose weight is measured by leaving them out in turn."""
MAX_SURROUNDING_WORDS = 40
"""Words around the best candidate that are compared by meaning."""
PRIOR_WEIGHT = 8
"""The median of few candidates says little; so many at the usual level are added."""
SIMILARITY_RANGE = (0.3, 0.8)
"""Cosines of two single words: unrelated up to the first, synonyms from the second on."""

_WORD = regex.compile(rf"(?V1){LETTER}++(?:['’._-]{LETTER}++)*+")


@dataclass(frozen=True, slots=True)
class AnswerEvidence:
    margin: float
    """Of scores, 0 to 1."""
    missing: float
    """0 if all important words are there."""


@dataclass(frozen=True, slots=True)
class AnswerabilityModel:
    """A logistic model of whether the best sentence is right."""

    intercept: float
    margin: float
    missing: float
    typical: float
    """The usual median of scores."""
    least: float
    """The lowest probability at which a sentence is shown."""

    def probability(self, evidence: AnswerEvidence) -> float:
        logit = self.intercept + self.margin * evidence.margin + self.missing * evidence.missing
        return 1 / (1 + math.exp(-logit))


def typical_score(scores: Scores, usual: float) -> float:
    """Return the median, drawn to its usual level if there are few scores."""
    count = len(scores)
    return (count * float(np.median(scores)) + PRIOR_WEIGHT * usual) / (count + PRIOR_WEIGHT)


def margin(scores: Scores, model: AnswerabilityModel) -> float:
    """Return how far the best score is above the typical one."""
    return float(scores.max()) - typical_score(scores, model.typical)


def subject_words(question: str) -> list[str]:
    """Return the words of a question that carry its subject, as they are written, each once."""
    found = dict.fromkeys(_WORD.findall(extract_keywords(question)))
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
    around = f"{heading_context(best.chunk)}\n{best.chunk.embedded_text}"
    return frozenset(words(word)) <= frozenset(words(around))


def similarity(wanted: Vectors, present: Vectors) -> Scores:
    """Rate for each wanted word, 0 to 1, how similar the most similar present word is."""
    if not len(present):
        return np.zeros(len(wanted))
    least, most = SIMILARITY_RANGE
    nearest = (wanted @ present.T).max(axis=1).astype(np.float64)
    bounded: Scores = np.clip((nearest - least) / (most - least), 0.0, 1.0)
    return bounded


def missing_weight(weights: Scores, present: Scores) -> float:
    """Return the weight of the most important word that is missing.

    Args:
        weights: how important each word of the question is, 0 to 1 or a little more.
        present: how similar the most similar word around the best candidate is, 0 to 1.
    """
    return float((weights * (1 - present)).max(initial=0.0))


BY_MEANING = AnswerabilityModel(
    intercept=-2.88, margin=12.2, missing=-13.6, typical=0.19, least=0.08
)
BY_WORDS = AnswerabilityModel(intercept=-3.64, margin=9.2, missing=0.0, typical=0.11, least=0.08)

_STOP_WORDS = ENGLISH | FUNCTION_WORDS["English"]
