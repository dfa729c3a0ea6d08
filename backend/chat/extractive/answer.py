"""Answer without a language model: with the best sentences of the best sections, and the passages that come closest.

`candidate_scoring` scores sentences and decides whether the best of them answers, `question_checks` whether they have what
the question demands.

Of two documents that say different things on the same point, the one changed last is chosen; but if the question
names a year that only one of them mentions, that one, and if it asks about the past, the older one. A document
is valid from its date to that of its successor.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from backend.chat.extractive.candidate_scoring import ScoredCandidates, score_candidates
from backend.chat.extractive.candidate_sentences import (
    Candidate,
    distinct_texts,
    find_candidates,
    heading_context,
    split_readable,
)
from backend.chat.extractive.question_checks import asks_nothing, names_unknown_names
from backend.chat.passages import QuotedPassage, TextRun
from backend.search.document_versions import asks_about_the_past, without_version, years_in
from backend.search.models import DocumentNumbers, InferenceSection
from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Embedder, Vectors
from indexing.embedding.language_support import LanguageSupport
from indexing.runtime.deadline import Deadline
from indexing.text.analysis import add_joined_codes, join_code
from indexing.text.markdown_links import safe_link
from indexing.text.normalization import fold
from indexing.text.tokenizer import (
    contains_term,
    extract_keywords,
    find_identifiers,
    is_spaceless,
    words,
)

MAX_CODES = 16
"""Of a question."""
MAX_SENTENCES = 3
MAX_PASSAGES = 4
SUBJECT_PASSAGES = 2
"""Of those that come closest to the subject of a follow-up alone, these are shown where nothing answers."""
CLOSE_SHARE = 0.7
"""A passage is shown if its best sentence scores this share of the best one."""
FURTHER_SENTENCE_SHARE = 0.9
"""A further sentence must score this share as far above the typical one as the best sentence does."""
QUOTE_CHARACTERS = 320
"""Neighboring sentences are added up to this length."""
TIE = 0.12
"""Between scores that differ by no more, the version decides."""
SAME_POINT_COSINE = 0.85
SAME_HEADING_COSINE = 0.6
SAME_POINT_OVERLAP = 0.6
SAME_HEADING_OVERLAP = 0.2


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
    understanding: LanguageSupport,
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


def keep_sentences_about(answer: ExtractiveAnswer, subject: str) -> ExtractiveAnswer:
    """Return the answer without the sentences that say nothing of `subject`; they stay among the closest.

    A sentence speaks of what it or its headings name with most of its words; where none does, of what its passage names.
    """
    given = [one.candidate for one in (*answer.sentences, *answer.closest)]
    wanted = _subject_words(respell_codes(subject, given))
    needed = 1 if any(map(is_spaceless, wanted)) else len(wanted) // 2 + 1

    def names(text: str) -> bool:
        return len(wanted.intersection(words(text))) >= needed

    kept = [
        one
        for one in answer.sentences
        if names(f"{heading_context(one.candidate.chunk)} {one.candidate.text}")
    ] or [one for one in answer.sentences if names(one.candidate.chunk.embedded_text)]
    answering = {one.candidate.chunk.key for one in kept}
    closest = sorted(answer.closest, key=lambda one: one.candidate.chunk.key not in answering)
    return ExtractiveAnswer(tuple(kept), tuple(closest))


def show_subject(answer: ExtractiveAnswer, of_subject: ExtractiveAnswer) -> ExtractiveAnswer:
    """Add what comes closest to a subject alone, where nothing answers what was asked of it."""
    every = (*of_subject.closest[:SUBJECT_PASSAGES], *answer.closest)
    first = {one.candidate.chunk.key: one for one in reversed(every)}
    closest = tuple(first[key] for key in dict.fromkeys(one.candidate.chunk.key for one in every))
    return ExtractiveAnswer((), closest[:MAX_PASSAGES])


def _subject_words(subject: str) -> frozenset[str]:
    found = frozenset(words(extract_keywords(subject)))
    # Single characters of codes, and of scripts without spaces, stand in many other words.
    longer = frozenset(word for word in found if len(word) > 1)
    return longer or found


def respell_codes(question: str, found: Sequence[Candidate]) -> str:
    """Write codes of the question as the passages do that were found: `E2207` as `E-2207`."""
    texts = distinct_texts(found)
    for code in _codes(question):
        if not any(contains_term(text, code) for text in texts):
            question = question.replace(code, _spelling_of(code, texts) or code)
    return question


def _spelling_of(code: str, texts: Iterable[str]) -> str | None:
    joined = join_code(fold(code))
    spellings = (
        span.of(text)
        for text in texts
        if joined in add_joined_codes(words(text))
        for span in find_identifiers(text)
    )
    return next((each for each in spellings if join_code(fold(each)) == joined), None)


def names_unknown_codes(question: str, found: Sequence[Candidate]) -> bool:
    """Return whether the question names codes and no passage that was found has any of them."""
    codes, texts = _codes(question), distinct_texts(found)
    return bool(codes) and not any(contains_term(text, code) for code in codes for text in texts)


def _codes(question: str) -> list[str]:
    return [span.of(question) for span in islice(find_identifiers(question), MAX_CODES)]


def _find_closest(
    scored: ScoredCandidates, answer: Sequence[AnswerSentence]
) -> tuple[AnswerSentence, ...]:
    """Return the best sentence of each chunk, the answer's chunks first, and no far worse ones."""
    best: dict[tuple[str, int], AnswerSentence] = {}
    for one in answer:
        best.setdefault(one.candidate.chunk.key, one)
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
    """Return whether `one` is preferred to `other` if both make the same point."""
    if one.chunk.document_id == other.chunk.document_id:
        return False
    years = years_in(question)
    named, other_named = (len(years & _years_in(each)) for each in (one, other))
    if named != other_named:
        return named > other_named
    changed, other_changed = one.chunk.updated_at, other.chunk.updated_at
    if changed is None or other_changed is None or changed == other_changed:
        return False
    return (changed < other_changed) == asks_about_the_past(question)


def _years_in(candidate: Candidate) -> frozenset[str]:
    return years_in(f"{heading_context(candidate.chunk)} {candidate.text}")


def _make_same_point(read: Sequence[Candidate], vectors: Vectors | None, i: int, j: int) -> bool:
    """Return whether two sentences make the same point; under the same headings less similarity is enough."""
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
    return tuple(without_version(each) for each in (chunk.title, *chunk.heading_path))


def _overlap(one: Candidate, other: Candidate) -> bool:
    """Return whether two candidates have words of the document, or their whole text, in common."""
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
    """Format the sentences; neighbors that are highlighted alike are one run, and a highlighted one begins with its first word."""
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
