"""Choose what of a person's memories a question is answered with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.search.futures import run_in_background
from backend.search.llm_protocol import CompletionError
from backend.search.word_scores import Scores, score_by_words
from backend.store.memories import Memory
from backend.web_search.page_snippets import UNDERSTOOD
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import QueryEmbedder
from indexing.embedding.language_support import Understanding
from indexing.runtime.deadline import Deadline

MOST_CHOSEN = 10
MOST_CHARACTERS = 2_000
"""Together, up to which few memories are all taken."""
MOST_EMBEDDED = 128
"""Memories for one question: of more, those that are nearest by their words, then the newest."""
SAMPLE_CHARACTERS = 100
"""Of each memory, that show its language."""
EMBEDDING_SHARE = 0.5
"""Of the time left, after which the memories are compared by their words."""


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """What embeds questions and memories alike, best a `VectorCache`, and the languages that it understands."""

    embedder: QueryEmbedder
    understanding: Understanding


def choose_memories(
    memories: Sequence[Memory],
    question: str,
    model: SentenceModel,
    limit: int,
    deadline: Deadline,
) -> list[Memory]:
    """Return the memories to answer a question with: all in their order where they are few and short, else the nearest, best first.

    Where the embedder does not understand the languages, fails or is late, they are compared by their words: no error
    of it ends a turn. Equally near ones keep their order.

    Args:
        memories: of the asker, the newest first.
        limit: the most that are returned, and no more than `MOST_CHOSEN`.
    """
    most = min(limit, MOST_CHOSEN)
    length = sum(len(memory.text) for memory in memories)
    if len(memories) <= most and length <= MOST_CHARACTERS:
        return list(memories)
    by_words = score_by_words([memory.text for memory in memories], question)
    candidates = [memories[place] for place in _sort_places(by_words)[:MOST_EMBEDDED]]
    nearness = _find_nearness([memory.text for memory in candidates], question, model, deadline)
    if nearness is None:
        return candidates[:most]
    return [candidates[place] for place in _sort_places(nearness)[:most]]


def _sort_places(scores: Scores) -> list[int]:
    """Return the places of the scores, that of the highest first."""
    return [int(place) for place in np.argsort(-scores, kind="stable")]


def _find_nearness(
    texts: Sequence[str], question: str, model: SentenceModel, deadline: Deadline
) -> Scores | None:
    """Return the cosine of each text and the question; None where the embedder cannot say or is late."""
    limit = deadline.limited_to(deadline.remaining() * EMBEDDING_SHARE)
    if not limit.remaining() or not _is_understood(texts, question, model.understanding):
        return None
    compare = run_in_background(lambda: _compare(texts, question, model.embedder, limit), limit)
    try:
        return compare.result()
    except CompletionError:
        return None


def _is_understood(texts: Sequence[str], question: str, understanding: Understanding) -> bool:
    sample = " ".join(text[:SAMPLE_CHARACTERS] for text in texts)
    shares = map(understanding.share_of, (question, sample))
    return bool(question.strip()) and min(shares) >= UNDERSTOOD


def _compare(
    texts: Sequence[str], question: str, embedder: QueryEmbedder, deadline: Deadline
) -> Scores:
    """Raises CompletionError."""
    try:
        vectors = embedder.embed_queries([question, *texts], deadline)
    except (TemporarilyUnavailableError, ActionRequiredError, TimeoutError) as error:
        raise CompletionError(str(error)) from error
    cosines: Scores = (vectors[1:] @ vectors[0]).astype(np.float64)
    return cosines
