"""Score texts of about equal length by the words that they share with a question."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexing.text.tokenizer import extract_keywords, words

MAX_QUESTION_WORDS = 64

Scores: TypeAlias = NDArray[np.float64]
"""One for each text; NaN for one that may not be chosen."""

_SATURATION = 1.2
"""How soon another occurrence of a word counts for less (k1 of BM25)."""


def score_by_words(texts: Sequence[str], question: str) -> Scores:
    """Score texts of about equal length by BM25, as a share of the most that is possible."""
    wanted = list(dict.fromkeys(words(extract_keywords(question))))[:MAX_QUESTION_WORDS]
    counts = np.zeros((len(texts), len(wanted)))
    for row, text in zip(counts, texts, strict=True):
        held = Counter(words(text))
        row[:] = [held[word] for word in wanted]
    holders = (counts > 0).sum(axis=0)
    rarity = np.log1p((len(texts) - holders + 0.5) / (holders + 0.5))
    scores: Scores = counts / (counts + _SATURATION) @ rarity / max(rarity.sum(), 1e-9)
    return scores
