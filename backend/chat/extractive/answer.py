"""Answer without a language model: with the best sentences of the best sections, and the passages that come closest.

`candidate_scoring` scores sentences and decides whether the best of them answers.
What the form of the question demands is checked by `question_checks`; names, years and versions by `question_names`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.chat.extractive.candidate_scoring import ScoredCandidates, score_candidates
from backend.chat.extractive.candidate_sentences import Candidate, find_candidates, split_readable
from backend.chat.extractive.question_checks import (
    asks_nothing,
    names_unknown_codes,
    respell_codes,
)
from backend.chat.extractive.question_names import drop_superseded, names_unknown_names
from backend.chat.passages import QuotedPassage, TextRun
from backend.search.models import DocumentNumbers, InferenceSection
from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Embedder
from indexing.embedding.language_support import Understanding
from indexing.runtime.deadline import Deadline
from indexing.text.markdown_links import safe_link

MAX_SENTENCES = 3
MAX_PASSAGES = 4
CLOSE_SHARE = 0.7
"""A passage is shown if its best sentence scores this share of the best one."""
FURTHER_SENTENCE_SHARE = 0.9
"""A further sentence must score this share as far above the typical one as the best sentence does."""
QUOTE_CHARACTERS = 320
"""Neighbouring sentences are added up to this length."""


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
    question = respell_codes(question, found)
    scored = score_candidates(question, found, embedder, understanding, deadline)
    answers = scored.answers and not (
        asks_nothing(question)
        or names_unknown_codes(question, found)
        or names_unknown_names(question, found)
    )
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


def _select_sentences(question: str, scored: ScoredCandidates) -> tuple[AnswerSentence, ...]:
    """Select the best sentence, and others that score nearly as far above the typical one."""
    candidates, scores = scored.candidates, scored.eligible_scores
    order = drop_superseded(question, candidates, scores, scored.vectors)
    least = scores[order[0]] - (1 - FURTHER_SENTENCE_SHARE) * scored.evidence.margin
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


def quote_passage(
    candidate: Candidate, score: float, answering: Sequence[Span], numbers: DocumentNumbers
) -> QuotedPassage:
    """Quote a candidate with the sentences around it.

    Args:
        answering: spans of the section that are highlighted; they are quoted whole.
    """
    chunk = candidate.chunk
    sentences = _surrounding_sentences(candidate, answering)
    span = Span(sentences[0].span.start, sentences[-1].span.end)
    return QuotedPassage(
        number=numbers.assign(chunk.document_id),
        document_id=chunk.document_id,
        title=chunk.title,
        link=safe_link(chunk.link),
        place=_format_place(chunk),
        quote=chunk.text[span.start - chunk.span.start : span.end - chunk.span.start],
        section=chunk.section,
        span=span,
        runs=_highlight_runs(sentences, answering),
        score=round(score, 4),
    )


def _surrounding_sentences(candidate: Candidate, answering: Sequence[Span]) -> list[Candidate]:
    """Return the candidate's sentences and as many after and before them as fit; of a table, its row alone."""
    around = list(split_readable(candidate.section, candidate.chunk))
    spans = (candidate.span, *answering)
    within = Span(min(one.start for one in spans), max(one.end for one in spans))
    inside = [at for at, one in enumerate(around) if _overlaps(one.span, within)]
    first, last = inside[0], inside[-1]
    if candidate.text.startswith("|"):
        return around[first : last + 1]
    while last + 1 < len(around) and _fits(around[first], around[last + 1]):
        last += 1
    while first and _fits(around[first - 1], around[last]):
        first -= 1
    return around[first : last + 1]


def _fits(first: Candidate, last: Candidate) -> bool:
    is_prose = not (first.text.startswith("|") or last.text.startswith("|"))
    return is_prose and last.span.end - first.span.start <= QUOTE_CHARACTERS


def _overlaps(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _highlight_runs(
    sentences: Sequence[Candidate], answering: Sequence[Span]
) -> tuple[TextRun, ...]:
    """Format the sentences; neighbours that are highlighted alike are one run, and a highlighted one begins with its first word."""
    runs: list[TextRun] = []
    end = sentences[0].span.start
    for one in sentences:
        marked = any(_overlaps(one.span, span) for span in answering)
        blank = " " if one.span.start > end else ""
        end = one.span.end
        if runs and (marked or runs[-1].highlighted is marked):
            runs[-1] = TextRun(runs[-1].text + blank, runs[-1].highlighted)
            blank = ""
        if runs and runs[-1].highlighted is marked:
            runs[-1] = TextRun(runs[-1].text + one.display_text, marked)
        else:
            runs.append(TextRun(blank + one.display_text, marked))
    return tuple(runs)


def _format_place(chunk: Chunk) -> str:
    headings = [one for one in chunk.heading_path if one != chunk.title]
    if headings:
        return " › ".join(headings)
    return f"page {chunk.page}" if chunk.page else ""
