"""Score the candidates of a question, by meaning and words or by words alone, and decide whether the best one answers.

Four figures go into a logistic model. *Margin*: how far the sentence scores above the typical one, since texts
about the subject in general score alike, and an answer scores clearly higher. *Missing*: the weight of the most
important word of the question that nothing around the sentence resembles, and the *share* of all such words.
*Matched*: how rare the words are that the sentence and its chunk have in common with the question.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import regex
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, heading_context
from backend.chat.extractive.question_checks import (
    answer_type_mismatches,
    fits_numbers,
    holds_count,
    is_whole_statement,
)
from backend.chat.extractive.question_names import fits_years, holds_every_numbered_name, holds_role
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

PRIOR_WEIGHT = 8
"""The median of few candidates says little; so many at the usual level are added."""

_OWN_CASE = regex.compile(
    r"\b(?:I|I'm|[Mm]y|[Mm]e|[Ww]e|[Oo]ur|[Uu]s|[Mm]ine|[Mm]yself|[Ii]ch|[Mm]ein\w*|[Ww]ir|[Uu]nser\w*)\b"
    r"|\b[Ii]s it (?:all right|okay|ok|allowed|permitted)\b"
)

_Embed: TypeAlias = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvidence:
    """The evidence for and against the best sentence."""

    margin: float
    """Of scores, 0 to 1."""
    missing: float = 0.0
    """0 if all important words are there."""
    missing_share: float = 0.0
    """Of the weights of all words, 0 to 1."""
    matched: float = 0.0
    """In nats: the sum of the inverse document frequencies of the words held."""
    length: float = 0.0
    """Logarithm of the number of different words: of many words some occur by chance."""


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
    intercept=0.84, margin=6.99, missing_share=-8.15, matched=0.33, typical=0.19
)
"""Fitted by `tests/benchmarks/answerability.py` on the English questions of XQuAD (Artetxe et al., 2020), each asked
with the paragraph that answers it and without, with all-MiniLM-L6-v2; other embedders are brought to its scale
(`Understanding.rescale`). The threshold declines two thirds of the questions without their paragraph."""

OWN_CASE = AnswerabilityModel(
    intercept=1.61, margin=12.2, missing=-13.6, missing_share=-4.0, typical=0.19
)
"""For a question about the asker's own case ("A supplier sent me a bottle of whisky. May I take it home?"):
it is in everyday words where documents speak in general ones, so missing words say less. XQuAD has no such questions:
margin and missing are of an earlier fit on it, share and threshold were chosen with the questions on the sample handbook in
view, so the rates reached there are no estimate for other documents."""

BY_WORDS = AnswerabilityModel(
    intercept=2.91, margin=5.1, missing_share=-3.9, matched=0.16, length=-0.69, typical=0.11
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
            and holds_count(question, each)
            and holds_role(question, each)
            and holds_every_numbered_name(question, each)
            and fits_years(question, each, candidates)
            for each in candidates
        ],
        np.bool_,
    )


def _margin(scores: Scores, eligible: NDArray[np.bool_], model: AnswerabilityModel) -> float:
    """Return how far the best score of what may answer is above the typical one."""
    best = float(scores[eligible].max(initial=0.0))
    return best - typical_score(scores, model.typical)
