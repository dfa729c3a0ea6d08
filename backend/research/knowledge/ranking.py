"""How much kept knowledge says of a question: by meaning where the sentence model understands it, and by words."""

from collections.abc import Sequence

import numpy as np

from backend.chat.text_nearness import SentenceModel, find_nearness, sort_places
from backend.research.knowledge.builders import measure_relevance
from backend.research.knowledge.kept_knowledge import KeptItem
from indexing.runtime.deadline import Deadline

LEAST_RELEVANCE = 0.6
"""From which on an item speaks to a question: as a share of its words, or of the way from an unrelated text to one that answers."""
MOST_COMPARED = 128
"""By meaning: of more, those that share most words, then the newest."""
COMPARED_CHARACTERS = 600
"""Of an item, by meaning: the question that it answers, and the beginning of the answer."""


def rank_items(
    items: Sequence[KeptItem], question: str, model: SentenceModel, deadline: Deadline
) -> list[tuple[KeptItem, float]]:
    """Return the items with their relevance to a question, 0 to 1, the most relevant first; equal ones keep their order.

    Where the embedder does not understand the languages, fails or is late, words alone decide: no error of it ends a search.
    """
    by_words = np.array([measure_relevance(question, one.text) for one in items])
    first = sort_places(by_words)[:MOST_COMPARED]
    relevance = by_words.copy()
    texts = [items[place].text[:COMPARED_CHARACTERS] for place in first]
    cosines = find_nearness(texts, question, model, deadline) if texts else None
    if cosines is not None:
        scale = model.understanding.cosine_scale
        for place, cosine in zip(first, cosines, strict=True):
            relevance[place] = max(relevance[place], scale.strength(float(cosine)))
    # Of those that say it wholly by meaning, first what says it in the words of the question.
    order = sorted(sort_places(by_words), key=lambda place: -relevance[place])
    return [(items[place], float(relevance[place])) for place in order]


def select_relevant(
    ranked: Sequence[tuple[KeptItem, float]], least: float = LEAST_RELEVANCE
) -> list[KeptItem]:
    return [item for item, relevance in ranked if relevance >= least]
