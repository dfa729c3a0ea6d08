"""How near short texts are to a question, by the sentence model; a broken or slow one costs the order, never the turn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.search.futures import run_in_background
from backend.search.llm_protocol import CompletionError
from backend.search.word_scores import Scores
from backend.web_search.page_snippets import UNDERSTOOD
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import QueryEmbedder
from indexing.embedding.language_support import LanguageSupport
from indexing.runtime.deadline import Deadline

SAMPLE_CHARACTERS = 100
"""Of each text, that show its language."""
EMBEDDING_SHARE = 0.5
"""Of the time left, after which texts are compared by their words."""


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """What embeds questions and short texts alike, best a `VectorCache`, and the languages that it understands."""

    embedder: QueryEmbedder
    understanding: LanguageSupport


def sort_places(scores: Scores) -> list[int]:
    """Return the places of the scores, that of the highest first; equal ones keep their order."""
    return [int(place) for place in np.argsort(-scores, kind="stable")]


def find_nearness(
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


def _is_understood(texts: Sequence[str], question: str, understanding: LanguageSupport) -> bool:
    sample = " ".join(text[:SAMPLE_CHARACTERS] for text in texts)
    shares = map(understanding.vector_weight, (question, sample))
    return bool(question.strip()) and min(shares) >= UNDERSTOOD


def _compare(
    texts: Sequence[str], question: str, embedder: QueryEmbedder, deadline: Deadline
) -> Scores:
    """Return the cosine of each text with the question. Raises CompletionError."""
    try:
        vectors = embedder.embed_queries([question, *texts], deadline)
    except (TemporarilyUnavailableError, ActionRequiredError, TimeoutError) as error:
        raise CompletionError(str(error)) from error
    cosines: Scores = (vectors[1:] @ vectors[0]).astype(np.float64)
    return cosines
