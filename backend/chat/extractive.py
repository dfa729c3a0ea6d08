"""Answers without a language model: the best sentences of the best sections, each cited.

Sentences are ranked by `relevance`; whether the best of them answers is decided by `answerability`.
Of two versions of one statement the newer is told, unless the question asks for the old.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.chat import answerability
from backend.chat.answerability import Evidence
from backend.chat.candidates import Candidate, candidates
from backend.chat.relevance import Scores, chunk_cosines, mismatches, scores, word_shares
from backend.chat.versions import in_force
from backend.search.sections import InferenceSection
from connectors.errors import RetryLater
from indexing.analysis import holds
from indexing.codes import codes
from indexing.deadline import Deadline, DeadlineExceeded
from indexing.embedding import Embedder, Vectors
from indexing.understanding import Understanding

SENTENCES_EMBEDDED = 40
SENTENCES_TOLD = 3
FURTHER_SHARE = 0.75
"""A further sentence is told when it stands this share as far above the bulk as the best one."""


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence of an extractive answer."""

    candidate: Candidate
    text: str
    """As a person reads it, in one line: the quote, or a table row with its column names."""
    score: float
    """0 to 1."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Candidates with what was found about them."""

    read: Sequence[Candidate]
    scores: Scores
    vectors: Vectors | None
    """Of the candidates under their headings; None where words alone decided."""
    evidence: Evidence

    @property
    def best(self) -> Candidate:
        return self.read[int(np.argmax(self.scores))]

    @property
    def answers(self) -> bool:
        model = answerability.BY_WORDS if self.vectors is None else answerability.BY_MEANING
        return model.probability(self.evidence) >= model.least


def extract(
    question: str,
    sections: Sequence[InferenceSection],
    embedder: Embedder,
    understanding: Understanding,
    deadline: Deadline,
) -> tuple[Told, ...]:
    """The sentences that answer, the best and what belongs to it first; none where nothing answers.

    An embedder that is late or does not answer costs the meaning; then words alone decide.

    Raises:
        AskTheOwner: as the embedder does.
    """
    found = candidates(sections)
    if not found or not question.strip() or _asks_for_other_codes(question, found):
        return ()
    judged = judge(question, found, embedder, understanding, deadline)
    return _told(question, judged) if judged.answers else ()
