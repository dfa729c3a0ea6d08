"""Whether the best sentence answers at all.

Two figures decide. *Margin*: how far the best candidate stands above the bulk of them, since texts
about the matter in general score alike, and an answer stands out. *Missing*: the word that matters
most to the question and that nothing around the best candidate comes near. How much a word matters is
how far the question's vector moves when the word is left out (occlusion: Li, Monroe and Jurafsky,
"Understanding Neural Networks through Representation Erasure", 2016).

The figures go into a logistic model. `tests/benchmarks/answerability.py` fits both models and tells what
they come to; the constants are what it printed on 2026-11-21 with all-MiniLM-L6-v2: from 130 English
questions of XQuAD (Artetxe et al., 2020), for `BY_WORDS` also 59 Chinese ones, each asked of its 240
paragraphs with and without the one that answers it. In halves that had no part in the fit, right
sentences are told from wrong ones with an AUC of 0.91 to 0.94 (`BY_WORDS` 0.93, in Chinese 0.86 to 0.88;
there what is missing adds nothing to the margin, and does not count).

`least` is a choice: rather a wrong sentence, read with its quote, than a right one withheld. It was made,
as that of the figures, with the questions on the sample handbook in view, so that the rates reached
there are no estimate for other documents. At this `least` 98 to 100 % of the right sentences of XQuAD
are told, and 37 to 48 % of the questions declined whose paragraph was taken away (`BY_WORDS` 100 % and
11 to 24 %). On questions of MTRAG (Katsis et al., 2025), which had no part in the fit, the AUC is 0.58:
97 % of the right sentences are told, and only 12 % of the questions without their passages declined.
"""

import math
from dataclasses import dataclass

import numpy as np
import regex

from backend.chat.extractive.candidate_sentences import Candidate, context
from backend.chat.extractive.relevance import Scores
from indexing.embedding.embedder import Vectors
from indexing.text.normalization import LETTER, fold
from indexing.text.stop_words import ENGLISH, FUNCTION_WORDS
from indexing.text.tokenizer import keywords, words

MOST_WORDS = 10
"""Words of a question that are left out in turn."""
MOST_HELD = 40
"""Words around the best candidate that are compared by meaning."""
PRIOR_WEIGHT = 8
"""The bulk of few candidates says little; so many at the usual level are counted in."""
NEAR = (0.3, 0.8)
"""Cosines of two single words: unlike up to the first, the same thing from the second on."""

_WORD = regex.compile(rf"(?V1){LETTER}++(?:['’._-]{LETTER}++)*+")


@dataclass(frozen=True, slots=True)
class Evidence:
    margin: float
    """Of scores, 0 to 1."""
    missing: float
    """0 where everything that matters is there."""


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic model of whether the best sentence is right."""

    intercept: float
    margin: float
    missing: float
    bulk: float
    """The usual median of scores."""
    least: float
    """The probability from which on a sentence is told."""

    def probability(self, evidence: Evidence) -> float:
        logit = self.intercept + self.margin * evidence.margin + self.missing * evidence.missing
        return 1 / (1 + math.exp(-logit))


def bulk(scores: Scores, usual: float) -> float:
    """The median, drawn to its usual level where there are few scores."""
    count = len(scores)
    return (count * float(np.median(scores)) + PRIOR_WEIGHT * usual) / (count + PRIOR_WEIGHT)


def margin(scores: Scores, model: Model) -> float:
    """How far the best score stands above the bulk."""
    return float(scores.max()) - bulk(scores, model.bulk)


def mattering_words(question: str) -> list[str]:
    """The words of a question that carry its subject, as they are written, each once."""
    found = dict.fromkeys(_WORD.findall(keywords(question)))
    return [word for word in found if fold(word) not in _SAYING_NOTHING][:MOST_WORDS]


def without(question: str, word: str) -> str:
    bare = regex.sub(rf"(?V1)(?<!{LETTER}){regex.escape(word)}(?!{LETTER})", "", question)
    return bare if bare.strip() else "?"


def held_words(best: Candidate) -> list[str]:
    """The words of the sentence, its headings and its chunk, nearest first."""
    texts = (best.readable, context(best.chunk), best.chunk.embedded_text)
    found = dict.fromkeys(fold(word) for text in texts for word in _WORD.findall(text))
    return [word for word in found if len(word) > 1 and word not in _SAYING_NOTHING][:MOST_HELD]


def stands_there(word: str, best: Candidate) -> bool:
    """Whether the word itself, in any inflection, stands around the candidate."""
    around = f"{context(best.chunk)}\n{best.chunk.embedded_text}"
    return frozenset(words(word)) <= frozenset(words(around))


def likeness(word: Vectors, held: Vectors) -> Scores:
    """For each word, 0 to 1: how near the nearest of the held words is."""
    if not len(held):
        return np.zeros(len(word))
    least, most = NEAR
    nearest = (word @ held.T).max(axis=1).astype(np.float64)
    bounded: Scores = np.clip((nearest - least) / (most - least), 0.0, 1.0)
    return bounded


def missing(weights: Scores, held: Scores) -> float:
    """The weight of what matters most among what is not there.

    Args:
        weights: how much each word of the question matters, 0 to 1 or a little more.
        held: how near something around the best candidate comes to it, 0 to 1.
    """
    return float((weights * (1 - held)).max(initial=0.0))


BY_MEANING = Model(intercept=-2.88, margin=12.2, missing=-13.6, bulk=0.19, least=0.08)
BY_WORDS = Model(intercept=-3.64, margin=9.2, missing=0.0, bulk=0.11, least=0.08)

_SAYING_NOTHING = ENGLISH | FUNCTION_WORDS["English"]
