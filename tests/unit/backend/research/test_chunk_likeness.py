"""The threshold of references, brought to the cosines of other embedders."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from backend.research.references.chunk_likeness import LEAST_RELEVANCE, calibrate, compare_chunks
from indexing.embedding.embedder import Embedder, EmbedderIdentity, Vectors
from indexing.embedding.language_support import EmbedderWithLanguages, measure
from indexing.runtime.deadline import Deadline
from tests.support.models import minilm

PATIENCE = 60.0
ANSWER = (
    "Each parent may take 26 weeks of paid leave after a birth.",
    "Journeys above four hours may be booked in first class.",
    "Nobody knows how the moon's mountains were named.",
)
SOURCES = (
    "Parental leave: every parent is entitled to twenty-six paid weeks once a child is born.",
    "First class tickets are allowed for trips that take longer than four hours.",
    "The bicycle cage behind building 7 is opened with the badge of the company.",
    "Expenses are handed in by the fifth working day of the month that follows.",
)


@dataclass(frozen=True)
class RaisedEmbedder:
    """The same embedder with cosines from `raised` to 1 instead of 0 to 1, as those of some models are: c becomes raised + (1 - raised) c."""

    embedder: Embedder
    raised: float

    @property
    def identity(self) -> EmbedderIdentity:
        own = self.embedder.identity
        return replace(own, model=f"{own.model}, raised", dimension=own.dimension + 1)

    @property
    def max_tokens(self) -> int:
        return self.embedder.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.embedder.count_tokens(texts)

    def token_ends(self, text: str) -> Sequence[int]:
        return self.embedder.token_ends(text)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._raise(self.embedder.embed_passages(texts))

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        return self._raise(self.embedder.embed_queries(texts, deadline))

    def _raise(self, vectors: Vectors) -> Vectors:
        """One more number, the same in all: (√(1 - r) v, √r) · (√(1 - r) w, √r) = (1 - r) v·w + r."""
        shared = np.full((len(vectors), 1), np.sqrt(self.raised), dtype=np.float32)
        return np.hstack([vectors * np.float32(np.sqrt(1 - self.raised)), shared])


@pytest.mark.soak("slow")
@pytest.mark.parametrize("raised", [0.7, 0.8])
def test_an_embedder_whose_texts_are_all_alike_has_a_higher_threshold_and_the_same_references(
    raised: float,
) -> None:
    plain, other = minilm(), RaisedEmbedder(minilm(), raised)
    own, theirs = measure(plain), measure(other)
    expected = raised + (1 - raised) * calibrate(own).least
    assert calibrate(theirs).least == pytest.approx(expected, abs=0.002)
    (wanted,) = compare_chunks(
        ANSWER, [SOURCES], EmbedderWithLanguages(plain, own), Deadline.after(PATIENCE)
    )
    (found,) = compare_chunks(
        ANSWER, [SOURCES], EmbedderWithLanguages(other, theirs), Deadline.after(PATIENCE)
    )
    assert [(one.answer, one.source) for one in wanted] == [(0, 0), (1, 1)]
    assert [(one.answer, one.source) for one in found] == [(0, 0), (1, 1)]
    assert [one.score for one in found] == pytest.approx([one.score for one in wanted], abs=0.01)
    # With the threshold of the other one, it would take more passages for sources.
    (all_alike,) = compare_chunks(
        ANSWER, [SOURCES], EmbedderWithLanguages(other, own), Deadline.after(PATIENCE)
    )
    assert len(all_alike) > len(found)
    assert min(one.score for one in wanted) >= LEAST_RELEVANCE
