"""Answer without a language model: with the best sentences of the best sections, each cited.

Sentences are ranked by `relevance`, which also decides whether the best of them answers. Of two documents that
say different things on the same point, the one changed last is chosen; but if the question names a year that
only one of them mentions, that one, and if it asks about the past, the older one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np
import regex
from numpy.typing import NDArray

from backend.chat.extractive.candidate_sentences import Candidate, find_candidates, heading_context
from backend.chat.extractive.relevance import (
    BY_MEANING,
    BY_WORDS,
    AnswerabilityModel,
    AnswerEvidence,
    Scores,
    WordShares,
    answer_type_mismatches,
    chunk_cosines,
    combine_scores,
    is_contained,
    margin,
    missing_weight,
    remove_word,
    similarity,
    subject_words,
    surrounding_words,
    word_shares,
)
from backend.search.models import InferenceSection
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Embedder, Vectors
from indexing.embedding.language_support import Understanding
from indexing.runtime.deadline import Deadline, DeadlineExceededError
from indexing.text.analysis import add_joined_codes, join_code
from indexing.text.identifiers import find_identifiers
from indexing.text.normalization import fold
from indexing.text.tokenizer import contains_term, words

TIE = 0.12
"""Between scores that differ by no more, the version decides."""
SAME_POINT_COSINE = 0.85
SAME_HEADING_COSINE = 0.6
SAME_POINT_OVERLAP = 0.6
SAME_HEADING_OVERLAP = 0.2

_YEAR = regex.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_PAST = regex.compile(
    fold(
        r"\b(?:old|older|former|formerly|previous|previously|earlier|superseded|used to"
        r"|alte[mnrs]?|frühere?[mnrs]?|früher|bisherige?[mnrs]?|damals)\b|旧|以前|之前|过去|原来|昔"
    )
)
_VERSION = regex.compile(
    r"[\d.]+|\b(?:v|version|rev|revision|old|new|draft|final|copy|alt|neu)\b|旧|新|版"
)

Embed: TypeAlias = Callable[[Sequence[str]], Vectors]
SENTENCES_EMBEDDED = 40
MAX_SENTENCES = 3
MAX_CODES = 16
MAX_PASSAGES = 4
CLOSE_SHARE = 0.7
"""A passage is shown if its best sentence scores this share of the best one."""
FURTHER_SENTENCE_SHARE = 0.9
"""A further sentence must score this share as far above the typical one as the best sentence does."""


def drop_superseded(
    question: str,
    read: Sequence[Candidate],
    scores: NDArray[np.float64],
    vectors: Vectors | None,
) -> list[int]:
    """Return the numbers of the best candidates, best first, without those of superseded versions.

    Args:
        vectors: of the candidates, unit rows; without them similarity is measured by words.
    """
    order = [int(i) for i in np.argsort(-scores, kind="stable")]
    near = [i for i in order if scores[i] >= scores[order[0]] - TIE]
    return [
        i
        for i in near
        if not any(
            _supersedes(question, read[j], read[i]) and _make_same_point(read, vectors, i, j)
            for j in near
        )
    ]


def _supersedes(question: str, one: Candidate, other: Candidate) -> bool:
    """Whether `one` is preferred to `other` if both make the same point."""
    if one.chunk.document_id == other.chunk.document_id:
        return False
    years = frozenset(_YEAR.findall(question))
    named, other_named = (len(years & _years_in(each)) for each in (one, other))
    if named != other_named:
        return named > other_named
    changed, other_changed = one.chunk.updated_at, other.chunk.updated_at
    if changed is None or other_changed is None or changed == other_changed:
        return False
    return (changed < other_changed) == (_PAST.search(fold(question)) is not None)


def _years_in(candidate: Candidate) -> frozenset[str]:
    return frozenset(_YEAR.findall(f"{heading_context(candidate.chunk)} {candidate.text}"))


def _make_same_point(read: Sequence[Candidate], vectors: Vectors | None, i: int, j: int) -> bool:
    """Whether two sentences make the same point; under the same headings less similarity is enough."""
    one, other = read[i], read[j]
    same_heading = bool(one.chunk.heading_path) and _location(one) == _location(other)
    if vectors is not None:
        least = SAME_HEADING_COSINE if same_heading else SAME_POINT_COSINE
        return float(vectors[i] @ vectors[j]) >= least
    both, either = len(one.words & other.words), len(one.words | other.words)
    return both >= (SAME_HEADING_OVERLAP if same_heading else SAME_POINT_OVERLAP) * either


def _location(candidate: Candidate) -> tuple[str, ...]:
    """Return title and headings without what distinguishes versions."""
    chunk = candidate.chunk
    return tuple(
        " ".join(_VERSION.sub(" ", fold(each)).split()).strip("() ")
        for each in (chunk.title, *chunk.heading_path)
    )


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence of an extractive answer."""

    candidate: Candidate
    text: str
    """As a person reads it, in one line: the quote, or a table row with its column names."""
    score: float
    """0 to 1."""


@dataclass(frozen=True, slots=True)
class ExtractiveAnswer:
    sentences: tuple[AnswerSentence, ...] = ()
    """Those that answer, the best and what belongs to it first; none if nothing answers."""
    closest: tuple[AnswerSentence, ...] = ()
    """The best sentence of each of the chunks that come closest, those of the answer first."""


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    candidates: Sequence[Candidate]
    scores: Scores
    vectors: Vectors | None
    """Of the candidates under their headings; None if words alone decided."""
    evidence: AnswerEvidence
    model: AnswerabilityModel

    @property
    def answers(self) -> bool:
        return self.model.probability(self.evidence) >= self.model.least


def extract_answer(
    question: str,
    sections: Sequence[InferenceSection],
    embedder: Embedder,
    understanding: Understanding,
    deadline: Deadline,
) -> ExtractiveAnswer:
    """Find the sentences that answer, and those that come closest.

    If the embedder is late or does not answer, words alone decide.

    Raises:
        ActionRequiredError: as the embedder does.
    """
    found = find_candidates(sections)
    if not found or not question.strip():
        return ExtractiveAnswer()
    scored = score_candidates(question, found, embedder, understanding, deadline)
    answers = scored.answers and not _names_unknown_codes(question, found)
    sentences = _select_sentences(question, scored) if answers else ()
    return ExtractiveAnswer(sentences, _find_closest(scored, sentences))


def _find_closest(
    scored: ScoredCandidates, answer: Sequence[AnswerSentence]
) -> tuple[AnswerSentence, ...]:
    """Return the best sentence of each chunk, the answer's chunks first, and no far worse ones."""
    best = {one.candidate.chunk.key: one for one in reversed(answer)}
    order = [int(i) for i in np.argsort(-scored.scores, kind="stable")]
    least = CLOSE_SHARE * scored.scores[order[0]]
    for i in order:
        if scored.scores[i] >= least:
            candidate = scored.candidates[i]
            best.setdefault(candidate.chunk.key, _answer_sentence(candidate, scored.scores[i]))
    return tuple(best.values())[:MAX_PASSAGES]


def _answer_sentence(candidate: Candidate, score: float) -> AnswerSentence:
    return AnswerSentence(candidate, candidate.display_text, round(float(score), 4))


def _names_unknown_codes(question: str, found: Sequence[Candidate]) -> bool:
    """Whether the question names codes and no chunk that was found has any of them."""
    wanted = [span.of(question) for span in islice(find_identifiers(question), MAX_CODES)]
    texts = {c.chunk.key: c.chunk.embedded_text for c in found}.values()
    return bool(wanted) and not any(_holds_code(text, code) for code in wanted for text in texts)


def _holds_code(text: str, code: str) -> bool:
    """Whether the text holds a code, however its parts are joined."""
    return contains_term(text, code) or join_code(fold(code)) in add_joined_codes(words(text))


def score_candidates(
    question: str,
    found: Sequence[Candidate],
    embedder: Embedder,
    understanding: Understanding,
    deadline: Deadline,
) -> ScoredCandidates:
    """Score the most promising candidates, and gather the evidence for the best of them."""
    trust = understanding.share_of(question)
    shares = word_shares(question, found)
    if trust:
        try:
            return _score_by_meaning(
                question,
                found,
                shares,
                trust,
                lambda texts: embedder.embed_queries(texts, deadline),
            )
        except (DeadlineExceededError, TemporarilyUnavailableError):
            pass
    return _score_by_words(question, found, shares)


def _score_by_meaning(
    question: str, found: Sequence[Candidate], shares: WordShares, trust: float, embed: Embed
) -> ScoredCandidates:
    near = chunk_cosines(found)
    order = np.argsort(-(trust * near + shares.mean), kind="stable")[:SENTENCES_EMBEDDED]
    candidates = [found[i] for i in order]
    subject = subject_words(question)
    # One call embeds the question, the question without each of its words, and the candidates.
    shortened = [remove_word(question, word) for word in subject]
    vectors = embed([question, *shortened, *(c.text_in_context for c in candidates)])
    asked, rests, texts = vectors[0], vectors[1 : len(subject) + 1], vectors[len(subject) + 1 :]
    meaning = (np.clip(texts @ asked, 0.0, 1.0) + near[order]) / 2
    mismatches = answer_type_mismatches(question, candidates)
    scores = combine_scores(meaning, shares.mean[order], mismatches, trust)
    weights = 1.0 - (rests @ asked).astype(np.float64)
    present = _rate_presence(subject, candidates[int(np.argmax(scores))], embed)
    evidence = AnswerEvidence(margin(scores, BY_MEANING), missing_weight(weights, present))
    return ScoredCandidates(candidates, scores, texts, evidence, BY_MEANING)


def _rate_presence(subject: Sequence[str], best: Candidate, embed: Embed) -> Scores:
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
    mismatches = answer_type_mismatches(question, found)
    scores = combine_scores(np.zeros(len(found)), shares.mean, mismatches, 0.0)
    best = int(np.argmax(scores))
    evidence = AnswerEvidence(margin(scores, BY_WORDS), 1.0 - float(shares.chunk[best]))
    return ScoredCandidates(found, scores, None, evidence, BY_WORDS)


def _select_sentences(question: str, scored: ScoredCandidates) -> tuple[AnswerSentence, ...]:
    """Select the best sentence, and others that score nearly as far above the typical one."""
    candidates, scores = scored.candidates, scored.scores
    order = drop_superseded(question, candidates, scores, scored.vectors)
    least = scores[order[0]] - (1 - FURTHER_SENTENCE_SHARE) * margin(scores, scored.model)
    selected: list[int] = []
    for i in order:
        repeats = any(_overlap(candidates[i], candidates[j]) for j in selected)
        if scores[i] >= least and not repeats:
            selected.append(i)
    return tuple(
        _answer_sentence(candidates[i], scores[i])
        for i in _in_reading_order(candidates, selected[:MAX_SENTENCES])
    )


def _overlap(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates have words of the document, or their whole text, in common."""
    if one.display_text == other.display_text:
        return True
    if (one.chunk.document_id, one.chunk.section) != (other.chunk.document_id, other.chunk.section):
        return False
    return one.span.start < other.span.end and other.span.start < one.span.end


def _in_reading_order(candidates: Sequence[Candidate], selected: Sequence[int]) -> list[int]:
    """Sort by chunk, that of the best sentence first, and within a chunk by the order of its text."""
    places = {candidates[i].chunk.key: place for place, i in reversed([*enumerate(selected)])}
    return sorted(selected, key=lambda i: (places[candidates[i].chunk.key], candidates[i].span))
