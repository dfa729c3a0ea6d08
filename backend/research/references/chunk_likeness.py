"""How alike the chunks of an answer and of its sources are: by meaning where an embedder understands them, else by words.

Scores of both, and of every embedder, are brought to one scale, on which a reference has at least 0.7. The thresholds
were fitted by `tests/benchmarks/built_references.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from backend.research.references.chunk_matching import Match, Words, match_vectors, match_words
from backend.research.references.text_chunks import clean_chunk
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import Vectors
from indexing.embedding.language_support import (
    MIN_RANGE,
    REFERENCE_COSINES,
    EmbedderWithLanguages,
    LanguageSupport,
)
from indexing.runtime.deadline import Deadline
from indexing.text.tokenizer import words

LEAST_RELEVANCE = 0.7
LEAST_COSINE = 0.63
"""With all-MiniLM-L6-v2; of another embedder, the cosine that is as far between those of unrelated, of related and of equal texts."""
LEAST_JACCARD = 0.25
UNDERSTOOD = 0.5
"""The share of a chunk that the embedder has to understand."""
EMBEDDING_SHARE = 0.8
"""Of the time left, after which the chunks are compared by their words."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From how alike two chunks are to how relevant the one is to the other: 0, 0.7 and 1 at three places."""

    none: float
    least: float
    equal: float = 1.0

    def to_relevance(self, score: float) -> float:
        places = (self.none, self.least, self.equal)
        return float(np.interp(score, places, (0.0, LEAST_RELEVANCE, 1.0)))

    def rate(self, matches: Iterable[Match]) -> list[Match]:
        return [replace(one, score=self.to_relevance(one.score)) for one in matches]


WORD_SCALE = Scale(0.0, LEAST_JACCARD)


def calibrate(understanding: LanguageSupport) -> Scale:
    """Return the scale of the cosines of an embedder."""
    known = (*REFERENCE_COSINES, 1.0)
    related = max(understanding.related, understanding.unrelated + MIN_RANGE)
    own = (understanding.unrelated, related, max(related, 1.0))
    return Scale(understanding.unrelated, float(np.interp(LEAST_COSINE, known, own)))


def compare_chunks(
    answers: Sequence[str],
    groups: Sequence[Sequence[str]],
    model: EmbedderWithLanguages,
    deadline: Deadline,
) -> list[list[Match]]:
    """Return of each group of source chunks the pairs that are alike enough for a reference, each with its relevance.

    All chunks of all groups are embedded by one call. What the embedder does not understand, and everything where it fails
    or is late, is compared by words.

    Raises:
        DeadlineExceededError: there was no time for the words either.
    """
    answers = list(map(clean_chunk, answers))
    groups = [list(map(clean_chunk, group)) for group in groups]
    known = find_understood(answers, model.understanding)
    chosen = [find_understood(group, model.understanding) if known else [] for group in groups]
    texts = [group[at] for group, ats in zip(groups, chosen, strict=True) for at in ats]
    asked = [*(answers[at] for at in known), *texts]
    vectors = embed_texts(asked, model, deadline) if texts else None
    deadline.check()
    if vectors is None:
        return [_compare_words(answers, group, range(len(answers)), deadline) for group in groups]
    answer = _Answer(answers, known, vectors[: len(known)], calibrate(model.understanding))
    starts = list(accumulate(map(len, chosen), initial=len(known)))
    embedded = [vectors[start:end] for start, end in pairwise(starts)]
    return [
        answer.compare(_Group(*one), deadline) for one in zip(groups, chosen, embedded, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Group:
    """Source chunks that are compared with the answer apart from the others."""

    texts: Sequence[str]
    understood: Sequence[int]
    vectors: Vectors
    """Of those that are understood."""


@dataclass(frozen=True, slots=True)
class _Answer:
    texts: Sequence[str]
    understood: Sequence[int]
    vectors: Vectors
    scale: Scale

    def compare(self, group: _Group, deadline: Deadline) -> list[Match]:
        """Compare by meaning what is understood of the answer, the rest by words; all by words where nothing of the group is."""
        known = self.understood if group.understood else ()
        rest = sorted({*range(len(self.texts))} - {*known})
        return [
            *(self._match_meanings(group, deadline) if known else ()),
            *_compare_words(self.texts, group.texts, rest, deadline),
        ]

    def _match_meanings(self, group: _Group, deadline: Deadline) -> list[Match]:
        found = match_vectors(self.vectors, group.vectors, self.scale.least, deadline)
        placed = (
            replace(one, answer=self.understood[one.answer], source=group.understood[one.source])
            for one in found
        )
        return self.scale.rate(placed)


def find_understood(texts: Sequence[str], understanding: LanguageSupport) -> list[int]:
    """Return the numbers of the texts whose language an embedder understands."""
    return [at for at, text in enumerate(texts) if understanding.vector_weight(text) >= UNDERSTOOD]


def embed_texts(
    texts: Sequence[str], model: EmbedderWithLanguages, deadline: Deadline
) -> Vectors | None:
    """Return the vector of each text; None where the embedder fails or is late."""
    distinct = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    limit = deadline.limited_to(deadline.remaining() * EMBEDDING_SHARE)
    try:
        vectors = model.embedder.embed_queries(list(distinct), limit)
    except (TemporarilyUnavailableError, ActionRequiredError, TimeoutError):
        return None
    return vectors[[distinct[text] for text in texts]]


def _compare_words(
    answers: Sequence[str], sources: Sequence[str], chosen: Sequence[int], deadline: Deadline
) -> list[Match]:
    if not chosen:
        return []
    found = match_words(
        [_to_words(answers[at]) for at in chosen],
        list(map(_to_words, sources)),
        LEAST_JACCARD,
        deadline,
    )
    return WORD_SCALE.rate(replace(one, answer=chosen[one.answer]) for one in found)


def _to_words(text: str) -> Words:
    return frozenset(words(text))
