"""Score the candidates of a question, by meaning and words or by words alone, and decide whether the best one answers.

Four figures go into a logistic model. *Margin*: how far the sentence scores above the typical one, since texts
about the subject in general score alike, and an answer scores clearly higher. *Missing*: the weight of the most
important word of the question that nothing around the sentence resembles, and the *share* of all such words.
*Matched*: how rare the words are that the sentence and its chunk have in common with the question.

Meaning is the mean of two cosines with the question: of the sentence under its title and headings, and of its whole
chunk. Words are the question's words in the sentence, its headings and its chunk, weighted by how rare they are among
the candidates (after Robertson and Spärck Jones). If the embedder does not support the question's language, words
decide alone. A sentence that has nothing of the type of answer asked for loses a little.

The weight of a word of the question is how far the question's vector moves when the word is left out (occlusion:
Li, Monroe and Jurafsky, "Understanding Neural Networks through Representation Erasure", 2016).
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import regex
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, heading_context
from backend.chat.extractive.question_checks import (
    FUNCTION_WORDS,
    WORD,
    answer_type,
    answer_type_mismatches,
    fits_numbers,
    fits_years,
    holds_count,
    holds_counted_time,
    holds_every_numbered_name,
    holds_role,
    holds_sum,
    holds_weight,
    is_whole_statement,
    question_keywords,
    subject_words,
)
from backend.search.document_versions import asks_about_the_past
from backend.search.models import InferenceSection
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.embedding.language_support import LanguageSupport
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.normalization import LETTER, fold
from indexing.text.tokenizer import words

Scores: TypeAlias = NDArray[np.float64]

MAX_SCORED = 40
"""Sentences that are scored, and embedded: the most promising by their chunks."""
NEARLY_ALIKE = 0.06
MISSING_PENALTY = 0.15
"""Times the weight of the most important word that is missing."""

MEANING_WEIGHT = 0.75
WORDS_WEIGHT = 0.25
MISMATCH_PENALTY = 0.1
"""Subtracted if the question asks for an amount, a time or a person and the sentence has none; half of
it if the sentence has a number, but of other things than the question counts."""
NEIGHBOR_FACTOR = 0.9
"""The cosine of a chunk that was read only as a neighbor is estimated as the lowest found times this."""

MAX_SURROUNDING_WORDS = 40
"""Words around the best candidate that are compared by meaning."""
SIMILARITY_RANGE = (0.3, 0.8)
"""Cosines of two single words: unrelated up to the first, synonyms from the second on."""
PRIOR_WEIGHT = 8
"""The median of few candidates says little; so many at the usual level are added."""

_OWN_CASE = regex.compile(
    r"\b(?:I|I'm|[Mm]y|[Mm]e|[Ww]e|[Oo]ur|[Uu]s|[Mm]ine|[Mm]yself|[Ii]ch|[Mm]ein\w*|[Ww]ir|[Uu]nser\w*)\b"
    r"|\b[Ii]s it (?:all right|okay|ok|allowed|permitted)\b"
)
_SEVERAL_CLAUSES = regex.compile(r"[.,;:!?]\s")

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
(`LanguageSupport.rescale`). The threshold declines two thirds of the questions without their paragraph."""

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
    """Return the model for the asker's own case, where one is given.

    A lone question for a value ("How many days of leave do I get?") tells none: its words are those of the documents. What
    names a version ("under the old policy") stands in no sentence, so that such a question is no lone one.
    """
    if _OWN_CASE.search(question) is None:
        return BY_MEANING
    is_lone = not (_SEVERAL_CLAUSES.search(question) or asks_about_the_past(question))
    return BY_MEANING if is_lone and answer_type(question) else OWN_CASE


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
class WordShares:
    """Weighted shares of the question's words, 0 to 1, one for each candidate."""

    sentence: Scores
    """In the sentence."""
    with_headings: Scores
    """In the sentence and its headings."""
    chunk: Scores
    """In its chunk and the headings."""

    @property
    def mean(self) -> Scores:
        mean: Scores = (self.sentence + self.with_headings + 2 * self.chunk) / 4
        return mean


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
    understanding: LanguageSupport,
    deadline: Deadline,
) -> ScoredCandidates:
    """Score the most promising candidates, and gather the evidence for the best of them."""
    shares = word_shares(question, found)
    if understanding.vector_weight(question):
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
    understanding: LanguageSupport,
    embed: _Embed,
) -> ScoredCandidates:
    trust = understanding.vector_weight(question)
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
    """Prefer of near equals those that have the important words of the question, or whose headings do."""
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
            and holds_counted_time(question, each)
            and holds_sum(question, each)
            and holds_weight(question, each)
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


def matched_rarity(
    question: str, best: Candidate, found: Sequence[Candidate]
) -> tuple[float, float, int]:
    """Return the rarity of the question's words that the chunk of a candidate holds and of those it lacks, in
    nats, and how many different words there are. Rarity is the inverse document frequency among the chunks."""
    wanted = frozenset(words(question_keywords(question)))
    chunks = {c.chunk.key: words_of_chunk(c) for c in found}
    holders = Counter(word for held in chunks.values() for word in wanted & held)
    rarity = {word: inverse_frequency(holders[word], len(chunks)) for word in sorted(wanted)}
    held = chunks[best.chunk.key]
    matched = sum(value for word, value in rarity.items() if word in held)
    return matched, sum(rarity.values()) - matched, len(wanted)


def words_of_chunk(candidate: Candidate) -> frozenset[str]:
    chunk = candidate.chunk
    return frozenset(words(f"{heading_context(chunk)}\n{chunk.embedded_text}"))


def inverse_frequency(holders: int, count: int) -> float:
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def word_shares(question: str, found: Sequence[Candidate]) -> WordShares:
    weights = _rarity_weights(question, found)
    chunks = {c.chunk.key: c.chunk for c in found}
    headings = {key: frozenset(words(heading_context(chunk))) for key, chunk in chunks.items()}
    wholes = {
        key: frozenset(words(chunk.embedded_text)) | headings[key] for key, chunk in chunks.items()
    }
    return WordShares(
        sentence=_shares(weights, [c.words for c in found]),
        with_headings=_shares(weights, [c.words | headings[c.chunk.key] for c in found]),
        chunk=_shares(weights, [wholes[c.chunk.key] for c in found]),
    )


def _rarity_weights(question: str, found: Sequence[Candidate]) -> dict[str, float]:
    """Weight each word of the question by its rarity among the candidates, summing to 1."""
    wanted = frozenset(words(question_keywords(question)))
    holders = Counter(word for c in found for word in wanted & c.words)
    raw = {word: inverse_frequency(holders[word], len(found)) for word in sorted(wanted)}
    whole = sum(raw.values())
    return {word: weight / whole for word, weight in raw.items()} if whole else {}


def _shares(weights: Mapping[str, float], held: Sequence[frozenset[str]]) -> Scores:
    # In the order of the weights: that of a set differs from process to process, and with it which of two equal sums is larger.
    return np.array(
        [sum(weight for word, weight in weights.items() if word in each) for each in held]
    )


def chunk_cosines(found: Sequence[Candidate]) -> Scores:
    """Return the question's cosine with the chunk of each candidate, as the search measured it; 0 to 1."""
    cosines: dict[tuple[str, int], float] = {}
    for section in {id(c.section): c.section for c in found}.values():
        cosines |= _cosines_of(section)
    return np.clip([cosines[c.chunk.key] for c in found], 0.0, 1.0)


def _cosines_of(section: InferenceSection) -> dict[tuple[str, int], float]:
    known = {
        hit.chunk.key: hit.evidence.cosine
        for hit in (section.best, *section.hits)
        if hit.evidence.cosine is not None
    }
    unknown = NEIGHBOR_FACTOR * min(known.values(), default=0.0)
    return {chunk.key: known.get(chunk.key, unknown) for chunk in section.chunks}


def combine_scores(meaning: Scores, shares: Scores, mismatches: Scores, trust: float) -> Scores:
    """Combine to 0 to 1; meaning counts as far as the embedder supports the question's language."""
    weight = trust * MEANING_WEIGHT
    mixed = (weight * meaning + WORDS_WEIGHT * shares) / (weight + WORDS_WEIGHT)
    bounded: Scores = np.clip(mixed - MISMATCH_PENALTY * mismatches, 0.0, 1.0)
    return bounded


def remove_word(question: str, word: str) -> str:
    bare = regex.sub(rf"(?V1)(?<!{LETTER}){regex.escape(word)}(?!{LETTER})", "", question)
    return bare if bare.strip() else "?"


def surrounding_words(best: Candidate) -> list[str]:
    """Return the words of the sentence, its headings and its chunk, nearest first."""
    texts = (best.display_text, heading_context(best.chunk), best.chunk.embedded_text)
    found = dict.fromkeys(fold(word) for text in texts for word in WORD.findall(text))
    return [word for word in found if len(word) > 1 and word not in FUNCTION_WORDS][
        :MAX_SURROUNDING_WORDS
    ]


def is_contained(word: str, best: Candidate) -> bool:
    """Return whether the candidate, its headings or its chunk have the word, in any inflection."""
    return frozenset(words(word)) <= words_of_chunk(best)


def similarity(wanted: Vectors, present: Vectors) -> Scores:
    """Rate for each wanted word, 0 to 1, how similar the most similar present word is."""
    if not len(present):
        return np.zeros(len(wanted))
    least, most = SIMILARITY_RANGE
    nearest = (wanted @ present.T).max(axis=1).astype(np.float64)
    bounded: Scores = np.clip((nearest - least) / (most - least), 0.0, 1.0)
    return bounded
