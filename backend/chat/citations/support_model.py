"""How likely evidence bears a claim out, from how alike their words and vectors are.

Logistic models, fitted by `tests/benchmarks/citation_verdicts.py`, which prints these lines.
"""

import math
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Likeness:
    """Of a claim to its evidence; each figure 0 to 1."""

    cosine: float
    """Of the claim and the passage that is most like it."""
    unit_cosine: float
    """Of the part of the claim that is least like any passage."""
    unit_words: float
    """The least share of a part's words that one passage must contain."""


@dataclass(frozen=True, slots=True)
class SupportModel:
    """A logistic model of whether a claim is supported."""

    intercept: float
    weights: Likeness
    supported: float
    """The least probability of a claim that is supported."""
    weak: float
    """The least probability of one of which something is supported."""

    def probability(self, likeness: Likeness) -> float:
        pairs = zip(astuple(self.weights), astuple(likeness), strict=True)
        logit = self.intercept + sum(weight * figure for weight, figure in pairs)
        return 1 / (1 + math.exp(-logit))


BY_MEANING = SupportModel(-5.1, Likeness(1.8, 4.9, 5.9), supported=0.5, weak=0.03)
BY_WORDS = SupportModel(-3.0, Likeness(0.0, 0.0, 8.4), supported=0.99, weak=0.5)
"""Without vectors only what is nearly word for word counts as supported."""
