"""Decide whether the best sentence answers a question at all.

Four figures go into a logistic model. *Margin*: how far the sentence scores above the typical one, since texts
about the subject in general score alike, and an answer scores clearly higher. *Missing*: the weight of the most
important word of the question that nothing around the sentence resembles, and the *share* of all such words.
*Matched*: how rare the words are that the sentence and its chunk have in common with the question.
"""

from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import NDArray

PRIOR_WEIGHT = 8
"""The median of few candidates says little; so many at the usual level are added."""

_OWN_CASE = regex.compile(
    r"\b(?:I|I'm|[Mm]y|[Mm]e|[Ww]e|[Oo]ur|[Uu]s|[Mm]ine|[Mm]yself|[Ii]ch|[Mm]ein\w*|[Ww]ir|[Uu]nser\w*)\b"
    r"|\b[Ii]s it (?:all right|okay|ok|allowed|permitted)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvidence:
    """What speaks for the best sentence and against it."""

    margin: float
    """Of scores, 0 to 1."""
    missing: float = 0.0
    """0 if all important words are there."""
    missing_share: float = 0.0
    """Of the weights of all words, 0 to 1."""
    matched: float = 0.0
    """In nats: the sum of the inverse document frequencies of the words held."""
    length: float = 0.0
    """Logarithm of the number of different words: of many words some are held by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerabilityModel:
    """A logistic model: a sentence answers if its log-odds reach 0."""

    intercept: float
    """Holds the threshold."""
    margin: float
    missing: float = 0.0
    missing_share: float = 0.0
    matched: float = 0.0
    length: float = 0.0
    typical: float
    """The usual median of scores."""

    def log_odds(self, evidence: AnswerEvidence) -> float:
        return (
            self.intercept
            + self.margin * evidence.margin
            + self.missing * evidence.missing
            + self.missing_share * evidence.missing_share
            + self.matched * evidence.matched
            + self.length * evidence.length
        )


BY_MEANING = AnswerabilityModel(
    intercept=0.72, margin=7.3, missing_share=-8.4, matched=0.32, typical=0.19
)
"""Fitted by `tests/benchmarks/answerability.py` on the English questions of XQuAD (Artetxe et al., 2020), each asked
with the paragraph that answers it and without, with all-MiniLM-L6-v2; other embedders are brought to its scale
(`Understanding.rescale`). The threshold declines two thirds of the questions without their paragraph."""

OWN_CASE = AnswerabilityModel(
    intercept=1.61, margin=12.2, missing=-13.6, missing_share=-4.0, typical=0.19
)
"""For a question that tells of the asker's own case ("A supplier sent me a bottle of whisky. May I take it home?"):
it is in everyday words where documents speak in general ones, so missing words say less. XQuAD has no such questions:
margin and missing are of an earlier fit on it, share and threshold were chosen with the questions on the sample handbook in
view, so the rates reached there are no estimate for other documents."""

BY_WORDS = AnswerabilityModel(
    intercept=2.84, margin=5.1, missing_share=-3.9, matched=0.16, length=-0.69, typical=0.11
)
"""Fitted in the same way on the Chinese questions, where words decide alone."""


def model_by_meaning(question: str) -> AnswerabilityModel:
    return OWN_CASE if _OWN_CASE.search(question) else BY_MEANING


def typical_score(scores: NDArray[np.float64], usual: float) -> float:
    """Return the median, drawn to its usual level if there are few scores."""
    count = len(scores)
    return (count * float(np.median(scores)) + PRIOR_WEIGHT * usual) / (count + PRIOR_WEIGHT)


def measure_missing(
    weights: NDArray[np.float64], present: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the weight of the most important word that is missing, and the share of all missing words.

    Args:
        weights: how important each word of the question is, 0 to 1 or a little more.
        present: how similar the most similar word around the best candidate is, 0 to 1.
    """
    missing = np.clip(weights, 0.0, None) * (1 - present)
    whole = float(np.clip(weights, 0.0, None).sum())
    return float(missing.max(initial=0.0)), float(missing.sum()) / whole if whole else 0.0
