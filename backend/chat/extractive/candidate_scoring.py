"""Score the candidates of a question, by meaning and words or by words alone, with the evidence for the best."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from backend.chat.extractive.answer_types import answer_type_mismatches
from backend.chat.extractive.answerability import (
    BY_MEANING,
    BY_WORDS,
    AnswerabilityModel,
    AnswerEvidence,
    measure_missing,
    model_by_meaning,
    typical_score,
)
from backend.chat.extractive.candidate_sentences import Candidate, heading_context
from backend.chat.extractive.question_checks import fits_numbers, is_whole_statement
from backend.chat.extractive.relevance import (
    Scores,
    WordShares,
    chunk_cosines,
    combine_scores,
    is_contained,
    matched_rarity,
    remove_word,
    similarity,
    subject_words,
    surrounding_words,
    word_shares,
)
from backend.chat.extractive.versions import fits_years
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.embedding.language_support import Understanding
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.normalization import fold
from indexing.text.tokenizer import words

MAX_SCORED = 40
"""Sentences that are scored, and embedded: the most promising by their chunks."""
NEARLY_ALIKE = 0.06
MISSING_PENALTY = 0.15
"""Times the weight of the most important word that is missing."""

_Embed: TypeAlias = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    candidates: Sequence[Candidate]
    scores: Scores
    eligible: NDArray[np.bool_]
    """Whether each may answer, by what the question demands."""
    vectors: Vectors | None
    """Of the candidates under their headings; None if words alone decided."""
    evidence: AnswerEvidence
    model: AnswerabilityModel

    @property
    def answers(self) -> bool:
        return bool(self.eligible.any()) and self.model.log_odds(self.evidence) >= 0.0

    @property
    def eligible_scores(self) -> Scores:
        """The scores, negative for what may not answer."""
        return np.where(self.eligible, self.scores, -1.0)


def score_candidates(
    question: str,
    found: Sequence[Candidate],
    embedder: Embedder,
    understanding: Understanding,
    deadline: Deadline,
) -> ScoredCandidates:
    """Score the most promising candidates, and gather the evidence for the best of them."""
    shares = word_shares(question, found)
    if understanding.share_of(question):
        try:
            return _score_by_meaning(
                question,
                found,
                shares,
                understanding,
                lambda texts: embedder.embed_queries(texts, deadline),
            )
        except (DeadlineExceededError, TemporarilyUnavailableError):
            pass
    return _score_by_words(question, found, shares)


def _score_by_meaning(
    question: str,
    found: Sequence[Candidate],
    shares: WordShares,
    understanding: Understanding,
    embed: _Embed,
) -> ScoredCandidates:
    trust = understanding.share_of(question)
    near = understanding.rescale(chunk_cosines(found))
    order = np.argsort(-(trust * near + shares.mean), kind="stable")[:MAX_SCORED]
    candidates = [found[i] for i in order]
    subject = subject_words(question)
    # One call embeds the question, the question without each of its words, and the candidates.
    shortened = [remove_word(question, word) for word in subject]
    vectors = embed([question, *shortened, *(c.text_in_context for c in candidates)])
    asked, rests, texts = vectors[0], vectors[1 : len(subject) + 1], vectors[len(subject) + 1 :]
    cosines = understanding.rescale((texts @ asked).astype(np.float64))
    mismatches = answer_type_mismatches(question, candidates)
    scores = combine_scores((cosines + near[order]) / 2, shares.mean[order], mismatches, trust)
    weights = 1.0 - (rests @ asked).astype(np.float64)
    model = model_by_meaning(question)
    if model is BY_MEANING:
        scores = _penalize_missing(scores, candidates, subject, weights)
    eligible = _find_eligible(question, candidates)
    best = candidates[int(np.argmax(np.where(eligible, scores, -1.0)))]
    missing, share = measure_missing(weights, _rate_presence(subject, best, embed))
    matched, _, _ = matched_rarity(question, best, candidates)
    evidence = AnswerEvidence(
        margin=_margin(scores, eligible, model),
        missing=missing,
        missing_share=share,
        matched=matched,
    )
    return ScoredCandidates(candidates, scores, eligible, texts, evidence, model)


def _penalize_missing(
    scores: Scores, candidates: Sequence[Candidate], subject: Sequence[str], weights: Scores
) -> Scores:
    """Of candidates that score nearly alike, prefer those that have the important words of the question, or whose headings do."""
    near = np.flatnonzero(scores >= scores.max() - NEARLY_ALIKE)
    missing = np.array([_weigh_missing(candidates[int(i)], subject, weights) for i in near])
    penalized = scores.copy()
    penalized[near] -= MISSING_PENALTY * (missing - missing.min())
    return np.clip(penalized, 0.0, 1.0)


def _weigh_missing(candidate: Candidate, subject: Sequence[str], weights: Scores) -> float:
    held = candidate.words | frozenset(words(heading_context(candidate.chunk)))
    present = np.array([float(frozenset(words(word)) <= held) for word in subject])
    return measure_missing(weights, present)[0]


def _rate_presence(subject: Sequence[str], best: Candidate, embed: _Embed) -> Scores:
    """Rate for each word, 0 to 1, how similar the most similar word around the candidate is."""
    present = np.array([float(is_contained(word, best)) for word in subject])
    absent = [i for i, word in enumerate(subject) if not present[i]]
    around = surrounding_words(best)
    if absent and around:
        vectors = embed([*(fold(subject[i]) for i in absent), *around])
        present[absent] = similarity(vectors[: len(absent)], vectors[len(absent) :])
    return present


def _score_by_words(
    question: str, found: Sequence[Candidate], shares: WordShares
) -> ScoredCandidates:
    order = np.argsort(-shares.mean, kind="stable")[:MAX_SCORED]
    candidates = [found[i] for i in order]
    mismatches = answer_type_mismatches(question, candidates)
    scores = combine_scores(np.zeros(len(candidates)), shares.mean[order], mismatches, 0.0)
    eligible = _find_eligible(question, candidates)
    best = candidates[int(np.argmax(np.where(eligible, scores, -1.0)))]
    matched, lacking, count = matched_rarity(question, best, candidates)
    evidence = AnswerEvidence(
        margin=_margin(scores, eligible, BY_WORDS),
        missing_share=lacking / (matched + lacking or 1.0),
        matched=matched,
        length=math.log1p(count),
    )
    return ScoredCandidates(candidates, scores, eligible, None, evidence, BY_WORDS)


def _find_eligible(question: str, candidates: Sequence[Candidate]) -> NDArray[np.bool_]:
    return np.array(
        [
            is_whole_statement(each)
            and fits_numbers(question, each)
            and fits_years(question, each, candidates)
            for each in candidates
        ],
        np.bool_,
    )


def _margin(scores: Scores, eligible: NDArray[np.bool_], model: AnswerabilityModel) -> float:
    """Return how far the best score of what may answer is above the typical one."""
    best = float(scores[eligible].max(initial=0.0))
    return best - typical_score(scores, model.typical)
